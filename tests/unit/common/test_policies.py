"""policies: values; their JSON is tested with `metadata.policies_format`."""

from __future__ import annotations

import pytest

from pulsar_py.common.policies import DispatchRate, RetentionPolicy


def test_policies_are_values() -> None:
    assert RetentionPolicy(1, 2) == RetentionPolicy(retention_minutes=1, retention_megabytes=2)
    with pytest.raises(AttributeError):
        RetentionPolicy(1, 2).retention_minutes = 3  # type: ignore[misc]


def test_a_rate_is_for_a_second_unless_it_says_otherwise() -> None:
    assert DispatchRate(1, 2).period_seconds == 1
    assert not DispatchRate(1, 2).is_relative_to_publish_rate
