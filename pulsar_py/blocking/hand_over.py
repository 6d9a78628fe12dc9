"""`HandOver`: takes the messages of a producer's threads to the loop, many at a time (edge).

    thread: send_nowait --> outgoing --(one wake-up a burst)--> loop: submit --> asyncio producer

A message costs an append under a lock; the loop is woken for the first one. While messages come
fast, the loop looks again by itself after a millisecond, so that a burst is one wake-up and not
one for each message. Somebody who waits for a result or a flush wakes the loop at once.

What always holds: messages reach the asyncio producer in the order in which they were added; the
list holds at most `_OUTGOING_BYTES` (and one message more), and together with the messages that
wait for memory and those without receipt at most `max_pending_messages`.

The main thread runs handlers of signals where Python calls something, and such a handler may wait
for the loop, as one that closes the client does. So a thread calls nothing while it holds the lock
that the loop takes, too; only `send_in_turn` does, which the main thread does not come to while it
has handlers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Final

from pulsar_py.blocking.client_thread import ClientThread, Signal
from pulsar_py.blocking.send_result import Outgoing, SendResult, SendRun
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.common.errors import MemoryBufferFullError, ProducerQueueFullError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.client.producing.producer import Producer

__all__ = ["HandOver"]

logger = logging.getLogger(__name__)

_OUTGOING_BYTES: Final = 1 << 20
_BURST_COUNT: Final = 8
_BURST_SECONDS: Final = 0.0002
"""So many messages at once, or wake-ups so close together, are a burst ..."""
_COLLECTING_SECONDS: Final = 0.001
"""... of which the loop takes what came within this time."""
_UNLIMITED: Final = 1 << 30
_new: Final = object.__new__
_ONLY_BYTES: Final = frozenset((bytes,))
_ROOM_SHARE: Final = 8
"""Threads that wait for room go on when this part of what is allowed has its receipt: late enough
for one wake-up to serve many messages, so early that the broker does not run dry meanwhile."""


class HandOver:
    """The way of one blocking producer's messages to the loop."""

    def __init__(self, thread: ClientThread, producer: Producer) -> None:
        self._thread = thread
        self._producer = producer
        self._clock = SystemClock()
        # Taken again by a finalizer that sends, which may interrupt a send of its thread.
        self._lock = threading.RLock()
        # Messages that the loop has not taken yet, how many, and their payloads' bytes; and what to
        # call when one of them is done.
        self._outgoing = SendRun(self)
        self._outgoing_count = 0
        self._outgoing_bytes = 0
        self._observed: list[tuple[SendResult, Callable[[], None]]] = []
        # Whether the loop will take them by itself: it was woken, or has a timer. Threads try
        # `send_in_turn` first while that is not so.
        self.is_due = False
        # Up to how many there may be before the limits are looked at again; how often they were,
        # and how often the loop took messages, which moves them from one count to another.
        self._outgoing_limit = 0
        self._looks_count = 0
        self._takes_count = 0
        # In the loop: when it last took messages; those that wait for memory, with their runs, and
        # the task that waits; threads that wait for room; the first refusal since the last flush.
        self._taken_at = 0.0
        self._stalled: list[tuple[Outgoing, SendRun]] = []
        self._stall: asyncio.Task[None] | None = None
        self._tasks = TaskOwner(f"hand-over to {producer.topic()}")
        self._room_signals: list[Signal] = []
        self._refusal: Exception | None = None

    # --- called by threads of the application --------------------------------------------------

    def add(self, message: Outgoing, size: int, *, wakes: bool = True) -> SendResult:
        """Add a message; waits for room where the producer blocks if full.

        Args:
            message: The message.
            size: Bytes of its payload.
            wakes: Whether to see to it that the loop takes it; False if the caller does.

        Raises:
            ProducerQueueFullError: There is no room, and it does not block.
            TimeoutError: No room within the time limit around.
        """
        # Hot path: produce in `make bench-client`.
        result, added = _new(SendResult), (message,)
        has_to_wake = False
        try:
            while True:
                with self._lock:  # and no call: see above
                    place = self._outgoing_count
                    if place < self._outgoing_limit and self._outgoing_bytes < _OUTGOING_BYTES:
                        self._outgoing_count = place + 1
                        self._outgoing_bytes += size
                        result._run = run = self._outgoing  # noqa: SLF001 - instead of its __init__
                        result._place = place  # noqa: SLF001 - as above
                        messages = run.messages
                        messages += added
                        if self.is_due or not wakes:
                            return result
                        self.is_due = has_to_wake = True
                        break
                self._make_room()
            self._thread.post(self._on_due)
        except BaseException:  # Ctrl-C; raised again
            if has_to_wake:  # the next message does
                self.is_due = False
            raise
        return result

    def send_in_turn(self, payload: bytes) -> SendResult | None:
        """Send a message from this thread, which has the loop's turn; None if the loop has to."""
        # Hot path: latency in `make bench-client`.
        with self._lock:
            if self.is_due or self._outgoing.messages or self._stalled:
                return None
            if self._outgoing_limit <= 0 and not self._count_room():
                return None
            sends = self._producer.submit_alone(payload)
            if sends is None:
                return None
            self._outgoing_limit -= 1
        result = _new(SendResult)
        result._run = SendRun(self, sends)  # noqa: SLF001 - instead of its __init__
        result._place = 0  # noqa: SLF001 - as above
        return result

    def send(self, message: Outgoing, size: int) -> MessageId:
        """Add a message and wait until it is stored, which is one wake-up of the loop and one here.

        Raises:
            ProducerQueueFullError: There is no room, and it does not block.
            TimeoutError: No room, or no receipt, within the time limit around.
            ClientError, ServiceError: The message failed; see `Producer.send`.
        """
        self._thread.check_may_wait()
        signal = Signal()
        if not self.is_due and isinstance(message, bytes):
            alone = self._thread.loop.call_between(self.send_in_turn, message)
            if alone is not None:
                self.add_observer(alone, signal.set)
                signal.wait()
                return alone.result()
        result = self.add(message, size, wakes=False)

        def submit() -> None:
            self.take()
            self._producer.flush_soon()
            result.observe(signal.set)

        self._thread.post(submit)
        signal.wait()
        return result.result()

    def _make_room(self) -> None:
        """Count the room there is; without any, wait for some."""
        if self._outgoing_bytes >= _OUTGOING_BYTES:
            self._wait(self._tell_taken)
        if self._outgoing_count < self._outgoing_limit or self._count_room():
            return
        if not self._producer.blocks_if_full():
            limit = self._producer.pending_limit()
            pending_count = limit - self._outgoing_limit + self._outgoing_count
            raise ProducerQueueFullError(
                f"{self._producer.topic()}: {pending_count} messages have no receipt, "
                f"max_pending_messages is {limit}"
            )
        self._wait(self._tell_room)

    def _count_room(self) -> bool:
        """Look at the limits, as no room is left; returns whether there is some now."""
        while True:
            looks_count, takes_count = self._looks_count, self._takes_count
            limit = self._producer.pending_limit() or _UNLIMITED
            pending_count = self._producer.pending_count() + len(self._stalled)
            with self._lock:  # and no call: see above
                if looks_count == self._looks_count:  # no other thread did meanwhile
                    if takes_count != self._takes_count:
                        continue
                    self._looks_count = looks_count + 1
                    self._outgoing_limit = limit - pending_count
                return self._outgoing_count < self._outgoing_limit

    def _wait(self, tell: Callable[[Signal], None]) -> None:
        signal = Signal()
        self._thread.check_may_wait()
        self._thread.post(lambda: tell(signal))
        signal.wait()

    def observe(self, observe: Callable[[], None]) -> None:
        """Have the loop take what there is, at once, and then call `observe`; may be waited for."""
        self._thread.check_may_wait()
        self._post_taking(observe)

    def add_observer(self, result: SendResult, observer: Callable[[], None]) -> None:
        """Have `observer` called when the result is done."""
        # Hot path: latency in `make bench-client`, blocking.
        run = result._run  # noqa: SLF001 - its other half
        if run is self._outgoing:  # no wake-up for it
            observed = ((result, observer),)
            with self._lock:  # and no call: see above
                if run is self._outgoing:
                    self._observed += observed
                    return
        if not self._thread.loop.call_between(result.observe_undone, observer):
            self._thread.post(lambda: result.observe(observer))

    def flush_soon(self) -> None:
        """Have the loop take what there is, and send open batches without waiting for more."""
        self._post_taking(self._producer.flush_soon)

    def _post_taking(self, then: Callable[[], None]) -> None:
        def take() -> None:
            self.take()
            then()

        self._thread.post(take)

    # --- called by the loop --------------------------------------------------------------------

    def _on_due(self) -> None:
        # Hot path: latency in `make bench-client`: what can be done after submitting is.
        now = self._clock.monotonic_seconds()
        is_near = now - self._taken_at < _BURST_SECONDS
        self._taken_at = now
        count = self.take()
        is_burst = count > _BURST_COUNT or (is_near and count > 0)
        with self._lock:
            has_more = bool(self._outgoing.messages)
            self.is_due = is_burst or has_more
        if is_burst:
            self._thread.loop.call_later(_COLLECTING_SECONDS, self._on_due)
        elif has_more:
            self._thread.post(self._on_due)

    def take(self) -> int:
        """Submit the queued messages to the asyncio producer; returns how many there were."""
        with self._lock:
            run = self._outgoing
            if not run.messages:
                return 0
            self._outgoing = SendRun(self)
            self._outgoing_limit -= self._outgoing_count
            self._outgoing_count = self._outgoing_bytes = 0
            self._takes_count += 1
            observed, self._observed = self._observed, []
        for result, observer in observed:
            result.observe(observer)
        messages, run.messages = run.messages, []
        if self._stalled:
            self._stalled += zip(messages, repeat(run))
        else:
            self._submit(messages, run)
        return len(messages)

    def _submit(self, messages: Sequence[Outgoing], run: SendRun) -> None:
        # Hot path: produce in `make bench-client`.
        if len(messages) > 1 and set(map(type, messages)) == _ONLY_BYTES:
            sends = self._producer.submit_plain_run(messages)  # type: ignore[arg-type]  # bytes
            if sends:
                run.submitted(sends)
                return
        self._submit_each(list(zip(messages, repeat(run))))

    def _submit_each(self, taken: Sequence[tuple[Outgoing, SendRun]]) -> None:
        # Hot path: latency in `make bench-client`.
        send_plain = self._producer._send_plain  # noqa: SLF001 - its other half
        send_message = self._producer._send_message  # noqa: SLF001 - as above
        for index, (message, run) in enumerate(taken):
            try:
                send = send_plain if message.__class__ is bytes else send_message
                inner = send(message)  # type: ignore[arg-type]  # not bytes
            except MemoryBufferFullError as error:
                if self._producer.blocks_if_full():
                    self._stalled = list(taken[index:])
                    self._stall = self._tasks.spawn(self._submit_stalled(), "wait for memory")
                    return
                self._refused(run, error)
            except Exception as error:  # noqa: BLE001 - raised where the result is asked for
                self._refused(run, error)
            else:
                run.submitted([inner._parts])  # noqa: SLF001 - its other half

    async def _submit_stalled(self) -> None:
        """Submit messages one by one, as the client's memory allows."""
        while self._stalled:
            message, run = self._stalled[0]
            outgoing = message if isinstance(message, OutgoingMessage) else OutgoingMessage(message)
            try:
                inner = await self._producer.submit_waiting(outgoing)
            except Exception as error:  # noqa: BLE001 - as in `_submit`
                self._refused(run, error)
            else:
                run.submitted([inner._parts])  # noqa: SLF001 - its other half
            self._stalled.pop(0)
        self._tell_waiting()

    def _refused(self, run: SendRun, error: Exception) -> None:
        if self._refusal is None:
            self._refusal = error
        if not run.refused(error):
            topic = self._producer.topic()
            logger.warning(
                "%s: message not sent: %s",
                topic,
                error,
                extra={"topic": topic, "error": str(error)},
            )

    def _tell_taken(self, signal: Signal) -> None:
        self.take()
        if self._stalled:
            self._room_signals.append(signal)
        else:
            signal.set()

    def _tell_room(self, signal: Signal) -> None:
        """Set the signal when a part of what is allowed has its receipt; see `_ROOM_SHARE`."""
        self.take()
        self._room_signals.append(signal)
        self._tell_waiting()

    def _tell_waiting(self) -> None:
        if not self._room_signals or self._stalled:
            return
        producer = self._producer
        limit = producer.pending_limit()
        enough = limit - max(limit // _ROOM_SHARE, 1)
        if producer.is_closed or not limit or producer.pending_count() <= enough:
            producer.watch_room(None)
            signals, self._room_signals = self._room_signals, []
            for each in signals:
                each.set()
        else:
            producer.watch_room(self._tell_waiting)

    async def flushed(self) -> None:
        """As `Producer.flush` of what was added so far."""
        self.take()
        if self._stall is not None:
            await asyncio.wait([self._stall])
        refusal, self._refusal = self._refusal, None
        await self._producer.flush()
        if refusal is not None:
            raise refusal.with_traceback(None)

    def close(self) -> None:
        """Hand over what there is, before the producer closes; threads that wait hear of it."""
        self.take()

    def closed(self) -> None:
        """The producer has closed: what was not submitted is refused by it, and nobody waits."""
        self._tasks.abandon()
        stalled, self._stalled = self._stalled, []
        self._submit_each(stalled)
        self._tell_waiting()
