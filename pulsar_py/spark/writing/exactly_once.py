"""Exactly-once writes by the broker's deduplication: names, sequence ids and refusals (pure).

The broker's deduplication remembers, for each producer name and topic partition, the highest
sequence id that it stored. A unit of work is what one task writes in one batch:

    producer name   <key>-<output partition>
    sequence id     of a stream    (batch id + 1) * 2**33 + tag * 2**27 + row     tag = count % 61
                    of a job       count * 2**32 + row

    row = the number of the row within the task      count = the topic's partitions

The key of a stream is the query's id, behind `idempotencyKey` if there is one; of a job it is that
option alone. The query's id is needed because batches of another checkpoint have the same numbers
and other rows. A repeated attempt asks for the last sequence id, skips the rows below it, and sends
the row *at* it once more, alone: the broker answers that as a duplicate exactly if it is stored, so
rows that were on their way when an earlier attempt died are known to have arrived. If that row does
not come, the rows are not those of the earlier attempt, which is an error.

Preconditions: deduplication is on; rows come in the same order each time (`input` without a
shuffle, otherwise sorted by `columns:…` or `content`); a name has one producer at a time (the
broker sees to it); entries are sent one after the other, so that what is stored is always a run of
rows from the first; the topic keeps its number of partitions while a batch is retried; and a batch
is retried before the broker forgets the name
(`brokerDeduplicationProducerInactivityTimeoutMinutes`).

Source: MessageDeduplication in Pulsar's broker; docs/FORMATS.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from pulsar_py.common.errors import ConfigurationError, SinkReplayError
from pulsar_py.common.names import TopicName
from pulsar_py.spark.shared.options import INPUT_ORDER, DeliveryGuarantee, WriteOptions

_ROW_BITS: Final = 27
_TAG_BITS: Final = 6
_TAGS: Final = 61
"""A prime: twice as many partitions have another tag."""

ROWS_PER_BATCH: Final = 1 << _ROW_BITS
"""Sequence ids that a micro-batch has for one task."""

ROWS_PER_JOB: Final = 1 << 32
"""Sequence ids that a batch job has for one task."""

MAX_BATCH_ID: Final = (1 << 30) - 2
"""With the next one sequence ids would pass 63 bits."""

NEVER_SENT: Final = -1
"""What the broker tells as last sequence id of a name that it does not know."""


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """What one task writes in one batch, the same at each attempt."""

    key: str
    # None for a batch job, which has no ids.
    batch_id: int | None
    output_partition: int
    # Of the topic, by which rows are routed.
    partitions_count: int = 1

    def __post_init__(self) -> None:
        """Raises ConfigurationError if the batch id leaves no room for sequence ids."""
        if self.batch_id is not None and not 0 <= self.batch_id <= MAX_BATCH_ID:
            raise ConfigurationError(f"batch {self.batch_id}: ids go from 0 to {MAX_BATCH_ID}")

    @property
    def producer_name(self) -> str:
        """The name under which the broker remembers it."""
        return f"{self.key}-{self.output_partition}"

    @property
    def description(self) -> str:
        """As messages call it."""
        return "the job" if self.batch_id is None else f"batch {self.batch_id}"

    @property
    def ids(self) -> range:
        """All that the batch may have, however many partitions there were."""
        if self.batch_id is None:
            return range(1 << 63)
        bits = _TAG_BITS + _ROW_BITS
        return range((self.batch_id + 1) << bits, (self.batch_id + 2) << bits)

    @property
    def rows_limit(self) -> int:
        """So many rows have ids."""
        return ROWS_PER_JOB if self.batch_id is None else ROWS_PER_BATCH

    @property
    def first_sequence_id(self) -> int:
        """That of the first row."""
        if self.batch_id is None:
            return self.partitions_count * ROWS_PER_JOB
        return self.ids.start + self.partitions_count % _TAGS * ROWS_PER_BATCH

    def sequence_id(self, row_number: int) -> int:
        """That of a row, by its number within the task from 0.

        Raises:
            SinkReplayError: A task has more rows than a batch has ids.
        """
        if row_number >= self.rows_limit:
            raise SinkReplayError(
                f"{self.producer_name}: more than {self.rows_limit} rows in a task; make batches"
                " smaller, or tasks more"
            )
        return self.first_sequence_id + row_number


def resumed_unit(unit: UnitOfWork, topic: str, last_sequence_ids: Sequence[int]) -> UnitOfWork:
    """The unit as an earlier attempt has begun it: with as many partitions as there were then.

    Args:
        unit: With the partitions that there are now.
        topic: For messages.
        last_sequence_ids: Of each partition of the topic, in order.

    Raises:
        SinkReplayError: Nobody can tell how many there were, or there are fewer now.
    """
    stored = [(index, last) for index, last in enumerate(last_sequence_ids) if last in unit.ids]
    if not stored:
        return unit
    newest = max(last for _, last in stored)
    now = unit.partitions_count
    if unit.batch_id is None:
        candidates = [newest // ROWS_PER_JOB]
    else:
        tag = (newest - unit.ids.start) // ROWS_PER_BATCH
        least = max(index for index, _ in stored) + 1
        candidates = [count for count in range(least, now + 1) if count % _TAGS == tag]
    if len(candidates) != 1 or candidates[0] > now:
        had = " or ".join(map(str, candidates)) or "more"
        raise SinkReplayError(
            f"{topic}: an earlier attempt at {unit.description} of {unit.producer_name!r} found"
            f" {had} partitions, now there are {now}: its rows would go elsewhere"
        )
    return replace(unit, partitions_count=candidates[0])


@dataclass(frozen=True, slots=True)
class Origin:
    """What tells a task which work it does."""

    # `sql.streaming.queryId` and `streaming.sql.batchId`; None outside of streams.
    query_id: str | None
    batch_id: int | None
    output_partition: int
    # Whether Spark calls the streaming writer; a stream's `foreachBatch` calls the batch writer.
    is_stream_writer: bool


def unit_of_work(
    origin: Origin, options: WriteOptions, job_id: str, partitions_count: int
) -> UnitOfWork:
    """The unit of work of a task.

    Args:
        origin: As the task's context tells.
        options: Of the write.
        job_id: Unique for this run of a batch job; unused in streams.
        partitions_count: Of the topic.

    Raises:
        ConfigurationError: Nothing tells it from other work with the same names.
    """
    key = options.idempotency_key
    if origin.is_stream_writer and (origin.query_id is None or origin.batch_id is None):
        raise ConfigurationError(
            "deliveryGuarantee: 'exactly-once': Spark does not tell this task its query and batch"
        )
    if origin.query_id is None or origin.batch_id is None:
        return UnitOfWork(key or job_id, None, origin.output_partition, partitions_count)
    if key is None and not origin.is_stream_writer:
        raise ConfigurationError(
            "deliveryGuarantee: 'exactly-once' inside foreachBatch needs idempotencyKey, another"
            " one for each write: two writes of one batch would be taken for one and the same"
        )
    key = origin.query_id if key is None else f"{key}-{origin.query_id}"
    return UnitOfWork(key, origin.batch_id, origin.output_partition, partitions_count)


class Verdict(Enum):
    """What becomes of a row."""

    SEND = "send"
    """It is new."""
    CONFIRM = "confirm"
    """It is the last one the broker knows: sent again, alone, it comes back as a duplicate."""
    SKIP = "skip"
    """It is stored."""


class Resumption:
    """Where an attempt goes on in one topic partition. Owned by the producer's sender."""

    __slots__ = ("_is_confirmed", "_last_sequence_id", "_topic", "_unit")

    def __init__(self, unit: UnitOfWork, topic: str, last_sequence_id: int) -> None:
        """Take in what the broker told when the producer was registered.

        Raises:
            SinkReplayError: A later batch was stored already under this name.
        """
        ids = unit.ids
        if last_sequence_id >= ids.stop:
            stored = last_sequence_id // len(ids) - 1
            raise SinkReplayError(
                f"{topic}: batch {stored} was already written as {unit.producer_name!r}, so"
                f" {unit.description} would be dropped as old: its checkpoint was put back to an"
                " older state, or another query runs from a copy of it"
            )
        self._unit = unit
        self._topic = topic
        self._last_sequence_id = last_sequence_id
        # Whether the row that the broker knows last has come by, or there is none in this batch.
        self._is_confirmed = last_sequence_id < ids.start

    @property
    def is_replay(self) -> bool:
        """Whether an earlier attempt stored rows here."""
        return self._last_sequence_id in self._unit.ids

    def judge(self, sequence_id: int) -> Verdict:
        """What becomes of the row with that id; ids come in ascending order.

        Raises:
            SinkReplayError: The earlier attempt sent another row where this one should be.
        """
        if sequence_id < self._last_sequence_id:
            return Verdict.SKIP
        if sequence_id == self._last_sequence_id:
            self._is_confirmed = True
            return Verdict.CONFIRM
        self.check_complete()
        return Verdict.SEND

    def check_complete(self) -> None:
        """All rows have come by, or all that an earlier attempt can have sent.

        Raises:
            SinkReplayError: The last row that the earlier attempt sent was not among them.
        """
        if not self._is_confirmed:
            row = self._last_sequence_id - self._unit.first_sequence_id
            raise SinkReplayError(
                f"{self._topic}: an earlier attempt at {self._unit.description} stored row {row}"
                f" of {self._unit.producer_name!r} here, and this one has no such row: the input"
                " is not the same each time; see sequenceOrder"
            )


