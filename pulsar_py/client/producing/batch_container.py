"""Gathers messages into batches, and decides when a batch is full (pure).

`BatchContainer` gathers messages in the order in which they were sent; `KeyBasedBatchContainer`
keeps one batch a key, as Key_Shared subscriptions need it. Limits count all batches of a container
together. Messages with different `Traits` don't share a batch; the producer keeps messages away
that go out alone (delayed, possibly duplicate, or very large ones).

Sequence ids are assigned when a batch is taken, so that each batch has consecutive ones:
interleaved keys would otherwise look like duplicates to the broker.

A new way of grouping is a `Container` of its own, which `batcher` makes by the option
`batching_type` (`client/shared/enums.py`); a new limit is a field of the containers and an option
of producers (`client/options.py`). Two modules rest on when a batch is full: `message_router`
changes the partition at the same limits, and `spark/writing/partition_sender.py`, for exactly once,
sets limits that no batch of it reaches.

Source: BatchMessageContainerImpl and BatchMessageKeyBasedContainer in Pulsar's Java client.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.pending_messages import PendingEntry
from pulsar_py.client.producing.send_result import PlainSends, SendResult

__all__ = [
    "PLAIN_TRAITS",
    "Batch",
    "BatchContainer",
    "Container",
    "KeyBasedBatchContainer",
    "Traits",
]


class Traits(NamedTuple):
    """Metadata that all messages of an entry share; a batch takes messages with equal traits."""

    schema_version: bytes | None
    replicate_to: tuple[str, ...]


PLAIN_TRAITS = Traits(None, ())


def traits_of(message: OutgoingMessage) -> Traits:
    """The traits of a message."""
    return Traits(message.schema_version, message.replicate_to)


class Batch:
    """Messages that become one entry, in order; a message without options is its payload alone."""

    __slots__ = ("bytes_count", "entry", "has_own_ids", "messages", "traits")

    def __init__(self, entry: PendingEntry, traits: Traits) -> None:
        # The result, for the callers that wait for it.
        self.entry = entry
        self.traits = traits
        self.messages: list[bytes | OutgoingMessage] = []
        # Bytes reserved for them from the client's memory limit.
        self.bytes_count = 0
        # Whether a message brought a sequence id of its own.
        self.has_own_ids = False


class Container(ABC):
    """The interface of both containers.

    Invariant: `is_full` only between an `add` and the `take` that has to follow it.
    """

    __slots__ = ("bytes_count", "bytes_limit", "is_full", "messages_count", "messages_limit")

    def __init__(self, messages_limit: int, bytes_limit: int) -> None:
        self.messages_limit = messages_limit
        self.bytes_limit = bytes_limit
        self.messages_count = 0
        self.bytes_count = 0
        # Whether it has to be taken now.
        self.is_full = False

    @abstractmethod
    def add_plain(self, payload: bytes, size: int) -> SendResult | None:
        """`add` of a message that has nothing else, if a batch is open for it; None if not."""

    @abstractmethod
    def add_plain_run(
        self, payloads: Sequence[bytes], ends: Sequence[int], start: int
    ) -> PlainSends | None:
        """`add_plain` of messages from `start` on, while they fit; None if the first does not.

        `ends` has the bytes of all messages up to and with each.
        """

    @abstractmethod
    def fits(self, message: OutgoingMessage, size: int) -> bool:
        """Whether a message may be added now; if not, `take` first."""

    @abstractmethod
    def add(
        self, message: OutgoingMessage, size: int, now: float, partition_index: int
    ) -> SendResult:
        """Take a message in that fits; `size` bytes were reserved for it."""

    @property
    @abstractmethod
    def begun_at(self) -> float:
        """When the oldest message came; infinity while there is none."""

    @abstractmethod
    def take(self) -> list[Batch]:
        """All batches, in the order in which they have to go out; it is empty then."""

    def _has_room(self, size: int) -> bool:
        return not self.messages_count or self.bytes_count + size <= self.bytes_limit

    def _count(self, size: int) -> None:
        self.messages_count += 1
        self.bytes_count += size
        self.is_full = (
            self.messages_count >= self.messages_limit or self.bytes_count >= self.bytes_limit
        )

    def _reset(self) -> None:
        self.messages_count = self.bytes_count = 0
        self.is_full = False


def _join(batch: Batch, message: OutgoingMessage, size: int) -> SendResult:
    result = SendResult(batch.entry, len(batch.messages))
    batch.messages.append(message.payload if message.is_plain else message)
    batch.bytes_count += size
    if message.sequence_id is not None:
        batch.has_own_ids = True
    return result


class BatchContainer(Container):
    """One batch at a time."""

    __slots__ = ("_batch",)

    def __init__(self, messages_limit: int, bytes_limit: int) -> None:
        super().__init__(messages_limit, bytes_limit)
        self._batch: Batch | None = None

    def add_plain(self, payload: bytes, size: int) -> SendResult | None:
        """As `Container.add_plain`."""
        # Hot path: produce in `make bench-client`.
        batch = self._batch
        if batch is None or batch.traits is not PLAIN_TRAITS:
            return None
        bytes_count = self.bytes_count + size
        if bytes_count > self.bytes_limit:
            return None
        self.bytes_count = batch.bytes_count = bytes_count
        messages = batch.messages
        index = len(messages)
        messages.append(payload)
        self.messages_count = index + 1
        if index + 1 >= self.messages_limit or bytes_count >= self.bytes_limit:
            self.is_full = True
        return SendResult(batch.entry, index)

    def add_plain_run(
        self, payloads: Sequence[bytes], ends: Sequence[int], start: int
    ) -> PlainSends | None:
        """As `Container.add_plain_run`."""
        # Hot path: produce in `make bench-client`, blocking.
        batch = self._batch
        if batch is None or batch.traits is not PLAIN_TRAITS:
            return None
        begin = ends[start - 1] if start else 0
        fitting = bisect_right(ends, begin + self.bytes_limit - self.bytes_count, start) - start
        count = min(fitting, self.messages_limit - self.messages_count)
        if not count:
            return None
        index = len(batch.messages)
        batch.messages += payloads[start : start + count]
        self.messages_count += count
        self.bytes_count += ends[start + count - 1] - begin
        batch.bytes_count = self.bytes_count
        self.is_full = (
            self.messages_count >= self.messages_limit or self.bytes_count >= self.bytes_limit
        )
        return (batch.entry, index, count)

    def fits(self, message: OutgoingMessage, size: int) -> bool:
        """Whether it may join the batch."""
        batch = self._batch
        return batch is None or (self._has_room(size) and batch.traits == traits_of(message))

    def add(
        self, message: OutgoingMessage, size: int, now: float, partition_index: int
    ) -> SendResult:
        """Take a message in that fits."""
        batch = self._batch
        if batch is None:
            traits = traits_of(message)
            batch = self._batch = Batch(
                PendingEntry(now, partition_index),
                PLAIN_TRAITS if traits == PLAIN_TRAITS else traits,
            )
        self._count(size)
        return _join(batch, message, size)

    @property
    def begun_at(self) -> float:
        """When the batch's first message came."""
        return math.inf if self._batch is None else self._batch.entry.created_at

    def take(self) -> list[Batch]:
        """The batch, if there is one."""
        if self._batch is None:
            return []
        taken = [self._batch]
        self._batch = None
        self._reset()
        return taken


