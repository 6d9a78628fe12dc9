"""The `replay` pipeline: writes the messages of a time range into another topic again.

The range has its start and not its end. A replay of the same topics and range repeats the earlier
one of its name, and the target drops the messages that it has. A topic may be replayed into itself
once the range is over; before that, replayed messages would be in the range themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.copy import CopySettings, copy
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.topics import TopicRange, TopicTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """The topics with the range of publish times, and the target."""

    source: TopicRange
    target: TopicTarget
    name: str
    where: str | None = None
    """An SQL condition for rows; None for all."""
    select: str | None = None
    """SQL expressions for the columns of the new messages, separated by commas; None for all."""

    def as_copy(self) -> CopySettings:
        """The batch of `copy` that does the replay.

        Raises:
            ConfigurationError: The time range is missing or empty.
        """
        start, end = self.source.starting_millis, self.source.ending_millis
        if start is None or end is None or start >= end:
            raise ConfigurationError(
                f"replay: {start} to {end} is not a range of publish times: the start has to be"
                " before the end"
            )
        # The connector's `endingTime` is inclusive.
        source = replace(self.source, ending_millis=end - 1)
        target = replace(self.target, idempotency_key=self.name)
        return CopySettings(source=source, target=target, where=self.where, select=self.select)


def check(settings: ReplaySettings) -> None:
    """Refuse a replay that would read the messages that it writes.

    Raises:
        ConfigurationError: The target is among the topics, and the range has not ended.
    """
    source, target = settings.source, settings.target
    is_same_cluster = source.cluster.service_url == target.cluster.service_url
    if not is_same_cluster or not source.reads(target.topic):
        return
    if (source.ending_millis or 0) > SystemClock().wall_time_millis():
        raise ConfigurationError(
            f"replay: {target.topic} is replayed into itself, so the range has to end before now:"
            " replayed messages would be in it, too"
        )


def replay(session: SparkSession, settings: ReplaySettings, watch: Watch | None = None) -> None:
    """Write the range's messages; returns when the broker has stored all.

    Raises:
        ConfigurationError: The range is empty, or would get the replayed messages.
        StoppedError: The watch requested a stop.
    """
    check(settings)
    copy(session, settings.as_copy(), watch)
