"""Receives from several consumers in turn, as if they had one queue (edge).

A source (a consumer's receiver) announces that it may have messages; `receive` takes a message of
the source whose turn it is. A turn is a few messages, so that a source that never runs dry does not
keep others out for long, and the entries of one source are decoded together.

Only unfinished batches are kept here, and their messages still belong to their sources: a source
that is about to clear its queue (a new registration, a seek, a redelivery) recalls its messages;
cancelling returns messages to their sources; and only a batch that is handed out counts as
delivered.

Source: MultiTopicsConsumerImpl and ConsumerBase in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Final, Generic, Protocol, TypeVar

from pulsar_py.client.many_topics.rotation import Rotation
from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.batch_receive import BatchCollector, ConsumerBatchReceivePolicy
from pulsar_py.client.receiving.waiters import Waiters
from pulsar_py.common.errors import AlreadyClosedError, PulsarError
from pulsar_py.common.failures import OnFailure

__all__ = ["TURN_MESSAGES", "MergedReceiver", "MessageSource"]


TURN_MESSAGES: Final = 16
"""Messages that one source may give in a row while others have some, too."""


class MessageSource(Protocol):
    """A source of messages: the calls of a consumer's `Receiver` that are used here."""

    on_ready: Callable[[], None] | None
    on_recall: Callable[[], None] | None

    def take(self) -> Message | None:
        """Its next queued message, None for none; raises AlreadyClosedError if it has ended."""

    def collect(self, collector: BatchCollector, messages_limit: int) -> bool:
        """Add queued messages that fit; returns whether the next one does not fit."""

    def put_back(self, messages: list[Message]) -> None:
        """Return messages that were collected and are not delivered after all."""

    def deliver(self, messages: list[Message]) -> list[Message]:
        """Deliver the collected messages."""


S = TypeVar("S", bound=MessageSource)


