"""Sends a task's rows for one partition: batches them, cuts entries, and waits for receipts (edge).

With exactly-once a sender ends ("cuts") entries by count and bytes only, and has one entry under
way while it fills the next. So the stored rows of a failed attempt are a run from the first row on,
without a gap that a repeated attempt would skip. The producer's own limits are above the sender's,
so that only a cut sends anything. With at-least-once a window of many entries is under way.

A row whose sequence id follows the one before it is sent without an id: the producer counts up by
itself, which is its fast path for rows that have only a value. Each cut checks the last id.

Source: docs/adr/0019-one-entry-under-way-exactly-once.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from pulsar_py.client.producing.send_result import SendResult
from pulsar_py.client.producing.topic_producer import TopicProducer
from pulsar_py.client.shared.enums import HashingScheme
from pulsar_py.common.errors import ClientTimeoutError, PulsarError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.schema import SchemaInfo
from pulsar_py.schema.encoded_schema import EncodedSchema
from pulsar_py.spark.shared.client_settings import PRODUCER, PRODUCER_WITHOUT_EFFECT, translate
from pulsar_py.spark.shared.options import ClientOptions
from pulsar_py.spark.writing.exactly_once import Resumption, UnitOfWork

ENTRY_MESSAGES: Final = 1000
ENTRY_BYTES: Final = 1 << 20
WINDOW_MESSAGES: Final = 20_000
WINDOW_BYTES: Final = 8 << 20
"""Bytes that one sender may have under way, with at-least-once."""
_NEVER_MILLIS: Final = 1_000_000_000
"""A publish delay in milliseconds that never passes: only the sender ends batches."""
_SEND_TIMEOUT_MILLIS: Final = 30_000
_TIMEOUT_OPTION: Final = "send_timeout_millis"


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The settings of producers and their senders, from the options of a write."""

    # Keyword arguments of `Client.create_producer`.
    arguments: Mapping[str, Any]  # Any: by option
    hashing_scheme: HashingScheme
    # The size at which a sender cuts: an entry, or a window of entries.
    cut_messages: int
    cut_bytes: int
    # How many consecutive rows without a key go to one partition.
    turn_rows: int
    timeout_seconds: float

    @classmethod
    def of(cls, options: ClientOptions, schema: SchemaInfo, unit: UnitOfWork | None) -> Self:
        """Read the settings from `pulsar.producer.*`.

        Args:
            options: The options of the query.
            schema: The schema that producers register.
            unit: The work that is written exactly once; None: at least once.

        Raises:
            ConfigurationError: A name is unknown, or a value can't be read.
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
        # The sender has limits of its own for time (counted from a cut, not from its first row) and
        # for messages under way, so the producer's are off.
        arguments |= {_TIMEOUT_OPTION: 0, "max_pending_messages": 0, "block_if_queue_full": True}
        arguments["schema"] = EncodedSchema(schema)
        if unit is not None:
            arguments["producer_name"] = unit.producer_name
            arguments["batching_max_publish_delay_ms"] = _NEVER_MILLIS
            arguments["reconnects"] = False
            # Only senders may end entries: the producer would send an entry before the previous one
            # has its receipt.
            arguments["batching_max_messages"] = entry[0] + 1
            arguments["batching_max_allowed_size_in_bytes"] = 2 * entry[1]
        cut_messages, cut_bytes = (WINDOW_MESSAGES, WINDOW_BYTES) if unit is None else entry
        return cls(
            arguments=arguments,
            hashing_scheme=scheme,
            cut_messages=cut_messages,
            cut_bytes=cut_bytes,
            turn_rows=entry[0],
            timeout_seconds=timeout_millis / 1000,
        )


class PartitionSender:
    """Sends the rows of one partition. Owned by a `TopicWriter`.

    Invariant: at most one cut is under way.
    """

    def __init__(
        self,
        producer: TopicProducer,
        settings: ProducerSettings,
        tasks: TaskOwner,
    ) -> None:
        """`producer` is open."""
        self.producer = producer
        # With exactly-once: decides which rows to skip; and the sequence id after the last row's.
        self.resumption: Resumption | None = None
        self.next_id: int | None = None
        self._settings = settings
        self._tasks = tasks
        # Rows since the last cut.
        self._results: list[SendResult] = []
        self._bytes_count = 0
        # The task of the cut that is under way; its result is an error or None.
        self._under_way: asyncio.Task[Exception | None] | None = None

    def has_room(self, size: int) -> bool:
        """Whether a row of that size may join the rows since the last cut."""
        return not self._results or self._bytes_count + size <= self._settings.cut_bytes

    def takes_alone(self, size: int) -> bool:
        """Whether a row of that size is an entry of its own."""
        return self._settings.cut_messages == 1 or size >= self._settings.cut_bytes

    def send(self, payload: bytes | None, size: int, **options: Any) -> bool:  # Any: by option
        """Hand a row to the producer; returns whether it is time to cut.

        Raises:
            ClientError, ServiceError: The row can't be sent.
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
            ClientError, ServiceError: A row of an earlier cut failed.
        """
        await self.settle()
        if self._results:
            results, self._results, self._bytes_count = self._results, [], 0
            last_id = None if self.next_id is None else self.next_id - 1
            self._under_way = self._tasks.spawn(self._flush(results, last_id), "flush")
            await asyncio.sleep(0)  # `flush` takes the rows so far, and none that is sent later

    async def settle(self) -> None:
        """Wait until the rows of the last cut have their receipts.

        Raises:
            ClientError, ServiceError: A row failed.
        """
        if self._under_way is not None:
            error = await self._under_way
            self._under_way = None
            if error is not None:
                raise error

    async def _flush(self, results: Sequence[SendResult], last_id: int | None) -> Exception | None:
        seconds = self._settings.timeout_seconds
        try:
            async with asyncio.timeout(seconds or None):
                await self.producer.flush()
        except TimeoutError:
            return ClientTimeoutError(
                f"{self.producer.topic()}: {len(results)} rows have no receipt after {seconds:g} s,"
                " the limit of pulsar.producer.sendTimeoutMs"
            )
        except PulsarError as error:
            return error
        failed = (each.exception() for each in results)
        failure = next((each for each in failed if each is not None), None)
        if failure is None and last_id is not None:
            stored = self.producer.last_sequence_id()
            assert stored == last_id, f"row {last_id} went out as {stored}"
        return failure
