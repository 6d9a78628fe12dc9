"""Exactly-once writes by the broker's deduplication: names, sequence ids and refusals (pure).

The broker's deduplication remembers, for each producer name and topic partition, the highest
sequence id that it stored. A unit of work is what one task writes in one batch:

    producer name   <key>-<output partition>
    sequence id     of a stream    (batch id + 1) * 2**33 + tag * 2**27 + row     tag = count % 61
                    of a job       count * 2**32 + row

    row = the number of the row within the task      count = the topic's partitions

The key of a stream is the query's id, with `idempotencyKey` before it if there is one; the key of a
batch job is that option alone. The query's id is needed because batches of another checkpoint have
the same numbers and other rows. A repeated attempt asks for the last sequence id, skips the rows
below it, and sends the row *at* it once more, alone: the broker answers that as a duplicate exactly
if it is stored, so rows that were on their way when an earlier attempt died are known to have
arrived. If the attempt has no such row, its rows are not those of the earlier one: an error.

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
"""A prime: doubling the number of partitions always changes the tag."""

ROWS_PER_BATCH: Final = 1 << _ROW_BITS
"""The sequence ids of one task in a micro-batch."""

ROWS_PER_JOB: Final = 1 << 32
"""The sequence ids of one task of a batch job."""

MAX_BATCH_ID: Final = (1 << 30) - 2
"""The largest batch id whose sequence ids fit into 63 bits."""

NEVER_SENT: Final = -1
"""The last sequence id that the broker reports for a producer name that it does not know."""


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """The rows that one task writes in one batch, the same at each attempt."""

    key: str
    # None for a batch job, whose batches have no ids.
    batch_id: int | None
    output_partition: int
    # The number of the topic's partitions by which rows are routed.
    partitions_count: int = 1

    def __post_init__(self) -> None:
        """Raises ConfigurationError if the batch id leaves no room for sequence ids."""
        if self.batch_id is not None and not 0 <= self.batch_id <= MAX_BATCH_ID:
            raise ConfigurationError(
                f"batch {self.batch_id} has no sequence ids, which exactly once needs: batch ids go"
                f" from 0 to {MAX_BATCH_ID}; begin with a new checkpoint"
            )

    @property
    def producer_name(self) -> str:
        """The producer name under which the broker remembers the unit."""
        return f"{self.key}-{self.output_partition}"

    @property
    def description(self) -> str:
        """The name of the unit in errors."""
        return "the job" if self.batch_id is None else f"batch {self.batch_id}"

    @property
    def ids(self) -> range:
        """All sequence ids of the batch, with any number of partitions."""
        if self.batch_id is None:
            return range(1 << 63)
        bits = _TAG_BITS + _ROW_BITS
        return range((self.batch_id + 1) << bits, (self.batch_id + 2) << bits)

    @property
    def rows_limit(self) -> int:
        """The number of rows that have ids."""
        return ROWS_PER_JOB if self.batch_id is None else ROWS_PER_BATCH

    @property
    def first_sequence_id(self) -> int:
        """The sequence id of the first row."""
        if self.batch_id is None:
            return self.partitions_count * ROWS_PER_JOB
        return self.ids.start + self.partitions_count % _TAGS * ROWS_PER_BATCH

    def sequence_id(self, row_number: int) -> int:
        """The sequence id of a row, by its number within the task from 0.

        Raises:
            SinkReplayError: The task has more rows than a batch has ids.
        """
        if row_number >= self.rows_limit:
            raise SinkReplayError(
                f"{self.producer_name}: more than {self.rows_limit} rows in a task; use smaller"
                " batches or more tasks"
            )
        return self.first_sequence_id + row_number


def resumed_unit(unit: UnitOfWork, topic: str, last_sequence_ids: Sequence[int]) -> UnitOfWork:
    """The unit as an earlier attempt began it, with the number of partitions at that time.

    Args:
        unit: The unit with the present number of partitions.
        topic: The topic's name, for errors.
        last_sequence_ids: The last id of each partition of the topic, in order.

    Raises:
        SinkReplayError: The earlier number is ambiguous, or larger than the present one.
    """
    stored = [(index, last) for index, last in enumerate(last_sequence_ids) if last in unit.ids]
    if not stored:
        return unit
    newest = max(last for _, last in stored)
    # Routing by key and by turn depends on the number of partitions: with another number, rows that
    # are stored already would go to other partitions, which do not know them as duplicates.
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
            f" {had} partitions, and now there are {now}: its rows would go to other partitions,"
            " and some would arrive twice; the number must not change while a batch is retried"
        )
    return replace(unit, partitions_count=candidates[0])


@dataclass(frozen=True, slots=True)
class Origin:
    """The identity of a task's work, as Spark's task context has it."""

    # The local properties `sql.streaming.queryId` and `streaming.sql.batchId`; None without a
    # stream.
    query_id: str | None
    batch_id: int | None
    output_partition: int
    # Whether Spark calls the streaming writer; `foreachBatch` of a stream calls the batch writer.
    is_stream_writer: bool


def unit_of_work(
    origin: Origin, options: WriteOptions, job_id: str, partitions_count: int
) -> UnitOfWork:
    """The unit of work of a task.

    Args:
        origin: The identity of the work.
        options: The options of the write.
        job_id: Unique for this run of a batch job; unused in streams.
        partitions_count: The number of the topic's partitions.

    Raises:
        ConfigurationError: Other work could have the same names.
    """
    key = options.idempotency_key
    if origin.is_stream_writer and (origin.query_id is None or origin.batch_id is None):
        raise ConfigurationError(
            "deliveryGuarantee: 'exactly-once': Spark gives this task no query id and batch id, by"
            " which its rows are recognized; take at-least-once"
        )
    if origin.query_id is None or origin.batch_id is None:
        return UnitOfWork(key or job_id, None, origin.output_partition, partitions_count)
    if key is None and not origin.is_stream_writer:
        raise ConfigurationError(
            "deliveryGuarantee: 'exactly-once' inside foreachBatch needs idempotencyKey, with"
            " another value for each write: two writes of one batch would be taken for the same"
        )
    key = origin.query_id if key is None else f"{key}-{origin.query_id}"
    return UnitOfWork(key, origin.batch_id, origin.output_partition, partitions_count)


class Verdict(Enum):
    """The treatment of a row."""

    SEND = "send"
    """The row is new."""
    CONFIRM = "confirm"
    """The row is the last one that the broker stored: sent again, alone, to be confirmed."""
    SKIP = "skip"
    """The row is stored already."""


class Resumption:
    """The point from which an attempt goes on in one topic partition. Owned by its sender."""

    __slots__ = ("_is_confirmed", "_last_sequence_id", "_topic", "_unit")

    def __init__(self, unit: UnitOfWork, topic: str, last_sequence_id: int) -> None:
        """`last_sequence_id` is what the broker reported when the producer was registered.

        Raises:
            SinkReplayError: A later batch is stored already under this name.
        """
        ids = unit.ids
        if last_sequence_id >= ids.stop:
            stored = last_sequence_id // len(ids) - 1
            raise SinkReplayError(
                f"{topic}: batch {stored} was already written as {unit.producer_name!r}, so"
                f" {unit.description} would be dropped as old: its checkpoint was put back to an"
                " older state, or another query runs from a copy of it; go on from the newest"
                " checkpoint, or give another idempotencyKey to write the rows again"
            )
        self._unit = unit
        self._topic = topic
        self._last_sequence_id = last_sequence_id
        # Whether the last row that the broker stored was among the rows, or it stored none.
        self._is_confirmed = last_sequence_id < ids.start

    @property
    def is_replay(self) -> bool:
        """Whether an earlier attempt stored rows here."""
        return self._last_sequence_id in self._unit.ids

    def judge(self, sequence_id: int) -> Verdict:
        """The treatment of the row with that id; ids come in ascending order.

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
        """Check that the last row that an earlier attempt stored was among the rows so far.

        Raises:
            SinkReplayError: It was not: the input differs between attempts.
        """
        if not self._is_confirmed:
            row = self._last_sequence_id - self._unit.first_sequence_id
            raise SinkReplayError(
                f"{self._topic}: an earlier attempt at {self._unit.description} stored row {row}"
                f" of {self._unit.producer_name!r} here, and this one has no such row: the input"
                " differs between attempts; sort it, with sequenceOrder content or columns:<name>"
            )


