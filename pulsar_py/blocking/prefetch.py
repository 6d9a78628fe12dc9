"""`Prefetch`: brings messages from the loop to the threads that receive, many at a time (edge).

    asyncio consumer --(loop: a run of messages)--> messages --(threads: popleft)--> application

A thread that finds no message asks the loop for more, which hands over what is queued, or waits for
some: one wake-up a run. From then on the loop feeds: it hands over what comes without being asked,
for as long as threads take it before more comes, so that messages that come one at a time cost one
wake-up each, that of the thread: they are handed over while the loop reads them from the socket, or
the thread reads them itself (`SocketWait`). A run has at most half as many messages as the receiver
queue. It has one, and nothing is fed, where the consumer has to see each message when it is handed
out (interceptors, time-outs of acknowledgements, dead letters).

What always holds: each message is taken once. Where the asyncio consumer clears its queue (a new
registration, a seek, a redelivery), messages of a run that nobody took go back to it and are
cleared with it. A consumer of several topics keeps a run over a new registration, so that some may
come twice; `dropping` clears it for a seek and a redelivery.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Generic

from pulsar_py.blocking.client_thread import ClientThread, Signal, seconds_left
from pulsar_py.blocking.socket_wait import SocketSignal, SocketWait, can_wait_at_sockets
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.batch_receive import BatchCollector, ConsumerBatchReceivePolicy
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.errors import ClientTimeoutError, PulsarError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.tasks import TaskOwner

if TYPE_CHECKING:
    from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer

__all__ = ["LARGEST_RUN", "Prefetch"]

LARGEST_RUN: Final = 1000
_RUN_BYTES: Final = 4 << 20
_AHEAD_COUNT: Final = 8
"""Messages that nobody took, from which on no more are fed."""

_TELL_SECONDS: Final = 0.02
"""How much later messages are told of that a thread has read by itself."""

_clock = SystemClock()


class _Request:
    """One thread that waits for a message."""

    __slots__ = ("error", "signal")

    def __init__(self) -> None:
        self.signal: Signal | SocketSignal = Signal()
        self.error: PulsarError | None = None


class Prefetch(Generic[T_co]):
    """The messages on their way from one consumer to its threads; owned by that consumer."""

    def __init__(
        self,
        thread: ClientThread,
        consumer: Consumer[T_co] | MultiTopicsConsumer[T_co],
        *,
        run_limit: int,
        on_fetch: Callable[[], None],
        is_told_of_reads: bool = False,
    ) -> None:
        """Made in the loop.

        Args:
            thread: The loop's.
            consumer: Whose messages they are.
            run_limit: The most messages of a run.
            on_fetch: Called in the loop before messages are handed over.
            is_told_of_reads: Whether `on_fetch` is called, a bit later, also for messages that
                threads read by themselves.
        """
        self._thread = thread
        self._consumer = consumer
        self._run_limit = run_limit
        self._on_fetch = on_fetch
        # Threads take from the left.
        self.messages: deque[Message[T_co]] = deque()
        # In the loop: the last runs that were not taken whole, and what was handed out before them.
        self._run: list[Message[T_co]] = []
        self._last: Message[T_co] | None = None
        # Guards the two that follow; held for a moment, by threads and by the loop. A thread calls
        # nothing meanwhile: the main thread would run handlers of signals there, and one that waits
        # for the loop would stop both.
        self._lock = threading.Lock()
        self._requests: list[_Request] = []
        # Whether `_waiting` will hand over the next message to whoever has asked by then.
        self._is_feeding = False
        # What the consumer raised after it had given some messages; raised with the next fetch.
        self._error: PulsarError | None = None
        self._waiting: asyncio.Task[None] | None = None
        self._tasks = TaskOwner(f"prefetch of {consumer.topic()}")
        # By which a thread reads messages itself, None where none can; the request of the one that
        # does.
        self._at_socket: SocketWait[T_co] | None = None
        self._reading: _Request | None = None
        self._is_told_of_reads = is_told_of_reads
        # Whether it will be told of what was read; plain, since the turn guards it.
        self._is_telling = False
        # Set unless a seek is under way.
        self._may_fetch = asyncio.Event()
        self._may_fetch.set()
        if isinstance(consumer, Consumer):
            consumer.receiver.on_recall = self._recall
            consumer.receiver.take_over = self._take_over
            consumer.receiver.is_awaited = lambda: bool(self._requests)
            if can_wait_at_sockets:
                self._at_socket = SocketWait(
                    thread.loop,
                    consumer,
                    is_wanted=self._is_reading_wanted,
                    took=self._have_read,
                )

    # --- called by threads of the application --------------------------------------------------

    def take(self, timeout_millis: int | None = None) -> Message[T_co]:
        """The next message; waits for one. Raises as `Consumer.receive`."""
        messages = self.messages
        seconds = None if timeout_millis is None else timeout_millis / 1000
        deadline = None if seconds is None else _clock.monotonic_seconds() + seconds
        while True:
            try:
                return messages.popleft()
            except IndexError:
                pass
            try:
                self._fetch(seconds_left(deadline))
            except TimeoutError:
                if deadline is None or _clock.monotonic_seconds() < deadline:
                    raise
                raise ClientTimeoutError(
                    f"{self._consumer!r}: no message within {seconds:g} s"
                ) from None

    def _fetch(self, seconds: float | None) -> None:
        self._thread.check_may_wait()
        request = _Request()
        asked = (request,)
        at_socket = self._at_socket
        signal = None if at_socket is None else at_socket.begin()
        is_reading = False
        try:
            with self._lock:  # and no call, see `__init__`
                if self.messages:  # came meanwhile
                    return
                is_fed = self._is_feeding
                if is_fed:
                    self._requests += asked
                    if signal is not None and self._reading is None:
                        request.signal = signal
                        self._reading = request
                        is_reading = True
            if not is_fed:
                self._thread.post(lambda: self._want(request))
            wait = at_socket.wait if is_reading and at_socket is not None else request.signal.wait
            wait(seconds)
        except BaseException:  # a time limit, Ctrl-C; raised again
            if at_socket is not None and self._reading is request:
                at_socket.forget_signal()
            self._thread.post(lambda: self._withdraw(request))
            raise
        finally:
            if is_reading:
                self._reading = None
        if request.error is not None:
            raise request.error.with_traceback(None)

    def _is_reading_wanted(self) -> bool:
        """Whether the thread that reads has not been told of anything; in the loop's turn."""
        # Hot path: latency in `make bench-client`, blocking.
        consumer = self._consumer
        assert isinstance(consumer, Consumer), "see `__init__`"
        with self._lock:
            if self.messages or self._reading not in self._requests:
                return False
        return (
            self._may_fetch.is_set()
            and consumer.hands_out_runs
            and consumer.receiver.waiters_count <= 1  # `_feed`
        )

    def _have_read(self, run: list[Message[T_co]]) -> bool:
        """Add what the thread that reads has read; in the loop's turn. Whether it is anything."""
        # Hot path: latency in `make bench-client`, blocking.
        reading = self._reading
        if not run or reading is None:
            return False
        if self._run:
            self._last = self._run[-1]
        self._run = run
        with self._lock:
            self.messages.extend(run)
            self._requests.remove(reading)
            if len(run) > 1:  # a batch: other threads may have of it, too
                self._tell_requests()
        if self._is_told_of_reads and not self._is_telling:
            self._is_telling = True
            self._thread.post(self._tell_later)
        return True

    def _tell_later(self) -> None:
        self._thread.loop.call_later(_TELL_SECONDS, self._tell_of_reads)

    def _tell_of_reads(self) -> None:
        self._is_telling = False
        self._on_fetch()

    def take_nowait(self) -> Message[T_co] | None:
        """The next message if there is one here, else None. Raises as `Consumer.receive`."""
        if not self.messages:
            self._thread.call(self._fetch_queued)
        try:
            return self.messages.popleft()
        except IndexError:
            return None

    def take_batch(self, policy: ConsumerBatchReceivePolicy) -> list[Message[T_co]]:
        """Messages that were brought here and nobody took, as many as fit; may be empty."""
        collector = BatchCollector(policy)
        while self.messages and not collector.is_full:
            try:
                message = self.messages.popleft()
            except IndexError:  # another thread took it
                break
            if not collector.has_room_for(message):
                self.messages.appendleft(message)
                break
            collector.add(message)
        return collector.messages

    # --- called by the loop --------------------------------------------------------------------

    def _fetch_queued(self) -> None:
        self._on_fetch()
        if self.messages:
            return
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self._arrived(self._take_run(self._run_limit))

    def _want(self, request: _Request) -> None:
        try:
            if self._may_fetch.is_set():
                self._fetch_queued()
        except PulsarError as error:
            request.error = error
            request.signal.set()
            return
        with self._lock:
            if self.messages:
                request.signal.set()
            else:
                self._requests.append(request)
        if self._goes_on() and self._waiting is None:
            self._waiting = self._tasks.spawn(self._feed(), "feed")

    def _withdraw(self, request: _Request) -> None:
        with self._lock:
            if request in self._requests:
                self._requests.remove(request)
            if self._reading is request:
                self._reading = None
                self._is_telling = False  # Ctrl-C may have come between that and the call
            self._tell_requests()  # of a message that it was told of and did not take
        if self._at_socket is not None:
            self._at_socket.withdraw()
        self.stop_feeding()

    def stop_feeding(self) -> None:
        """Fetch nothing ahead; goes on where a thread waits."""
        with self._lock:
            if self._requests or self._waiting is None:
                return
            self._is_feeding = False
        self._waiting.cancel()
        self._waiting = None

    async def _feed(self) -> None:
        """Hand over messages as they come, until threads neither wait nor take them."""
        task = asyncio.current_task()
        try:
            while self._goes_on():
                await self._may_fetch.wait()
                message = await self._consumer.receive()
                self._on_fetch()
                self._arrived([message, *self._take_more()])
        except PulsarError as error:
            self._fail(error)
        finally:
            if self._waiting is task:
                self._waiting = None

    def _take_over(self) -> bool:
        """Messages came: hand them over if threads wait, and nobody else; whether all were taken.

        `_feed` would do the same when its task is woken, which is a turn of the loop later.
        """
        # Hot path: latency in `make bench-client`: 0.03 ms sooner.
        consumer = self._consumer
        assert isinstance(consumer, Consumer), "see `__init__`"
        if not self._requests or not self._may_fetch.is_set() or not consumer.hands_out_runs:
            return False
        receiver = consumer.receiver
        if receiver.waiters_count != 1 or receiver.closed_error is not None:
            return False  # one is `_feed`
        self._on_fetch()
        self._arrived(list(receiver.take_run(self._run_limit, _RUN_BYTES)))
        if not self._goes_on():
            self.stop_feeding()
        return receiver.queue.is_empty

    def _goes_on(self) -> bool:
        """Whether to wait for the next message; if not, the next thread asks for it."""
        with self._lock:
            has_room = len(self.messages) < min(_AHEAD_COUNT, self._run_limit - 1)
            self._is_feeding = bool(self._requests) or has_room
            return self._is_feeding

    def _take_run(self, limit: int) -> list[Message[T_co]]:
        """Queued messages, up to `limit`; raises what `receive` raises."""
        consumer = self._consumer
        if isinstance(consumer, Consumer) and consumer.hands_out_runs:
            receiver = consumer.receiver
            if receiver.closed_error is not None:  # those that are decoded come before the error
                limit = min(limit, len(receiver.queue.ready) or 1)
            return list(receiver.take_run(limit, _RUN_BYTES)) if limit > 0 else []
        taken: list[Message[T_co]] = []
        try:
            while len(taken) < limit and (message := consumer.receive_nowait()) is not None:
                taken.append(message)
        except PulsarError as error:
            if not taken:
                raise
            self._error = error
        return taken

    def _take_more(self) -> list[Message[T_co]]:
        """Queued messages that follow one that is in hand already; raises nothing."""
        try:
            return self._take_run(self._run_limit - 1 - len(self.messages))
        except PulsarError as error:
            self._error = error
            return []

    def _arrived(self, run: list[Message[T_co]]) -> None:
        # Hot path: latency in `make bench-client`.
        if not run:
            return
        waiting_count = len(self.messages)
        # More wait than are noted where a batch has put one back that counted as taken.
        if taken_count := max(len(self._run) - waiting_count, 0):
            self._last = self._run[taken_count - 1]
        self._run = [*self._run[taken_count:], *run] if waiting_count else run
        with self._lock:
            self.messages.extend(run)
            self._tell_requests()

    def _tell_requests(self) -> None:
        """Wake threads for which there are messages; the lock is held."""
        for _ in range(min(len(self.messages), len(self._requests))):
            self._requests.pop(0).signal.set()

    def _fail(self, error: PulsarError) -> None:
        with self._lock:
            requests, self._requests = self._requests, []
            self._is_feeding = False
        if not requests:
            self._error = error
        for request in requests:
            request.error = error
            request.signal.set()

    def _drop(self) -> list[Message[T_co]]:
        dropped = []
        while self.messages:
            try:
                dropped.append(self.messages.popleft())
            except IndexError:  # a thread took it
                break
        return dropped

    def _recall(self) -> None:
        """Give back to the consumer's queue what nobody took."""
        assert isinstance(self._consumer, Consumer), "see `__init__`"
        dropped = self._drop()
        if not dropped:
            return
        receiver, run = self._consumer.receiver, self._run
        if receiver.last is run[-1]:  # a seek has moved it otherwise
            taken = run[: len(run) - len(dropped)]
            receiver.last = taken[-1] if taken else self._last
        self._run = []
        receiver.put_back(dropped)

    @property
    def last_taken(self) -> list[Message[T_co]]:
        """The messages of the last run that were taken; in the order in which they came."""
        return self._run[: len(self._run) - len(self.messages)]

    @asynccontextmanager
    async def dropping(self) -> AsyncIterator[None]:
        """Within it nothing is fetched; what was fetched before and not taken is dropped."""
        if not isinstance(self._consumer, Consumer):  # a `Consumer` takes back instead
            self._drop()
            self._run = []
        self._may_fetch.clear()
        self.stop_feeding()
        try:
            yield
        finally:
            self._may_fetch.set()

    def close(self) -> None:
        """The consumer is closed: drop what nobody took; threads that wait get its error."""
        self._drop()
        self._run = []
