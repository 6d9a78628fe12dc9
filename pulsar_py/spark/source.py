"""The data source `format("pulsar")` and its readers, which Spark calls (edge).

Options are parsed by `shared.options`, plans are made by `planning.plans`, rows by
`reading.read_task`; writes go to `sink`. Spark creates these objects in several processes and
pickles some of them for others, so they hold values alone, and find the loop and the clients of
their process (`shared.runtime`) when they are called. A checkpoint holds offsets as JSON and no
pickle, so no module path of ours is stored anywhere.

Source: pyspark.sql.datasource.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.planning.catalog import TopicCatalog, known_topics
from pulsar_py.spark.planning.plans import PlannedPiece, StreamPlanner, plan_batch
from pulsar_py.spark.planning.pruning import NOTHING_PRUNED, prune
from pulsar_py.spark.reading.read_task import ReadTask
from pulsar_py.spark.shared.offsets import StreamOffset
from pulsar_py.spark.shared.option_errors import naming_options
from pulsar_py.spark.shared.options import ReadOptions, UndecodableMode
from pulsar_py.spark.shared.runtime import runtime
from pulsar_py.spark.shared.worker_process import SentToWorkers
from pulsar_py.spark.values.metadata_columns import COLUMNS, UNDECODABLE_COLUMN
from pulsar_py.spark.values.pair_columns import COMMENT
from pulsar_py.spark.values.spark_types import ddl_of
from pulsar_py.spark.values.topic_schemas import check_projection, value_columns
from pulsar_py.spark.values.value_columns import ValueColumns

_PUSHDOWN_MODULE: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The module that only the planner for push-down has loaded, by which it is recognized."""