class KeyBasedBatchContainer(Container):
    """One batch for each ordering key, or partition key of messages without one."""

    __slots__ = ("_batches",)

    def __init__(self, messages_limit: int, bytes_limit: int) -> None:
        super().__init__(messages_limit, bytes_limit)
        # Key -> its batch, in the order of their first messages.
        self._batches: dict[bytes, Batch] = {}

    def add_plain(self, payload: bytes, size: int) -> SendResult | None:
        """None always: messages have to be looked at for their keys, if only the empty one."""
        del payload, size
        return None

    def add_plain_run(
        self, payloads: Sequence[bytes], ends: Sequence[int], start: int
    ) -> PlainSends | None:
        """None always, as `add_plain`."""
        del payloads, ends, start
        return None

    def fits(self, message: OutgoingMessage, size: int) -> bool:
        """Whether it may join the batch of its key."""
        batch = self._batches.get(message.batching_key())
        return self._has_room(size) and (batch is None or batch.traits == traits_of(message))

    def add(
        self, message: OutgoingMessage, size: int, now: float, partition_index: int
    ) -> SendResult:
        """Take a message in that fits."""
        key = message.batching_key()
        batch = self._batches.get(key)
        if batch is None:
            batch = Batch(PendingEntry(now, partition_index), traits_of(message))
            self._batches[key] = batch
        self._count(size)
        return _join(batch, message, size)

    @property
    def begun_at(self) -> float:
        """When the first message of all came."""
        return next((each.entry.created_at for each in self._batches.values()), math.inf)

    def take(self) -> list[Batch]:
        """One batch a key, in the order of the keys' first messages."""
        taken = list(self._batches.values())
        self._batches.clear()
        self._reset()
        return taken
