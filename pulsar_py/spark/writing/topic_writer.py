"""Writes the rows of one task to topics, with a producer for each partition (edge).

    rows --route--> sender --fills an entry--> producer --one entry under way--> broker

Rows go to the partition that they name, else by the hash of their key, else to the partitions in
turn, by their number within the task: never by time, so that a repeated task routes alike. Each
partition has a `PartitionSender`. A failure of any row ends the task.

With exactly-once a producer does not reconnect: another attempt may have registered its name
meanwhile. If the name is taken, opening is tried again for `BUSY_SECONDS`: usually the attempt that
holds it is dead, and the broker will notice soon.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

from pulsar_py.client import Client
from pulsar_py.client.producing.message_router import key_partition
from pulsar_py.client.producing.topic_producer import TopicProducer
from pulsar_py.common.errors import (
    InvalidMessageError,
    ProducerBusyError,
    PulsarError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.spark.writing.exactly_once import Resumption, UnitOfWork, Verdict, resumed_unit
from pulsar_py.spark.writing.outgoing_rows import OutgoingRows
from pulsar_py.spark.writing.partition_sender import PartitionSender, ProducerSettings

logger = logging.getLogger(__name__)

BUSY_SECONDS: Final = 60.0
"""Time to wait for another attempt to release the producer name."""
_BUSY_PAUSE_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The counts of a task."""

    written: int = 0
    # Rows that an earlier attempt stored.
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
        """No producer is opened yet.

        Args:
            client: A shared client; stays open.
            settings: The settings of producers.
            topic: The topic of all rows; None where each names its own.
            partitions: Full names of the topic's partitions; the same at each attempt.
            unit: The work that is written exactly once; None: at least once.
        """
        self._client = client
        self._settings = settings
        self._topic = topic or ""
        self._unit = unit
        # Topic's name, as rows or the option give it -> its partitions.
        self._partitions: dict[str, Sequence[str]] = {} if topic is None else {topic: partitions}
        # With exactly-once: the number of partitions at the first attempt, which routes rows.
        self._routed_count = 0
        self._senders: dict[str, PartitionSender] = {}
        self._tasks = TaskOwner("sink")
        self._rows_count = 0
        self._written = self._skipped = self._payload_bytes = 0

    @property
    def counts(self) -> RowCounts:
        """The counts so far."""
        return RowCounts(self._written, self._skipped, self._payload_bytes)

    async def write(self, rows: OutgoingRows) -> None:
        """Send some rows; returns before all have their receipts.

        Raises:
            ClientError, ServiceError: One of these rows or of earlier ones failed.
        """
        # Hot path: batch write in `make bench-spark`.
        if self._unit is not None and not self._senders:
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
            sender = await self._route(topic, partition, key)
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
            await self._send(sender, payload, size, options)
            self._rows_count += 1

    async def _send(
        self,
        sender: PartitionSender,
        payload: bytes | None,
        size: int,
        options: dict[str, Any],  # Any: by option
    ) -> None:
        next_id: int | None = None
        # The producer sends delayed messages alone, and so ends the entry before.
        is_alone = "deliver_at" in options or sender.takes_alone(size)
        if self._unit is not None and sender.resumption is not None:
            sequence_id = self._unit.sequence_id(self._rows_count)
            verdict = sender.resumption.judge(sequence_id)
            if verdict is Verdict.SKIP:
                self._skipped += 1
                return
            is_alone = is_alone or verdict is Verdict.CONFIRM
            if options or sequence_id != sender.next_id:
                options["sequence_id"] = sequence_id
            # Otherwise the producer counts up by itself, and the row takes its fast path.
            next_id = sequence_id + 1
        if is_alone or not sender.has_room(size):
            await sender.cut()
        if is_alone and self._unit is not None:
            # The row is sent at once. With exactly-once nothing else may be under way then.
            await sender.settle()
        sender.next_id = next_id
        if sender.send(payload, size, **options) or is_alone:
            await sender.cut()
        self._written += 1
        self._payload_bytes += size

    async def _route(
        self, topic: str | None, partition: int | None, key: str | bytes | None
    ) -> PartitionSender:
        name = topic or self._topic
        partitions = self._partitions.get(name)
        if partitions is None:
            partitions = await self._find_partitions(name)
        count = len(partitions)
        if partition is not None and count > 1:
            if not 0 <= partition < count:
                raise InvalidMessageError(
                    f"{name}: row {self._rows_count} of the task is for partition {partition}, and"
                    f" the topic has {count}, from 0 to {count - 1}"
                )
            index = partition
        elif (count := self._routed_count or count) == 1:
            index = 0
        elif key is not None:
            text = key if isinstance(key, str) else base64.b64encode(key).decode()
            index = key_partition(self._settings.hashing_scheme, text, count)
        else:
            index = self._rows_count // self._settings.turn_rows % count
        sender = self._senders.get(partitions[index])
        return sender if sender is not None else await self._open(partitions[index])

    async def _find_partitions(self, topic: str) -> Sequence[str]:
        if not topic:
            raise InvalidMessageError(
                f"row {self._rows_count} of the task has null as its topic; give the option topic,"
                " or a topic in each row"
            )
        partitions = await self._client.get_topic_partitions(topic)
        self._partitions[topic] = partitions
        return partitions

    # --- producers -----------------------------------------------------------------------------

    async def _open_all(self, unit: UnitOfWork) -> None:
        """Open all partitions, the first before the others: of two attempts only one gets it."""
        names = self._partitions[self._topic]
        await self._open(names[0])
        await asyncio.gather(*map(self._open, names[1:]))
        senders = [self._senders[name] for name in names]
        stored = [sender.producer.last_sequence_id() for sender in senders]
        self._unit = unit = resumed_unit(unit, self._topic, stored)
        self._routed_count = unit.partitions_count
        if unit.partitions_count != len(names):
            counts = {"partitions": len(names), "routed_by": unit.partitions_count}
            logger.warning("partitions were added", extra={"topic": self._topic, **counts})
        for name, sender, last in zip(names, senders, stored, strict=True):
            sender.resumption = Resumption(unit, name, last)
            if sender.resumption.is_replay:
                logger.info("resuming after an earlier attempt", extra={"topic": name})

    async def _open(self, topic: str) -> PartitionSender:
        producer = await self._open_producer(topic)
        sender = self._senders[topic] = PartitionSender(producer, self._settings, self._tasks)
        return sender

    async def _open_producer(self, topic: str) -> TopicProducer:
        clock = self._client.context.clock
        deadline = clock.monotonic_seconds() + BUSY_SECONDS
        while True:
            try:
                producer = await self._client.create_producer(topic, **self._settings.arguments)
            except ProducerBusyError:
                if self._unit is None or clock.monotonic_seconds() >= deadline:
                    raise
                logger.info("another attempt has the producer name", extra={"topic": topic})
                await clock.sleep(_BUSY_PAUSE_SECONDS)
            else:
                assert isinstance(producer, TopicProducer), "one partition has one producer"
                return producer

    # --- ending --------------------------------------------------------------------------------

    async def finish(self) -> RowCounts:
        """Wait for the receipts of all rows, and close the producers.

        Raises:
            SinkReplayError: The rows are not those of an earlier attempt.
            ClientError, ServiceError: A row failed.
        """
        senders = list(self._senders.values())
        for sender in senders:
            await sender.cut()
        for sender in senders:
            await sender.settle()
            if sender.resumption is not None:
                sender.resumption.check_complete()
        await asyncio.gather(*(sender.producer.close() for sender in senders))
        await self._tasks.close()
        return self.counts

    async def abandon(self) -> None:
        """End at once: rows that were not sent yet are dropped."""
        for sender in self._senders.values():
            with suppress(PulsarError):
                sender.producer.abandon()
        await self._tasks.close()


def _or_none(column: Sequence[Any] | None, count: int) -> Iterable[Any]:  # Any: by column
    return repeat(None, count) if column is None else column
