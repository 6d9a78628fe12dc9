"""A pipeline that is ready to be started, and what it needs of the world (edge).

`check` asks for what is missing while it is cheap: before Java is started.
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
    """What is run, and what it reads and writes."""

    work: Callable[[SparkSession, Watch], object]
    source: TopicRange | None = None
    is_streaming: bool = False
    """How the source is read."""
    target: TopicTarget | None = None
    table: Target | None = None
    """Written where there is a source, read where there is none."""
    checkpoint: str | None = None
    """Of a stream."""
    may_feed_itself: bool = False
    """Whether the target may be among the topics that are read."""
    is_repeatable: bool = True
    """Whether it can be run again after a failure and keep its guarantee."""
    check_more: Callable[[], None] | None = None
    """What else can be known before."""

    def check(self) -> None:
        """Refuse what would fail.

        Raises:
            ConfigurationError: A package is missing, an option wrong, or deduplication off.
            ServiceError, ClientError: There is no such topic, or the cluster says no.
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
            check_write(self.target.connector_options())  # the last, it makes the topic

    def _check_directories(self) -> None:
        if self.table is not None:
            check_writable(self.table.path, f"table {self.table}")
        checkpoint = None if self.checkpoint is None else local_path(self.checkpoint)
        if checkpoint is not None:  # others are Hadoop's
            check_writable(checkpoint, "checkpoint")

    def _check_loop(self, source: TopicRange) -> None:
        target = self.target
        if target is None or self.may_feed_itself:
            return
        is_same_cluster = source.cluster.service_url == target.cluster.service_url
        if is_same_cluster and source.reads(target.topic):
            raise ConfigurationError(
                f"{target.topic} would be read and written: it is one of {source.topic!r}"
            )

    def _check_checkpoint(self, source: TopicRange) -> None:
        """A checkpoint of other topics would look as if those were gone; so would other tables."""
        from pulsar_py.pipeline.resuming.offsets import (  # noqa: PLC0415 - loads the client
            checkpoint_offsets,
        )

        directory = None if self.checkpoint is None else local_path(self.checkpoint)
        if self.checkpoint is None or directory is None:  # others are Hadoop's
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
                f"checkpoint {self.checkpoint}: it is of {', '.join(topics)}, and this reads"
                f" {source.topic}; another --checkpoint is needed"
            )


def check_writable(directory: Path, what: str) -> None:
    """Make a directory, and see that files can be written there.

    Raises:
        ConfigurationError: They can't; the message names `what`, the directory and why.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=directory, prefix="_", suffix=".tmp"):
            pass
    except OSError as error:
        raise ConfigurationError(f"{what}: {directory}: {error.strerror}") from None
