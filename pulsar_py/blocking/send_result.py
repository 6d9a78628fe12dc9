"""`SendResult`: what `send_nowait` of a blocking producer returns; gives the message's id later.

It exists before the loop has taken the message: then it is neither submitted nor refused. Threads
that wait are woken by the loop.

Messages that the loop takes at once are a `SendRun`, which knows what became of them, and a
`SendResult` is a place in it. So a message whose result nobody asks for costs the loop nothing of
its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Final, Protocol, TypeAlias

from pulsar_py.blocking.client_thread import Signal
from pulsar_py.client.producing import send_result
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.send_result import PlainSends, SendCompletion
from pulsar_py.common.message_id import MessageId

__all__ = ["Outgoing", "SendResult", "SendRun"]

Outgoing: TypeAlias = bytes | OutgoingMessage
"""A message on its way to the loop; one that has nothing but a payload is that payload."""

_count_of: Final[Callable[[PlainSends], int]] = itemgetter(2)


class Way(Protocol):
    """The interface by which a result reaches the loop; the producer's `HandOver` implements it."""

    def observe(self, observe: Callable[[], None]) -> None:
        """Have the loop take all waiting messages at once, and then call `observe`."""

    def add_observer(self, result: SendResult, observer: Callable[[], None]) -> None:
        """Have `observer` called when the result is done."""


class SendRun:
    """Messages of one producer, in order, and what became of them.

    Threads add `messages` until the loop takes those; from then on only the loop changes it, and
    threads may look.
    """

    __slots__ = ("_ends", "_observers", "_sends", "messages", "way")

    def __init__(self, way: Way, sends: PlainSends | None = None) -> None:
        """Of messages to come, or of one that the asyncio client has accepted already."""
        self.way: Final = way
        self.messages: list[Outgoing] = []
        # The asyncio client's half of those that it accepted or refused, and the number of messages
        # up to and with each; `_ends` is the last that changes.
        self._sends: list[PlainSends] = [] if sends is None else [sends]
        self._ends: list[int] = [] if sends is None else [sends[2]]
        # By the place of a message that was not submitted yet: what to call when it is done.
        self._observers: dict[int, list[Callable[[], None]]] = {}

    def submitted(self, sends: Sequence[PlainSends]) -> None:
        """The asyncio client accepted the messages that follow."""
        # Hot path: produce in `make bench-client`.
        start = self._ends[-1] if self._ends else 0
        self._sends += sends
        ends = [start + end for end in accumulate(map(_count_of, sends))]
        self._ends += ends
        if self._observers:
            self._pass_on(range(start, ends[-1]))

    def refused(self, error: Exception) -> bool:
        """It did not accept the next message; returns whether anybody hears of that."""
        completion = SendCompletion()
        completion.fail(error)
        self.submitted([(completion, -1, 1)])
        return completion.is_asked_for

    def _pass_on(self, places: Iterable[int]) -> None:
        for place in places:
            for observer in self._observers.pop(place, ()):
                self.observe(place, observer)

    def observe(self, place: int, observer: Callable[[], None]) -> None:
        """Have `observer` called when that message is done; by the loop, or before it took it."""
        sent = self.find(place)
        if sent is None:
            self._observers.setdefault(place, []).append(observer)
        else:
            sent[0].observe(observer)

    def find(self, place: int) -> tuple[SendCompletion, int] | None:
        """The entry of a message, and its index in a batch; None until it is submitted."""
        ends = self._ends
        if not ends or place >= ends[-1]:
            return None
        index = bisect_right(ends, place)
        completion, first_index, count = self._sends[index]
        return completion, first_index + place - (ends[index] - count)


class SendResult:
    """One message on its way; `result` waits for its id."""

    __slots__ = ("_place", "_run")

    # The message at `_place` of `_run`. `HandOver` sets both: the call of an `__init__` would cost
    # more than all else that a thread does for a message.
    _run: SendRun
    _place: int

    # --- called by the producer's `HandOver` ---------------------------------------------------

    def observe(self, observer: Callable[[], None]) -> None:
        """As `SendRun.observe`."""
        self._run.observe(self._place, observer)

    def observe_undone(self, observer: Callable[[], None]) -> bool:
        """As `observe`, but only of one that is under way; returns whether it is."""
        # Hot path: latency in `make bench-client`, blocking.
        sent = self._run.find(self._place)
        if sent is None or sent[0].is_done:
            return False
        sent[0].observe(observer)
        return True

    # --- called by the application -------------------------------------------------------------

    def done(self) -> bool:
        """Whether `result` returns, or raises, at once."""
        sent = self._run.find(self._place)
        return sent is not None and sent[0].is_done

    def result(self, timeout_seconds: float | None = None) -> MessageId:
        """The message's id; waits for it.

        Args:
            timeout_seconds: The longest wait; None for no limit. The message is still sent.

        Raises:
            TimeoutError: Neither receipt nor error came in time.
            ClientError, ServiceError: The message failed; see `Producer.send`.
        """
        completion, batch_index = self._wait(timeout_seconds)
        return completion.outcome(batch_index)

    def exception(self, timeout_seconds: float | None = None) -> Exception | None:
        """The error that the message failed with, None if it is stored; waits as `result`.

        Raises:
            TimeoutError: Neither receipt nor error came in time.
        """
        completion, _ = self._wait(timeout_seconds)
        completion.is_asked_for = True
        return completion.error

    def _wait(self, timeout_seconds: float | None) -> tuple[SendCompletion, int]:
        sent = self._run.find(self._place)
        if sent is None or not sent[0].is_done:
            signal = Signal()
            self._run.way.observe(partial(self.observe, signal.set))
            signal.wait(timeout_seconds)
            sent = self._run.find(self._place)
        assert sent is not None, "done, so it was submitted"
        return sent

    def add_done_callback(self, callback: Callable[[SendResult], None]) -> None:
        """Call `callback(self)` when it is done; at once if it is.

        By the client's thread, or by a thread that waits in `receive` without a time limit for a
        message from the same broker. It must neither block nor raise: the client stands still
        meanwhile.
        """
        self._run.way.add_observer(self, partial(callback, self))

    def __repr__(self) -> str:
        sent = self._run.find(self._place)
        if sent is None:
            return "blocking.SendResult(on its way)"
        return f"blocking.{send_result.SendResult(*sent)!r}"
