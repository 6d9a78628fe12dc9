"""Receiving from several consumers in turn, as if they had one queue (edge).

Sources say when they may have something (`on_ready`); whoever receives takes a message of the
source whose turn it is. A turn is a few messages, so that a source that never runs dry keeps nobody
out for long, and the entries of one source are decoded together. Messages that a batch could not
take, or that a cancelled one had taken, come first for whoever receives next: nothing is lost by
cancelling.

What is delivered again must not be handed out before, too: a batch in the making forgets it, and a
source that is being moved is not asked until it is where it should be.

Source: MultiTopicsConsumerImpl and ConsumerBase in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

from pulsar_py.client.batch_receive import BatchCollector, ConsumerBatchReceivePolicy
from pulsar_py.client.message import Message
from pulsar_py.client.rotation import Rotation
from pulsar_py.client.wakeups import Wakeups
from pulsar_py.common.errors import AlreadyClosedError, PulsarError

__all__ = ["TURN_MESSAGES", "MergedReceiver", "MessageSource"]


TURN_MESSAGES: Final = 16
"""Messages that one source may give in a row while others have some, too."""


class MessageSource(Protocol):
    """What is needed of one consumer."""

    def receive_nowait(self) -> Message | None:
        """Its next message if it has one here; AlreadyClosedError if it never will again."""


S = TypeVar("S", bound=MessageSource)


class MergedReceiver(Generic[S]):
    """Takes messages from many sources; owned by the consumer that they are parts of."""

    def __init__(
        self, check_open: Callable[[], None], on_failed: Callable[[S, PulsarError], None]
    ) -> None:
        """`check_open` raises where nothing can be received any more.

        `on_failed` is told of sources that ended for good, and may raise to whoever receives.
        """
        self._check_open = check_open
        self._on_failed = on_failed
        # Sources that may have messages.
        self._ready: Rotation[S] = Rotation()
        # Whose turn it is, and how many messages are left of it; None between turns.
        self._current: S | None = None
        self._turn_left_count = 0
        # Whoever waits for one.
        self._receivers = Wakeups()
        # Taken from their sources, and not handed out: at most a batch for each that was cancelled.
        self._returned: deque[Message] = deque()
        # Batches that are being collected.
        self._collectors: list[BatchCollector] = []
        # Sources that are not asked now, and how many want that.
        self._held: Counter[S] = Counter()

    def on_ready(self, source: S) -> None:
        """It may have messages."""
        # Hot path: consume of a partitioned topic in `make bench-client`; once a group of entries.
        if self._held and source in self._held:
            return
        self._ready.add(source)
        self._receivers.wake_one()

    def discard(self, source: S) -> None:
        """It is being closed; unknown ones are fine."""
        self._ready.discard(source)
        if self._current is source:
            self._current = None

    @contextmanager
    def holding(self, source: S) -> Iterator[None]:
        """Take nothing of it meanwhile; it keeps what it has or gets."""
        self._held[source] += 1
        self.discard(source)
        try:
            yield
        finally:
            self._held[source] -= 1
            if not self._held[source]:
                del self._held[source]
                self.on_ready(source)

    def forget(self, topics: Collection[str]) -> None:
        """What came from there and was not handed out will be delivered again."""
        self.forget_returned(topics)
        for batch in self._collectors:
            kept = [each for each in batch.messages if each.entry.topic not in topics]
            batch.clear()
            for each in kept:
                batch.add(each)

    def forget_returned(self, topics: Collection[str]) -> None:
        """The same, but batches in the making keep what they have."""
        kept = [each for each in self._returned if each.entry.topic not in topics]
        self._returned = deque(kept)

    @property
    def returned_count(self) -> int:
        """Messages here that no source counts."""
        return len(self._returned)

    def close(self) -> None:
        """Wake everybody who waits: `check_open` tells them."""
        self._ready.clear()
        self._current = None
        self._returned.clear()
        for batch in self._collectors:
            batch.clear()
        self._receivers.wake_all()

    def receive_nowait(self) -> Message | None:
        """The next message if there is one here, else None."""
        # Hot path: consume of a partitioned topic in `make bench-client`.
        if self._returned:
            return self._returned.popleft()
        while (source := self._current) is not None or (source := self._begin_turn()) is not None:
            try:
                message = source.receive_nowait()
            except AlreadyClosedError:
                message = None  # it is being closed
            except PulsarError as error:
                self._current = None
                self._on_failed(source, error)
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
        """Whose turn it is now, if anybody's."""
        self._current = self._ready.next()
        self._turn_left_count = TURN_MESSAGES
        return self._current

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
        """One wake-up may stand for many messages: wake the next who waits."""
        if self._returned or self._current is not None or len(self._ready):
            self._receivers.wake_one()

    async def batch_receive(self, policy: ConsumerBatchReceivePolicy) -> list[Message]:
        """Several messages; empty if the policy's time passed without any."""
        batch = BatchCollector(policy)
        self._collectors.append(batch)
        try:
            async with asyncio.timeout(policy.timeout_seconds):
                await self._fill(batch)
        except TimeoutError:
            pass
        except BaseException:  # cancelled, or closed: who comes next gets them
            self._returned.extendleft(reversed(batch.messages))
            self._pass_on()
            raise
        finally:
            self._collectors.remove(batch)
        return batch.messages

    async def _fill(self, batch: BatchCollector) -> None:
        while not batch.is_full:
            message = self.receive_nowait()
            if message is None:
                await self._receivers.wait()
                self._check_open()
            elif batch.has_room_for(message):
                batch.add(message)
            else:
                self._returned.appendleft(message)
                break
        self._pass_on()
