"""`SocketWait`: a thread's wait for a message, at the socket that it will come from (edge).

    loop:    ... waits ...                      (wakes `signal` if it has a message, or an error)
    thread:  takes the reading | waits for socket and signal | [turn: reads] | gives it back

A thread that waits for a message of a consumer takes the reading of its connection, while that is
lent (`LentReading`), and reads by itself: neither the loop nor a second wake-up is between the
socket and the application, 0.03 of 0.4 ms. What it reads and must not handle the loop handles, and
wakes it as it wakes any thread. ADR 43 has the reasons.

Callbacks of sends are called here, too, if their receipts come, but only by a thread that waits
without a time limit: it may hold a lock that a callback waits for, and would wait with the loop
until its time is over, but for ever if it called the callback itself. Without a limit the loop
would have waited for ever as well.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Final, Generic

from pulsar_py.blocking.client_thread import longest_wait, seconds_left, wait_is_over
from pulsar_py.blocking.turn_loop import TurnLoop
from pulsar_py.client.brokers.thread_reads import Read, ThreadReads
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.loops.clock import SystemClock

__all__ = ["SocketSignal", "SocketWait", "can_wait_at_sockets"]

can_wait_at_sockets: Final = hasattr(os, "eventfd") and hasattr(select, "poll")

_LONGEST_SECONDS: Final = 2_000_000
"""23 days; a longer wait is one without a limit: `poll` takes no longer one."""

_clock = SystemClock()


class SocketSignal:
    """As `Signal`, and may be waited for together with a socket; used again and again."""

    __slots__ = ("_event", "_poll", "_socket")

    def __init__(self) -> None:
        """Raises OSError if the process has no descriptor for it."""
        self._event = -1
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._event, select.POLLIN)
        # The socket that is waited for.
        self._socket = -1

    def set(self) -> None:
        """End the wait, or the next one."""
        os.eventfd_write(self._event, 1)

    def wait(self, seconds: float | None = None) -> None:
        """As `Signal.wait`."""
        self._watch(-1)
        self._wait(longest_wait(seconds))

    def wait_beside(self, file_number: int, seconds: float | None) -> bool:
        """Return when it is set, or that socket has something to read; whether it has.

        Raises:
            TimeoutError: Neither in time.
        """
        # Hot path: latency in `make bench-client`, blocking.
        if file_number != self._socket:
            self._watch(file_number)
        return self._wait(seconds)

    def _wait(self, seconds: float | None) -> bool:
        millis = None if seconds is None or seconds > _LONGEST_SECONDS else seconds * 1e3
        ready = self._poll.poll(millis)
        if not ready:
            raise wait_is_over()
        is_set = False
        for file_number, _ in ready:
            if file_number == self._event:
                is_set = True
        if is_set:
            os.eventfd_read(self._event)
        return not is_set

    def _watch(self, file_number: int) -> None:
        if self._socket >= 0:
            self._poll.unregister(self._socket)
        self._socket = file_number
        if file_number >= 0:
            self._poll.register(file_number, select.POLLIN)

    def __del__(self) -> None:
        if self._event >= 0:
            os.close(self._event)


class SocketWait(Generic[T_co]):
    """One consumer's; one of its threads may use it at a time."""

    def __init__(
        self,
        loop: TurnLoop,
        consumer: Consumer[T_co],
        *,
        is_wanted: Callable[[], bool],
        took: Callable[[list[Message[T_co]]], bool],
    ) -> None:
        """Neither is called before `wait`.

        Args:
            loop: That of the consumer.
            consumer: Whose messages are waited for.
            is_wanted: Whether the thread still waits, and nobody else: called in the loop's turn.
            took: Called there with messages, returns whether there are any.
        """
        self._loop = loop
        self._consumer = consumer
        self._signal: SocketSignal | None = None  # made when it is needed
        # What the connection asks, and calls; see `MessageReader`.
        self.consumer_id: Final = consumer.receiver.consumer_id
        self.is_wanted: Final = is_wanted
        self.took: Final = took
        self.calls_back = False

    def begin(self) -> SocketSignal | None:
        """What the loop has to set for a thread that will `wait`; None: it can't wait here."""
        reads = self._reads()
        if reads is None or not reads.lent.is_lent:
            return None
        if self._signal is None:
            try:
                self._signal = SocketSignal()
            except OSError:  # the process has no descriptor for it: it is not needed
                return None
        return self._signal

    def wait(self, seconds: float | None) -> None:
        """Wait until messages were taken, or the signal of `begin` is set.

        Raises:
            TimeoutError: As `Signal.wait`.
        """
        # Hot path: latency in `make bench-client`, blocking.
        signal = self._signal
        assert signal is not None, "`wait` without `begin`"
        seconds = longest_wait(seconds)
        self.calls_back = seconds is None
        deadline = None if seconds is None else _clock.monotonic_seconds() + seconds
        # A handler that waits for the loop would wait for what this thread alone reads.
        self._loop.forget_handlers()
        reads = self._loop.call_between(self._take_reading)
        if reads is not None:
            try:
                while signal.wait_beside(reads.lent.file_number, seconds_left(deadline)):
                    read = self._loop.call_between(reads.read, self)
                    if read is not Read.NOTHING:
                        break
                else:
                    return
            finally:
                reads.lent.give_back(self)
            if read is Read.TAKEN:
                return
        signal.wait(seconds_left(deadline))  # the loop is at work, or has what was read

    def forget_signal(self) -> None:
        """The thread waits no more, and `begin`'s signal may be set yet: the next one is new."""
        self._signal = None

    def withdraw(self) -> None:
        """A thread was interrupted, and may not have given back the reading; by the loop."""
        reads = self._reads()
        if reads is not None:
            reads.lent.give_back(self)

    def _reads(self) -> ThreadReads | None:
        cnx = self._consumer.receiver.cnx
        return None if cnx is None else cnx.reads

    def _take_reading(self) -> ThreadReads | None:
        reads = self._reads()
        if (
            reads is None
            or not self.is_wanted()
            or not self._consumer.receiver.takes_in_turn
            or not reads.lent.take(self)
        ):
            return None
        return reads