def check_options(options: WriteOptions) -> None:
    """Refuse at the start what can't be exactly once.

    Raises:
        ConfigurationError: It names the option.
    """
    if options.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        if options.sequence_order not in (None, INPUT_ORDER):
            raise ConfigurationError(
                f"sequenceOrder: {options.sequence_order!r}: needs deliveryGuarantee exactly-once"
            )
        return
    prefix = "deliveryGuarantee: 'exactly-once'"
    if options.topic is None:
        raise ConfigurationError(f"{prefix} needs the option topic")
    if not TopicName.parse(options.topic).is_persistent:
        raise ConfigurationError(f"{prefix}: {options.topic} is not persistent")
    if options.sequence_order is None:
        raise ConfigurationError(
            f"{prefix} needs sequenceOrder, for Spark does not tell: input, where nothing shuffles"
            " the rows on their way, otherwise content or columns:<name>,<name>"
        )
    if options.client.admin_url is None:
        raise ConfigurationError(
            f"{prefix} needs admin.url: only the REST API tells whether deduplication is on"
        )
    for name in ("producername", "initialsequenceid"):
        if name in options.client.producer:
            raise ConfigurationError(f"{prefix}: pulsar.producer.{name} is set by the connector")


def check_deduplication(statuses: Mapping[str, str | None]) -> None:
    """Refuse topics whose broker does not drop what is sent twice.

    Args:
        statuses: `deduplicationStatus` of the statistics of each partition.

    Raises:
        ConfigurationError: It names the first such topic.
    """
    for topic, status in statuses.items():
        if status != "Enabled":
            raise ConfigurationError(
                f"deliveryGuarantee: 'exactly-once': deduplication of {topic} is"
                f" {status or 'unknown'}; enable it for the broker"
                " (brokerDeduplicationEnabled=true) or for the namespace (POST"
                f" /admin/v2/namespaces/{TopicName.parse(topic).namespace_name}/deduplication with"
                " the body true), or take at-least-once (pipelines: --guarantee at-least-once)"
            )