class PulsarDataSource(DataSource):
    """Pulsar topics as a data source of Spark, for batches and streams."""

    @classmethod
    def name(cls) -> str:
        """The name that `format` takes."""
        return "pulsar"

    def schema(self) -> str:
        """The columns of the topics' values, then the metadata columns."""
        options = _either(self.options)
        values = _ask_values(options)
        columns = [(field.name, ddl_of(field.type) + _comment(field)) for field in values.fields]
        columns += [(name, COLUMNS[name].ddl) for name in options.columns]
        if options.undecodable is UndecodableMode.COLUMN:
            columns.append((UNDECODABLE_COLUMN, "BINARY"))
        return ", ".join(f"`{name}` {ddl}" for name, ddl in columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of `spark.read`."""
        options = ReadOptions.parse(self.options, is_streaming=False)
        task = _task(options, schema)
        if options.is_pruned and _PUSHDOWN_MODULE in sys.modules:
            return PrunedBatchReader(task)
        return PulsarBatchReader(task)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """The reader of `spark.readStream`."""
        options = ReadOptions.parse(self.options, is_streaming=True)
        return PulsarStreamReader(_task(options, schema))

    def writer(
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - Spark's
    ) -> Any:  # Any: Spark's writers
        """The writer of `df.write`."""
        from pulsar_py.spark.sink import make_batch_writer  # noqa: PLC0415 - at first use

        return make_batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - Spark's
    ) -> Any:  # Any: Spark's writers
        """The writer of `df.writeStream`."""
        from pulsar_py.spark.sink import make_stream_writer  # noqa: PLC0415 - as above

        return make_stream_writer(self.options, schema, overwrite=overwrite)


def _comment(field: pa.Field) -> str:
    comment = (field.metadata or {}).get(COMMENT)
    return "" if comment is None else f" COMMENT '{comment.decode()}'"


def _either(options: Mapping[str, str]) -> ReadOptions:
    """The options of a read; Spark asks for the schema before it says batch or stream."""
    try:
        return ReadOptions.parse(options, is_streaming=False)
    except ConfigurationError as error:
        try:
            return ReadOptions.parse(options, is_streaming=True)
        except ConfigurationError:
            raise error from None


def _task(options: ReadOptions, schema: StructType) -> ReadTask:
    """The read as workers get it; a schema that the user gave selects columns by name."""
    values = _ask_values(options)
    names = check_projection(values, to_arrow_schema(schema, timezone="UTC"))
    return ReadTask(options, values, names)


def _ask_values(options: ReadOptions) -> ValueColumns:
    shared = runtime()

    async def ask() -> ValueColumns:
        async with shared.clients.client(options.client) as client:
            catalog = TopicCatalog(client, options)
            try:
                if options.fails_on_missing_topic:
                    await catalog.check_named()
                topics = await known_topics(catalog, options)
                return await value_columns(client, options, topics, catalog.exists)
            finally:
                await catalog.close()

    with naming_options(options.client):
        return shared.loop.call(ask())


class PiecePartition(InputPartition):
    """The piece of one task, as a partition of Spark."""

    def __init__(self, planned: PlannedPiece) -> None:
        super().__init__(planned)
        self.planned = planned


class PulsarBatchReader(SentToWorkers, DataSourceReader):
    """Reads topics between a start and an end that are fixed when the query is planned."""

    def __init__(self, task: ReadTask) -> None:
        self._task = task
        self._pruning = NOTHING_PRUNED

    def partitions(self) -> Sequence[InputPartition]:
        """A partition, and so a task, for each piece."""
        shared = runtime()
        options = self._task.options

        async def plan() -> list[PlannedPiece]:
            async with shared.clients.client(options.client) as client:
                return await plan_batch(client, options, self._pruning)

        with naming_options(options.client):
            return [PiecePartition(planned) for planned in shared.loop.call(plan())]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one piece; Spark makes one partition of None where there are no pieces."""
        if isinstance(partition, PiecePartition):
            yield from self._task.read(partition.planned)


class PrunedBatchReader(PulsarBatchReader):
    """A batch reader that takes filters; Spark fails with it where it does not push them down.

    Only with `pushDown=true`: Spark 4.3 keeps the pieces of a DataFrame's last filtered plan, and
    gives them to a later plan of the same DataFrame that has no filter to push down.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's
        """Use the filters that exclude topics and ranges; Spark evaluates all of them again."""
        parts = []
        for each in filters:
            column: tuple[str, ...] = getattr(each, "attribute", ())
            if len(column) == 1:
                parts.append((type(each).__name__, column[0], getattr(each, "value", None)))
        self._pruning, _ = prune(parts)
        return filters


class PulsarStreamReader(SentToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics as they grow. Lives in one process of the driver as long as its query."""

    def __init__(self, task: ReadTask) -> None:
        self._task = task
        self._stream: _OpenStream | None = None

    def __getstate__(self) -> dict[str, Any]:  # Any: as pickle has it
        """The pickled state: workers get the options alone, not the open stream."""
        return {"_task": self._task, "_stream": None}

    def _opened(self) -> _OpenStream:
        if self._stream is None:
            self._stream = _OpenStream(self._task.options)
        return self._stream

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's
        """The start of a query without a checkpoint."""
        offset: StreamOffset = self._opened().call("initial_offset")
        return offset.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """The limit of a micro-batch; Spark takes one, and `latestOffset` applies both."""
        options = self._task.options
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.max_entries_per_trigger is not None:
            return ReadMaxRows(options.max_entries_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802 - Spark's
        """The end of the next micro-batch; `start` if there are no new messages."""
        options = self._task.options
        is_limited = not isinstance(limit, ReadAllAvailable)
        end: StreamOffset = self._opened().call(
            "latest_offset",
            StreamOffset.from_json(start),
            max_entries=options.max_entries_per_trigger if is_limited else None,
            max_bytes=options.max_bytes_per_trigger if is_limited else None,
        )
        return end.to_json()

    def reportLatestOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's
        """The ends of the topics, by which a query's progress shows how far behind it is."""
        ends: StreamOffset = self._opened().call("ends")
        return ends.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Fix the end of the query: messages that are published from now on are not read."""
        self._opened().call("prepare_for_available_now")

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """A partition, and so a task, for each piece."""
        planned = self._opened().call(
            "plan", StreamOffset.from_json(start), StreamOffset.from_json(end)
        )
        return [PiecePartition(each) for each in planned]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one piece; Spark makes one partition of None where there are no pieces."""
        if isinstance(partition, PiecePartition):
            yield from self._task.read(partition.planned)

    def commit(self, end: dict[str, str]) -> None:
        """Move the user's subscription, if there is one, behind the entries before `end`."""
        self._opened().call("commit", StreamOffset.from_json(end))

    def stop(self) -> None:
        """Close the stream; Spark does not always call this, and nothing depends on it."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class _OpenStream:
    """A `StreamPlanner` on the loop of the process, with a client that stays open."""

    def __init__(self, options: ReadOptions) -> None:
        self._loop = runtime().loop
        self._options = options.client
        self._planner, self._leave = self._loop.call(_open_planner(options))

    def call(
        self, name: str, *arguments: Any, **options: Any
    ) -> Any:  # Any: as the planner's method has it
        """Call a method of the planner on its loop."""
        with naming_options(self._options):
            return self._loop.call(getattr(self._planner, name)(*arguments, **options))

    def close(self) -> None:
        self._loop.call(self._leave())


async def _open_planner(
    options: ReadOptions,
) -> tuple[StreamPlanner, Any]:  # Any: an async callable
    context = runtime().clients.client(options.client)
    client = await context.__aenter__()
    planner = StreamPlanner(client, options)

    async def leave() -> None:
        await planner.close()
        await context.__aexit__(None, None, None)

    return planner, leave
