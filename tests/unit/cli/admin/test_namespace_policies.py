"""Policies of namespaces; what was recorded is in test_namespaces."""

from __future__ import annotations

import pytest

from tests.unit.cli.admin.replayed import Fake, run


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("set-schema-autoupdate-strategy t/n", "--compatibility or --disabled"),
        ("set-schema-autoupdate-strategy -c x t/n", "expected one of"),
        ("set-schema-compatibility-strategy -c x t/n", "Illegal schema compatibility strategy"),
        ("set-offload-policies -d s3 t/n", "--region or --endpoint"),
        ("set-backlog-quota -p x t/n", "needs a size limit"),
        ("set-backlog-quota -p x -t message_age t/n", "needs a time limit"),
        ("set-deduplication t/n", "--enable or --disable"),
        ("set-deduplication -e -d t/n", "--enable or --disable"),
    ],
)
def test_options_that_do_not_fit_are_refused(line: str, said: str) -> None:
    server, done = run("namespaces", *line.split())
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert not server.requests


def test_names_of_strategies_are_taken_in_any_case() -> None:
    server, _ = run("namespaces", "set-schema-autoupdate-strategy", "-c", "full", "t/n")
    assert server.requests[0][3] == "Full"


def test_a_policy_that_is_not_set_is_null() -> None:
    _, done = run("namespaces", "get-retention", "t/n", fake=Fake({"retention": None}))
    assert done.stdout == "null\n"
    _, done = run(
        "namespaces", "get-offload-deletion-lag", "t/n", fake=Fake({"offloadDeletionLagMs": None})
    )
    assert done.stdout == "Unset for namespace\n"
