"""The rows of one task on their way to topics: a producer for each partition (edge).

    rows --route--> lane --fills an entry--> producer --one entry under way--> broker

Rows go to the partition they name, else by the hash of their key, else to the partitions in turn,
by their number within the task: never by time, so that a repeated task routes alike. A lane is one
partition. Exactly once, it cuts entries by count and bytes only, and has one entry under way while
it fills the next: what is stored of a failed attempt is a run of rows from the first, without a gap
that a repeated attempt would leave out. At least once, a window of many entries is under way.
A failure of any row ends the task.

A producer that exactly once depends on ends where its place at the broker is lost, because another
attempt may have taken the name meanwhile. A name that is taken is asked for again for a while: the
attempt that has it is dead, as a rule, and the broker is about to notice.

Source: spec section 8.5.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final, Self

from pulsar_py.client import Client
from pulsar_py.client.enums import HashingScheme
from pulsar_py.client.message_router import key_partition
from pulsar_py.client.send_result import SendResult
from pulsar_py.client.topic_producer import TopicProducer
from pulsar_py.common.errors import (
    ClientTimeoutError,
    InvalidMessageError,
    ProducerBusyError,
    PulsarError,
)
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.schema import SchemaInfo
from pulsar_py.spark.client_settings import PRODUCER, PRODUCER_WITHOUT_EFFECT, translate
from pulsar_py.spark.exactly_once import Resumption, UnitOfWork, Verdict, resumed_unit
from pulsar_py.spark.options import ClientOptions
from pulsar_py.spark.sink_rows import OutgoingRows, PayloadSchema

logger = logging.getLogger(__name__)

ENTRY_MESSAGES: Final = 1000
ENTRY_BYTES: Final = 1 << 20
WINDOW_MESSAGES: Final = 20_000
WINDOW_BYTES: Final = 8 << 20
"""What may be under way of one lane, at least once."""
BUSY_SECONDS: Final = 60.0
"""How long a name may be taken by another attempt."""
_BUSY_PAUSE_SECONDS: Final = 0.25
_NEVER_MILLIS: Final = 1_000_000_000
"""A batch's delay where only count and bytes cut it."""
_SEND_TIMEOUT_MILLIS: Final = 30_000
_TIMEOUT_OPTION: Final = "send_timeout_millis"


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """What lanes are made with."""

    # Keyword arguments of `Client.create_producer`.
    arguments: Mapping[str, Any]  # Any: by option
    hashing_scheme: HashingScheme
    # When a lane cuts: an entry, or a window of entries.
    cut_messages: int
    cut_bytes: int
    # Of consecutive rows without a key, so many go to one partition.
    turn_rows: int
    timeout_seconds: float

    @classmethod
    def of(cls, options: ClientOptions, schema: SchemaInfo, unit: UnitOfWork | None) -> Self:
        """From `pulsar.producer.*`.

        Args:
            options: Of the query.
            schema: What producers register.
            unit: What is written exactly once; None for at least once.

        Raises:
            ConfigurationError: A name is unknown, or a value makes no sense.
        """
        arguments: dict[str, Any] = {
            "batching_enabled": True,
            "batching_max_messages": ENTRY_MESSAGES,
            "batching_max_allowed_size_in_bytes": ENTRY_BYTES,
            "batching_max_publish_delay_ms": 100,
            _TIMEOUT_OPTION: _SEND_TIMEOUT_MILLIS,
            "hashing_scheme": HashingScheme.JavaStringHash,
        }
        given = translate("pulsar.producer.", options.producer, PRODUCER, PRODUCER_WITHOUT_EFFECT)
        if given.get("chunking_enabled"):
            arguments["batching_enabled"] = False
        arguments |= given
        scheme = arguments["hashing_scheme"]
        timeout_millis = arguments[_TIMEOUT_OPTION]
        entry = (
            arguments["batching_max_messages"] if arguments["batching_enabled"] else 1,
            arguments["batching_max_allowed_size_in_bytes"],
        )
        # Time counts from when a lane cuts, not from when its first row came; what is under way is
        # bounded by the lanes.
        arguments |= {_TIMEOUT_OPTION: 0, "max_pending_messages": 0, "block_if_queue_full": True}
        arguments["schema"] = PayloadSchema(schema)
        if unit is not None:
            arguments["producer_name"] = unit.producer_name
            arguments["batching_max_publish_delay_ms"] = _NEVER_MILLIS
            arguments["reconnects"] = False
        cut_messages, cut_bytes = (WINDOW_MESSAGES, WINDOW_BYTES) if unit is None else entry
        return cls(
            arguments=arguments,
            hashing_scheme=scheme,
            cut_messages=cut_messages,
            cut_bytes=cut_bytes,
            turn_rows=entry[0],
            timeout_seconds=timeout_millis / 1000,
        )