def check_options(options: WriteOptions) -> None:
    """Refuse options that contradict the delivery guarantee, before anything is written.

    Raises:
        ConfigurationError: The text names the option.
    """
    if options.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        if options.sequence_order not in (None, INPUT_ORDER):
            raise ConfigurationError(
                f"sequenceOrder: {options.sequence_order!r} has an effect with deliveryGuarantee"
                " exactly-once only; give both or neither"
            )
        return
    prefix = "deliveryGuarantee: 'exactly-once'"
    if options.topic is None:
        raise ConfigurationError(f"{prefix} needs the option topic")
    if not TopicName.parse(options.topic).is_persistent:
        raise ConfigurationError(
            f"{prefix} needs a persistent topic, and {options.topic} is not: its broker remembers"
            " no sequence ids"
        )
    if options.sequence_order is None:
        raise ConfigurationError(
            f"{prefix} needs sequenceOrder, which Spark does not know: input, where nothing"
            " shuffles the rows before they are written, otherwise content or columns:<name>,<name>"
        )
    if options.client.admin_url is None:
        raise ConfigurationError(
            f"{prefix} needs admin.url (pipelines: --admin-url or --to-admin-url): the REST API"
            " alone knows whether deduplication is on"
        )
    for name in ("producername", "initialsequenceid"):
        if name in options.client.producer:
            raise ConfigurationError(
                f"{prefix}: leave pulsar.producer.{name} out, the connector sets it"
            )


def check_deduplication(statuses: Mapping[str, str | None]) -> None:
    """Refuse topics whose broker does not drop messages that are sent twice.

    Args:
        statuses: The `deduplicationStatus` of each partition, from its statistics.

    Raises:
        ConfigurationError: The text names the first such topic.
    """
    for topic, status in statuses.items():
        if status != "Enabled":
            raise ConfigurationError(
                f"deliveryGuarantee: 'exactly-once': deduplication of {topic} is"
                f" {status or 'unknown'}. Either enable it for the namespace (pulsar-py admin"
                " namespaces set-deduplication --enable"
                f" {TopicName.parse(topic).namespace_name}) or for the broker"
                " (brokerDeduplicationEnabled=true), or take at-least-once (pipelines: --guarantee"
                " at-least-once), where a repetition may send messages twice"
            )
