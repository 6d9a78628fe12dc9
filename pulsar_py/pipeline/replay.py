"""`replay`: what was published to a topic in a range of time, into another topic.

The start is inside the range, the end is not. A replay has a name: of the same topics and range it
is the same one again under it, and the target drops what it has already. A topic may be replayed
into itself once the range is over; before, what is replayed would be in the range, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pulsar_py.common.clock import SystemClock
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.copy import CopySettings, copy
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.topics import TopicRange, TopicTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What is replayed where."""

    source: TopicRange
    target: TopicTarget
    name: str
    where: str | None = None
    """An SQL condition."""

    def as_copy(self) -> CopySettings:
        """The batch that it is.

        Raises:
            ConfigurationError: The range of time is missing or empty.
        """
        start, end = self.source.starting_millis, self.source.ending_millis
        if start is None or end is None or start >= end:
            raise ConfigurationError(f"replay: {start} to {end} is no range of publish times")
        # `endingTime` of the connector includes its millisecond.
        source = replace(self.source, ending_millis=end - 1)
        target = replace(self.target, idempotency_key=self.name)
        return CopySettings(source=source, target=target, where=self.where)


def check(settings: ReplaySettings) -> None:
    """Refuse a replay that would feed itself.

    Raises:
        ConfigurationError: It is into its own topic, and its range has not ended.
    """
    source, target = settings.source, settings.target
    is_same_cluster = source.cluster.service_url == target.cluster.service_url
    if not is_same_cluster or not source.reads(target.topic):
        return
    if (source.ending_millis or 0) > SystemClock().wall_time_millis():
        raise ConfigurationError(
            f"replay: {target.topic} is replayed into itself, so the range has to be over: what is"
            " replayed would be in it, too"
        )


def replay(session: SparkSession, settings: ReplaySettings, watch: Watch | None = None) -> None:
    """Write the range again; returns when all is stored.

    Raises:
        ConfigurationError: The range is none, or would get what is replayed.
    """
    check(settings)
    copy(session, settings.as_copy(), watch)
