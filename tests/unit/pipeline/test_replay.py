"""Ranges of a replay, and the copy that it becomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.replay import ReplaySettings, check
from pulsar_py.pipeline.settings.topics import Cluster, TopicRange, TopicTarget

CLUSTER = Cluster(service_url="pulsar://a")


def settings(start: int | None, end: int | None) -> ReplaySettings:
    source = TopicRange(cluster=CLUSTER, topic="t", starting_millis=start, ending_millis=end)
    return ReplaySettings(source=source, target=TopicTarget(cluster=CLUSTER, topic="u"), name="n")


def test_the_end_is_outside_and_the_name_is_the_key() -> None:
    copied = settings(10, 20).as_copy()
    assert copied.source.ending_millis == 19
    assert copied.target.idempotency_key == "n"
    assert copied.streaming is None


@pytest.mark.parametrize(("start", "end"), [(None, 5), (5, None), (5, 5), (6, 5)])
def test_ranges_that_are_none(start: int | None, end: int | None) -> None:
    with pytest.raises(ConfigurationError, match="not a range"):
        settings(start, end).as_copy()


def test_a_range_that_is_not_over_is_not_replayed_into_itself() -> None:
    future = settings(10, 1 << 60)
    check(future)
    itself = replace(future, target=TopicTarget(cluster=CLUSTER, topic="public/default/t"))
    with pytest.raises(ConfigurationError, match="the range has to end before now"):
        check(itself)
    check(replace(itself, source=replace(itself.source, ending_millis=20)))