class MergedReceiver(Generic[S]):
    """Takes messages from many sources; owned by the consumer that they are parts of."""

    def __init__(
        self, check_open: Callable[[], None], on_failed: Callable[[S, PulsarError], None]
    ) -> None:
        """`check_open` raises if nothing can be received any more.

        `on_failed` is called for a source that ended for good; what it raises is raised to a caller
        that receives.
        """
        self._check_open = check_open
        self._on_failed = on_failed
        # Sources that may have messages.
        self._ready: Rotation[S] = Rotation()
        # The source whose turn it is, and the messages left in its turn; None between turns.
        self._current: S | None = None
        self._turn_left_count = 0
        # Callers that wait for a message.
        self._receivers = Waiters()
        # Batches that are being collected.
        self._batches: list[_Batch[S]] = []

    def add(self, source: S) -> None:
        """Receive from it, too: it calls us when it has messages, or recalls collected ones."""
        source.on_ready = partial(self._on_ready, source)
        source.on_recall = partial(self._recall, source)
        self._on_ready(source)

    def _on_ready(self, source: S) -> None:
        """The source may have messages."""
        # Hot path: consume of a partitioned topic in `make bench-client`; once a group of entries.
        self._ready.add(source)
        self._receivers.wake_one()

    def _recall(self, source: S) -> None:
        """Return to the source its messages that were collected and not handed out."""
        for batch in reversed(self._batches):
            source.put_back(batch.remove(source))

    def discard(self, source: S) -> None:
        """Forget a source that is being closed; unknown ones are ignored."""
        source.on_ready = source.on_recall = None
        self._ready.discard(source)
        if self._current is source:
            self._current = None
        self._recall(source)

    def close(self) -> None:
        """Wake all callers that wait; `check_open` raises to them."""
        self._ready.clear()
        self._current = None
        for batch in self._batches:
            batch.clear()
        self._receivers.wake_all()

    def receive_nowait(self) -> Message | None:
        """The next message if there is one here, else None."""
        # Hot path: consume of a partitioned topic in `make bench-client`.
        while (source := self._current) is not None or (source := self._begin_turn()) is not None:
            try:
                message = source.take()
            except PulsarError as error:
                self._on_ended(source, error)
                continue
            if message is None:
                self._current = None
                continue
            self._turn_left_count -= 1
            if self._turn_left_count <= 0:
                self._current = None
                self._ready.add(source)
            return message
        return None

    def _begin_turn(self) -> S | None:
        """Begin the next source's turn, and return it; None if no source may have messages."""
        self._current = self._ready.next()
        self._turn_left_count = TURN_MESSAGES
        return self._current

    def _on_ended(self, source: S, error: PulsarError) -> None:
        self._current = None
        if not isinstance(error, AlreadyClosedError):  # with that error it is being closed
            self._on_failed(source, error)

    async def receive(self, timeout_seconds: float | None) -> Message:
        """The next message; waits for one.

        Raises:
            TimeoutError: None came in time.
        """
        message = self.receive_nowait()
        if message is not None:
            return message
        async with asyncio.timeout(timeout_seconds):
            return await self._wait_for_message()

    async def _wait_for_message(self) -> Message:
        while True:
            await self._receivers.wait()
            self._check_open()
            message = self.receive_nowait()
            if message is not None:
                self._pass_on()
                return message

    def _pass_on(self) -> None:
        """Wake the next waiting caller: a source announces a group of messages only once."""
        if self._current is not None or len(self._ready):
            self._receivers.wake_one()

    async def batch_receive(self, policy: ConsumerBatchReceivePolicy) -> list[Message]:
        """Several messages; empty if the policy's time passed without any."""
        batch: _Batch[S] = _Batch(policy)
        self._batches.append(batch)
        try:
            with OnFailure(partial(self._put_back, batch)):
                await self._collect_in_time(batch, policy.timeout_seconds)
        finally:
            self._batches.remove(batch)
        self._pass_on()
        return batch.deliver()

    async def _collect_in_time(self, batch: _Batch[S], timeout_seconds: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_seconds) as limit:
                while not self._collect(batch):
                    await self._receivers.wait()
                    self._check_open()
        except TimeoutError:
            if not limit.expired():
                raise

    def _put_back(self, batch: _Batch[S]) -> None:
        """Return the messages to their sources: the call was cancelled, or the consumer closed."""
        for source in dict.fromkeys(batch.sources):
            source.put_back(batch.remove(source))
            self._on_ready(source)

    def _collect(self, batch: _Batch[S]) -> bool:
        """Collect queued messages that fit; whether the batch is complete."""
        while (source := self._current) is not None or (source := self._begin_turn()) is not None:
            before_count = batch.messages_count
            try:
                is_enough = batch.collect(source, self._turn_left_count)
            except PulsarError as error:
                if batch.messages_count and not isinstance(error, AlreadyClosedError):
                    return True  # the next `receive` raises the error
                self._on_ended(source, error)
                continue
            self._turn_left_count -= batch.messages_count - before_count
            if self._turn_left_count <= 0:
                self._current = None
                self._ready.add(source)
            if is_enough:
                return True
            self._current = None
        return False


class _Batch(Generic[S]):
    """One batch that is being collected: its messages, and the source of each."""

    __slots__ = ("_collector", "sources")

    def __init__(self, policy: ConsumerBatchReceivePolicy) -> None:
        self._collector = BatchCollector(policy)
        # The source of each message.
        self.sources: list[S] = []

    @property
    def messages_count(self) -> int:
        return len(self.sources)

    def collect(self, source: S, messages_limit: int) -> bool:
        """As `MessageSource.collect`; if it raises, what was collected before is kept."""
        collector = self._collector
        try:
            return source.collect(collector, messages_limit)
        finally:
            self.sources += [source] * (len(collector.messages) - len(self.sources))

    def clear(self) -> None:
        self._collector.clear()
        self.sources.clear()

    def remove(self, source: S) -> list[Message]:
        """Take the source's messages out of the batch, and return them."""
        if source not in self.sources:
            return []
        pairs = self._pairs()
        self.clear()
        removed: list[Message] = []
        for each, message in pairs:
            if each is source:
                removed.append(message)
            else:
                self.sources.append(each)
                self._collector.add(message)
        return removed

    def deliver(self) -> list[Message]:
        """The messages for the application, in the order in which they came."""
        delivered: list[Message] = []
        for source, pairs in groupby(self._pairs(), key=itemgetter(0)):
            delivered += source.deliver([message for _, message in pairs])
        return delivered

    def _pairs(self) -> list[tuple[S, Message]]:
        return list(zip(self.sources, self._collector.messages, strict=True))