class Lane:
    """One partition's rows under way. Owned by a TopicWriter.

    Invariant: at most one cut is under way.
    """

    def __init__(
        self,
        producer: TopicProducer,
        settings: ProducerSettings,
        tasks: TaskOwner,
    ) -> None:
        """Take in an open producer."""
        self.producer = producer
        # Exactly once: where it goes on.
        self.resumption: Resumption | None = None
        self._settings = settings
        self._tasks = tasks
        # Rows since the last cut.
        self._results: list[SendResult] = []
        self._bytes_count = 0
        # Ends with the error of the cut that is under way, or None.
        self._under_way: asyncio.Task[Exception | None] | None = None

    def has_room(self, size: int) -> bool:
        """Whether a row of so many bytes may join what is not cut yet."""
        return not self._results or self._bytes_count + size <= self._settings.cut_bytes

    def send(self, payload: bytes | None, size: int, **options: Any) -> bool:  # Any: by option
        """Hand a row to the producer; says whether it is time to cut.

        Raises:
            ClientError, ServiceError: It can't be sent.
        """
        self._results.append(self.producer.send_nowait(payload, **options))
        self._bytes_count += size
        return (
            len(self._results) >= self._settings.cut_messages
            or self._bytes_count >= self._settings.cut_bytes
        )

    async def cut(self) -> None:
        """Begin to send all rows so far, once those before have their receipts.

        Raises:
            ClientError, ServiceError: One of those before failed.
        """
        await self.settle()
        if self._results:
            results, self._results, self._bytes_count = self._results, [], 0
            self._under_way = self._tasks.spawn(self._flush(results), "flush")
            await asyncio.sleep(0)  # it has taken what is batched, before more is

    async def settle(self) -> None:
        """Return when what was cut last has its receipts.

        Raises:
            ClientError, ServiceError: One has none.
        """
        if self._under_way is not None:
            error = await self._under_way
            self._under_way = None
            if error is not None:
                raise error

    async def _flush(self, results: Sequence[SendResult]) -> Exception | None:
        seconds = self._settings.timeout_seconds
        try:
            async with asyncio.timeout(seconds or None):
                await self.producer.flush()
        except TimeoutError:
            return ClientTimeoutError(
                f"{self.producer.topic()}: {len(results)} rows without receipt after {seconds:g} s"
            )
        except PulsarError as error:
            return error
        failed = (each.exception() for each in results)
        return next((failure for failure in failed if failure is not None), None)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What a task did."""

    written: int = 0
    # Stored by an earlier attempt already.
    skipped: int = 0
    payload_bytes: int = 0


class TopicWriter:
    """Writes the rows of one attempt of one task. Used on the loop alone."""

    def __init__(
        self,
        client: Client,
        settings: ProducerSettings,
        *,
        topic: str | None,
        partitions: Sequence[str],
        unit: UnitOfWork | None,
    ) -> None:
        """Nothing is opened yet.

        Args:
            client: Shared; stays open.
            settings: What producers are made with.
            topic: Where all rows go; None where each says it.
            partitions: Full names of the topic's partitions; the same at each attempt.
            unit: What is written exactly once; None for at least once.
        """
        self._client = client
        self._settings = settings
        self._topic = topic or ""
        self._unit = unit
        # Partitions by topic, as the rows or the option call it.
        self._partitions: dict[str, Sequence[str]] = {} if topic is None else {topic: partitions}
        # Exactly once: by as many partitions keys and turns go as at the first attempt.
        self._routed_count = 0
        self._lanes: dict[str, Lane] = {}
        self._tasks = TaskOwner("sink")
        self._rows_count = 0
        self._written = self._skipped = self._payload_bytes = 0

    @property
    def counts(self) -> RowCounts:
        """What was done so far."""
        return RowCounts(self._written, self._skipped, self._payload_bytes)

    async def write(self, rows: OutgoingRows) -> None:
        """Send some rows; returns before all have their receipts.

        Raises:
            ClientError, ServiceError: A row failed, of these or of earlier ones.
        """
        # Hot path: batch write in `make bench-spark`.
        if self._unit is not None and not self._lanes:
            await self._open_all(self._unit)
        count = len(rows)
        for payload, topic, partition, key, ordering_key, event_time, properties, deliver_at in zip(
            rows.payloads,
            _or_none(rows.topics, count),
            _or_none(rows.partitions, count),
            _or_none(rows.keys, count),
            _or_none(rows.ordering_keys, count),
            _or_none(rows.event_times_millis, count),
            _or_none(rows.properties, count),
            _or_none(rows.deliver_at_millis, count),
            strict=True,
        ):
            lane = await self._route(topic, partition, key)
            options: dict[str, Any] = {}  # Any: by option
            size = 0 if payload is None else len(payload)
            if key is not None:
                options["partition_key"] = key
                size += 2 * len(key)
            if ordering_key is not None:
                options["ordering_key"] = ordering_key
                size += len(ordering_key)
            if event_time:
                options["event_timestamp"] = event_time
            if properties:
                options["properties"] = properties
                size += sum(4 + len(name) + len(text) for name, text in properties.items())
            if deliver_at:
                options["deliver_at"] = deliver_at
            await self._send(lane, payload, size, options)
            self._rows_count += 1

    async def _send(
        self,
        lane: Lane,
        payload: bytes | None,
        size: int,
        options: dict[str, Any],  # Any: by option
    ) -> None:
        is_alone = "deliver_at" in options
        if self._unit is not None and lane.resumption is not None:
            sequence_id = self._unit.sequence_id(self._rows_count)
            verdict = lane.resumption.judge(sequence_id)
            if verdict is Verdict.SKIP:
                self._skipped += 1
                return
            is_alone = is_alone or verdict is Verdict.CONFIRM
            options["sequence_id"] = sequence_id
        if is_alone or not lane.has_room(size):
            await lane.cut()
        if lane.send(payload, size, **options) or is_alone:
            await lane.cut()
        self._written += 1
        self._payload_bytes += size

    async def _route(
        self, topic: str | None, partition: int | None, key: str | bytes | None
    ) -> Lane:
        name = topic or self._topic
        partitions = self._partitions.get(name)
        if partitions is None:
            partitions = await self._find_partitions(name)
        count = len(partitions)
        if partition is not None and count > 1:
            if not 0 <= partition < count:
                raise InvalidMessageError(
                    f"{name}: row {self._rows_count} of the task is for partition {partition},"
                    f" there are {count}"
                )
            index = partition
        elif (count := self._routed_count or count) == 1:
            index = 0
        elif key is not None:
            text = key if isinstance(key, str) else base64.b64encode(key).decode()
            index = key_partition(self._settings.hashing_scheme, text, count)
        else:
            index = self._rows_count // self._settings.turn_rows % count
        lane = self._lanes.get(partitions[index])
        return lane if lane is not None else await self._open(partitions[index])

    async def _find_partitions(self, topic: str) -> Sequence[str]:
        if not topic:
            raise InvalidMessageError(f"row {self._rows_count} of the task: its topic is null")
        partitions = await self._client.get_topic_partitions(topic)
        self._partitions[topic] = partitions
        return partitions

    # --- producers -----------------------------------------------------------------------------

    async def _open_all(self, unit: UnitOfWork) -> None:
        """All partitions, the first one before the others: of two attempts one wins it."""
        names = self._partitions[self._topic]
        await self._open(names[0])
        await asyncio.gather(*map(self._open, names[1:]))
        lanes = [self._lanes[name] for name in names]
        stored = [lane.producer.last_sequence_id() for lane in lanes]
        self._unit = unit = resumed_unit(unit, self._topic, stored)
        self._routed_count = unit.partitions_count
        if unit.partitions_count != len(names):
            counts = {"partitions": len(names), "routed_by": unit.partitions_count}
            logger.warning("partitions were added", extra={"topic": self._topic, **counts})
        for name, lane, last in zip(names, lanes, stored, strict=True):
            lane.resumption = Resumption(unit, name, last)
            if lane.resumption.is_replay:
                logger.info("goes on after an earlier attempt", extra={"topic": name})

    async def _open(self, topic: str) -> Lane:
        producer = await self._open_producer(topic)
        lane = self._lanes[topic] = Lane(producer, self._settings, self._tasks)
        return lane

    async def _open_producer(self, topic: str) -> TopicProducer:
        clock = self._client.context.clock
        deadline = clock.monotonic_seconds() + BUSY_SECONDS
        while True:
            try:
                producer = await self._client.create_producer(topic, **self._settings.arguments)
            except ProducerBusyError:
                if self._unit is None or clock.monotonic_seconds() >= deadline:
                    raise
                logger.info("the name is taken by another attempt", extra={"topic": topic})
                await clock.sleep(_BUSY_PAUSE_SECONDS)
            else:
                assert isinstance(producer, TopicProducer), "one partition has one producer"
                return producer

    # --- ending --------------------------------------------------------------------------------

    async def finish(self) -> RowCounts:
        """Return when all rows have their receipts, and the producers are closed.

        Raises:
            SinkReplayError: They are not the rows of an earlier attempt.
            ClientError, ServiceError: A row failed.
        """
        lanes = list(self._lanes.values())
        for lane in lanes:
            await lane.cut()
        for lane in lanes:
            await lane.settle()
            if lane.resumption is not None:
                lane.resumption.check_complete()
        await asyncio.gather(*(lane.producer.close() for lane in lanes))
        await self._tasks.close()
        return self.counts

    async def abandon(self) -> None:
        """End at once: what has not gone out does not go out any more."""
        for lane in self._lanes.values():
            with suppress(PulsarError):
                lane.producer.abandon()
        await self._tasks.close()


def _or_none(column: Sequence[Any] | None, count: int) -> Iterable[Any]:  # Any: by column
    return repeat(None, count) if column is None else column
