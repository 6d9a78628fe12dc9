"""A pipeline that is ready to be started, and what it needs of the world (edge).

`check` asks for what is missing while it is cheap: before Java is started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pulsar_py.pipeline.settings import TopicRange, TopicTarget
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.watch import Watch

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
    """Read or written."""
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
        if self.target is not None:
            check_write(self.target.connector_options())
        if self.check_more is not None:
            self.check_more()
