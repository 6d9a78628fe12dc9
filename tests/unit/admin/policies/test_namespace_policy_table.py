"""The table of namespaces' policies."""

from __future__ import annotations

from pulsar_py.admin.policies.namespace_policy_table import POLICIES


def test_each_policy_has_a_word_and_a_key_of_its_own() -> None:
    assert len({each.word for each in POLICIES}) == len(POLICIES)
    assert len({each.key.json_name for each in POLICIES}) == len(POLICIES)


def test_only_rates_are_kept_for_each_cluster() -> None:
    kept = {each.word for each in POLICIES if each.is_per_cluster}
    assert kept == {each.word for each in POLICIES if each.word.endswith("Rate")}
