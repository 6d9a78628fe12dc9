"""A pipeline that is ready to start, and the checks of what it needs (edge).

`Job.check` runs before Java is started, so that a missing topic or a wrong path is found at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.resuming.checkpoints import check_table
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.topics import TopicRange, TopicTarget
from pulsar_py.pipeline.tables.places import Target, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The work of a pipeline, and what it reads and writes."""

    work: Callable[[SparkSession, Watch], object]
    source: TopicRange | None = None
    is_streaming: bool = False
    """Whether the source is read by a stream."""
    target: TopicTarget | None = None
    table: Target | None = None
    """The table that is written, or, in a job without a source, read."""
    checkpoint: str | None = None
    """The checkpoint of a stream, a path or URL."""
    may_feed_itself: bool = False
    """Whether the target may be among the topics that are read."""
    is_repeatable: bool = True
    """Whether the job keeps its guarantee when it is run again after a failure."""
    check_more: Callable[[], None] | None = None
    """A further check, of the pipeline's own."""

    def check(self) -> None:
        """Refuse a job that would fail.

        Raises:
            ConfigurationError: A package is missing, an option is wrong, or deduplication is off.
            ServiceError, ClientError: The topic does not exist, or the cluster refuses.
        """
        from pulsar_py.spark.checks import (  # noqa: PLC0415 - loads the client
            check_read,
            check_write,
        )

        if self.table is not None:
            from pulsar_py.pipeline.lake import open_table  # noqa: PLC0415 - loads pyarrow

            open_table(self.table)
        if self.source is not None:
            options = self.source.connector_options(is_streaming=self.is_streaming)
            check_read(options, is_streaming=self.is_streaming)
            self._check_loop(self.source)
            self._check_checkpoint(self.source)
            self._check_directories()
        if self.check_more is not None:
            self.check_more()
        if self.target is not None:
            check_write(self.target.connector_options())  # last, because it creates the topic

    def _check_directories(self) -> None:
        if self.table is not None:
            check_writable(self.table.path, f"table {self.table}")
        checkpoint = None if self.checkpoint is None else local_path(self.checkpoint)
        if checkpoint is not None:  # only Hadoop can reach the others
            check_writable(checkpoint, "checkpoint")

    def _check_loop(self, source: TopicRange) -> None:
        target = self.target
        if target is None or self.may_feed_itself:
            return
        is_same_cluster = source.cluster.service_url == target.cluster.service_url
        if is_same_cluster and source.reads(target.topic):
            raise ConfigurationError(
                f"{target.topic} would be read and written: it is one of {source.topic!r}; choose"
                " another topic to write"
            )

    def _check_checkpoint(self, source: TopicRange) -> None:
        """Refuse a checkpoint of another table or of other topics.

        With the latter the query would report that its topics were deleted.
        """
        from pulsar_py.pipeline.resuming.offsets import (  # noqa: PLC0415 - loads the client
            checkpoint_offsets,
        )

        directory = None if self.checkpoint is None else local_path(self.checkpoint)
        if self.checkpoint is None or directory is None:  # only Hadoop can reach it
            return
        if self.table is not None:
            from pulsar_py.pipeline.lake import open_table  # noqa: PLC0415 - loads pyarrow

            check_table(self.checkpoint, open_table(self.table))
        if not any((directory / "commits").glob("[0-9]*")):
            return
        found = checkpoint_offsets(directory)
        topics = sorted({topic for each in found for topic in each.positions})
        if topics and not any(map(source.reads, topics)):
            raise ConfigurationError(
                f"checkpoint {self.checkpoint}: it belongs to {', '.join(topics)}, and this"
                f" pipeline reads {source.topic}; give another --checkpoint"
            )


def check_writable(directory: Path, what: str) -> None:
    """Make a directory, and check that files can be written there.

    Args:
        directory: The directory; its parents are made, too.
        what: What the directory is for, for the error.

    Raises:
        ConfigurationError: Files can't be written there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=directory, prefix="_", suffix=".tmp"):
            pass
    except OSError as error:
        raise ConfigurationError(
            f"{what}: {directory} can't be written to: {error.strerror}"
        ) from None
