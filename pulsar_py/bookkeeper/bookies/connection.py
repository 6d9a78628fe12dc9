"""One TCP connection to a bookie (edge): requests out, answers to whoever asked.

Answers come in any order and name ledger, entry and operation, nothing more. So no two requests
that would be answered alike are ever under way together: a second one waits here until the first is
answered. Otherwise the answer to a plain read could pass for that to a read that fences.

All requests of one turn of the loop are written at once, and all answers of one read are handed out
together, a list for each sink. A request is answered exactly once: by the bookie, or with a code of
its own (`frames.LOST`, `TIMED_OUT`, `TOO_MUCH_WAITS`). Nobody is called from within `send`.

One that nobody waits for any more keeps its place until the bookie has answered it. A bookie that
says nothing at all for the time of a request loses the connection, so such places are bounded.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, cast

from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.frames import BookieAnswer, BookieOperation
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.network.tls import TlsOptions

logger = logging.getLogger(__name__)

LOOKS: Final = 4
"""For late requests within the time of one: none is answered later than by a quarter more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The bounds of one connection to a bookie."""

    connect_timeout_seconds: float = 5.0
    request_timeout_seconds: float = 10.0
    max_waiting_bytes: int = 64 * 1024 * 1024
    """Of requests to one bookie without an answer; with more of them, adds are refused here."""
    max_frame_bytes: int = 5_253_120
    """The largest answer; as Apache Pulsar configures its bookies and clients."""
    tls: TlsOptions | None = None
    """How to speak TLS (`bookkeeperTLS…` in Pulsar's settings); None: plain."""


class AnswerSink(Protocol):
    """Who asked."""

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        """Take the answers that came together, in their order."""


class BookieRequest:
    """A request, and who waits for its answer."""

    __slots__ = ("deadline", "entry_id", "ledger_id", "operation", "pieces", "sink", "size_bytes")

    def __init__(
        self,
        operation: int,
        ledger_id: int,
        entry_id: int,
        pieces: Sequence[EntryBytes],
        sink: AnswerSink,
    ) -> None:
        """`pieces` make up the frame; nobody changes their memory any more.

        They are let go once they are handed to the transport: nothing is sent twice from here.
        """
        self.operation = operation
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.pieces = pieces
        self.size_bytes = sum(map(len, pieces))
        self.sink: AnswerSink | None = sink  # None: nobody waits any more
        self.deadline = 0.0  # in monotonic seconds; set when it is handed to a connection

    def failed(self, code: int) -> BookieAnswer:
        """The answer that stands for no answer."""
        return BookieAnswer(self.operation, code, self.ledger_id, self.entry_id)


_Key = tuple[int, int, int]
OnAnswers: TypeAlias = Callable[[Sequence[tuple[BookieRequest, BookieAnswer]]], None]


def _nobody_counts(_: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
    pass


class BookieConnection(asyncio.Protocol):
    """A connection; made by the loop, ended by `lose` or the bookie."""

    def __init__(
        self,
        clock: Clock,
        limits: ConnectionLimits,
        on_lost: Callable[[str], None],
        on_answers: OnAnswers = _nobody_counts,
    ) -> None:
        """`on_lost` is told the reason, once, after everybody who waits was answered.

        `on_answers` is given all answers, also those of our own, before those who asked.
        """
        self._clock = clock
        self._limits = limits
        self._on_lost = on_lost
        self._on_answers = on_answers
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._outgoing: list[EntryBytes] = []  # of this turn
        self._under_way: dict[_Key, BookieRequest] = {}  # in the order of their sending
        self._behind: dict[_Key, deque[BookieRequest]] = {}  # wait for one that is under way
        self._late: list[tuple[BookieRequest, BookieAnswer]] = []  # answers of our own, to be told
        self._timer: asyncio.TimerHandle | None = None
        self._made_seconds = clock.monotonic_seconds()
        self._deadline = 0.0  # of the requests that are sent in this turn
        self.heard_seconds = float("-inf")
        """When the bookie last said something, by the monotonic clock."""
        self.is_lost = False
        self.waiting_bytes = 0
        """Of requests without an answer."""

    # Towards the bookie

    def send(self, request: BookieRequest) -> None:
        """Send with the next of this turn; the sink hears of it, whatever happens.

        # Hot path: one call an entry and bookie.
        """
        if self.is_lost or (
            self.waiting_bytes + request.size_bytes > self._limits.max_waiting_bytes
            and request.operation == BookieOperation.ADD
        ):
            code = frames.LOST if self.is_lost else frames.TOO_MUCH_WAITS
            self._answer_soon(request, code)
            return
        self.waiting_bytes += request.size_bytes
        if not self._outgoing:  # those sent together have one deadline, and are counted together
            now = self._clock.monotonic_seconds()
            self._deadline = now + self._limits.request_timeout_seconds
        request.deadline = self._deadline
        if self._timer is None:
            self._set_timer()
        key = (request.operation, request.ledger_id, request.entry_id)
        if key in self._under_way:
            self._behind.setdefault(key, deque()).append(request)
        else:
            self._begin(key, request)

    def _begin(self, key: _Key, request: BookieRequest) -> None:
        self._under_way[key] = request
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing += request.pieces
        request.pieces = ()

    def _flush(self) -> None:
        pieces, self._outgoing = self._outgoing, []
        if self._transport is not None and not self.is_lost:
            self._transport.writelines(pieces)

    # From the bookie

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not derive from it

    def data_received(self, data: bytes) -> None:
        """Called by the loop: hand out every answer that is whole.

        # Hot path: one call for many answers.
        """
        self.heard_seconds = self._clock.monotonic_seconds()
        buffer = self._buffer
        buffer += data
        answers: list[tuple[BookieRequest, BookieAnswer]] = []
        start, wrong = 0, None
        with memoryview(buffer) as view:
            while len(buffer) - start >= frames.LENGTH.size:
                (size_bytes,) = frames.LENGTH.unpack_from(buffer, start)
                if size_bytes > self._limits.max_frame_bytes:
                    wrong = f"an answer of {size_bytes} bytes"
                    break
                end = start + frames.LENGTH.size + size_bytes
                if end > len(buffer):
                    break
                with view[start + frames.LENGTH.size : end] as frame:
                    try:
                        answer = frames.decoded_answer(frame)
                        answers.append((self._answered(answer), answer))
                    except RemoteProtocolError as error:
                        wrong = str(error)
                        break
                start = end
        del buffer[:start]
        self._hand_out(answers)
        if wrong is not None:
            self.lose(f"what the bookie sent can't be read: {wrong}")

    def _answered(self, answer: BookieAnswer) -> BookieRequest:
        """The request of an answer; what waits behind it is sent."""
        key = (answer.operation, answer.ledger_id, answer.entry_id)
        request = self._under_way.pop(key, None)
        if request is None:
            raise RemoteProtocolError(f"an answer to what nobody asked for: {key}")
        self.waiting_bytes -= request.size_bytes
        if behind := self._behind.get(key):
            self._begin(key, behind.popleft())
            if not behind:
                del self._behind[key]
        return request

    # Ends

    def _set_timer(self) -> None:
        interval_seconds = self._limits.request_timeout_seconds / LOOKS
        self._timer = self._clock.call_later(interval_seconds, self._look)

    def _look(self) -> None:
        """Answer what has waited too long."""
        self._timer = None
        if not self._under_way:
            return
        self._set_timer()
        now = self._clock.monotonic_seconds()
        late = [each for each in self._under_way.values() if each.deadline <= now]
        answers = [(each, each.failed(frames.TIMED_OUT)) for each in late if each.sink is not None]
        for key, behind in list(self._behind.items()):
            while behind and behind[0].deadline <= now:
                request = behind.popleft()
                self.waiting_bytes -= request.size_bytes
                answers.append((request, request.failed(frames.TIMED_OUT)))
            if not behind:
                del self._behind[key]
        self._hand_out(answers)
        for request, _ in answers:
            request.sink = None  # one that is under way keeps its place
        silent_since = now - self._limits.request_timeout_seconds
        if late and max(self.heard_seconds, self._made_seconds) <= silent_since:
            self.lose(f"it said nothing for {self._limits.request_timeout_seconds:g} seconds")

    def _answer_soon(self, request: BookieRequest, code: int) -> None:
        if not self._late:
            self._loop.call_soon(self._hand_out_late)
        self._late.append((request, request.failed(code)))

    def _hand_out_late(self) -> None:
        late, self._late = self._late, []
        self._hand_out(late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self.lose(str(exc) if exc else "the bookie closed it")

    def lose(self, reason: str) -> None:
        """End the connection; everybody who waits is answered. May be called again."""
        if self.is_lost:
            return
        self.is_lost = True
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiting = [*self._under_way.values()]
        waiting += [request for behind in self._behind.values() for request in behind]
        self._under_way.clear()
        self._behind.clear()
        self.waiting_bytes = 0
        self._hand_out([(each, each.failed(frames.LOST)) for each in waiting])
        self._on_lost(reason)

    def _hand_out(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        """Give each sink its answers."""
        if not answers:
            return
        self._on_answers(answers)
        by_sink: dict[AnswerSink, list[tuple[BookieRequest, BookieAnswer]]] = {}
        for pair in answers:
            sink = pair[0].sink
            if sink is not None:
                by_sink.setdefault(sink, []).append(pair)
        for sink, its_answers in by_sink.items():
            sink.on_answers(its_answers)
