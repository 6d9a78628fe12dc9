"""One TCP connection to a bookie: sends requests, and passes answers to their callers (edge).

Answers come in any order and name ledger, entry and operation, nothing more. So no two requests
that would be answered alike are ever under way together: a second one waits here until the first is
answered. Otherwise the answer to a plain read could pass for that to a read that fences.

All requests of one turn of the loop are written at once, and all answers of one read are handed out
together, a list for each sink. A request is answered exactly once: by the bookie, or with a code of
its own (`frames.LOST`, `TIMED_OUT`, `TOO_MUCH_WAITS`). Nobody is called from within `send`. Adds go
in runs of entries (`AddLanes`): each entry that was stored is told, and an error once.

One that nobody waits for any more keeps its place until the bookie has answered it. A bookie that
says nothing at all for the time of a request loses the connection, so such places are bounded.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias, cast

from pulsar_py.bookkeeper.bookies.add_lanes import AddLanes
from pulsar_py.bookkeeper.bookies.requests import AddRequest, AddSink, AnswerSink, BookieRequest
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.frames import BookieAnswer, BookieOperation
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.network.tls import TlsOptions

logger = logging.getLogger(__name__)

_ADD: Final = int(BookieOperation.ADD)
LOOKS: Final = 4
"""How often late requests are looked for in their time limit: each ends a quarter late at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The bounds of one connection to a bookie."""

    connect_timeout_seconds: float = 5.0
    request_timeout_seconds: float = 10.0
    max_waiting_bytes: int = 64 * 1024 * 1024
    """The most bytes of unanswered requests to one bookie; beyond them, adds are refused here."""
    max_frame_bytes: int = 5_253_120
    """The largest answer; as Apache Pulsar configures its bookies and clients."""
    tls: TlsOptions | None = None
    """The TLS context (`bookkeeperTLS…` in Pulsar's settings); None for plain connections."""


_Key = tuple[int, int, int]
OnAnswers: TypeAlias = Callable[[Sequence[tuple[BookieRequest, BookieAnswer]]], None]
OnStored: TypeAlias = Callable[[Sequence[tuple[float, int]]], None]


def _nobody_counts(_: Sequence[object]) -> None:
    pass


class BookieConnection(asyncio.Protocol):
    """A connection; made by the loop, ended by `lose` or the bookie."""

    def __init__(
        self,
        clock: Clock,
        limits: ConnectionLimits,
        on_lost: Callable[[str], None],
        on_answers: OnAnswers = _nobody_counts,
        on_stored: OnStored = _nobody_counts,
    ) -> None:
        """`on_lost` is told the reason, once, after everybody who waits was answered.

        `on_answers` is given all answers but those of entries that were stored, also those of our
        own, before those who asked; `on_stored` the deadlines of stored entries, and how many have
        each.
        """
        self._clock = clock
        self._limits = limits
        self._on_lost = on_lost
        self._on_answers = on_answers
        self._on_stored_counts = on_stored
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._outgoing: list[EntryBytes] = []  # of this turn
        self._adds = AddLanes()  # requests that add entries
        self._under_way: dict[_Key, BookieRequest] = {}  # others, in the order of their sending
        self._behind: dict[_Key, deque[BookieRequest]] = {}  # wait for one that is under way
        self._late: list[tuple[BookieRequest, BookieAnswer]] = []  # answers of our own, to be told
        self._timer: asyncio.TimerHandle | None = None
        self._made_seconds = clock.monotonic_seconds()
        self._deadline = 0.0  # of the requests that are sent in this turn
        self.heard_seconds = float("-inf")
        """When the bookie last sent anything, by the monotonic clock."""
        self.is_lost = False
        self.waiting_bytes = 0
        """The bytes of requests without an answer."""

    # Towards the bookie

    def send(self, request: BookieRequest) -> None:
        """Send a request with the others of this turn; its sink always gets an answer.

        # Hot path: one call a run and bookie.
        """
        if self.is_lost or (
            self.waiting_bytes + request.size_bytes > self._limits.max_waiting_bytes
            and isinstance(request, AddRequest)
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
        if isinstance(request, AddRequest):
            if self._adds.begin(request):
                self._begin(request)
            return
        key = (request.operation, request.ledger_id, request.entry_id)
        if key in self._under_way:
            self._behind.setdefault(key, deque()).append(request)
        else:
            self._under_way[key] = request
            self._begin(request)

    def _begin(self, request: BookieRequest) -> None:
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

        # Hot path: one call for many answers, and none of its own for an entry that was stored.
        """
        self.heard_seconds = self._clock.monotonic_seconds()
        buffer = self._buffer
        buffer += data
        answers: list[tuple[BookieRequest, BookieAnswer]] = []
        stored: list[tuple[AddRequest, int, int]] = []  # first entry, and the one behind the last
        start, end_of_all = 0, len(buffer)
        answer_bytes, unpack = frames.ANSWER_HEAD_BYTES, frames.SIZED_ANSWER.unpack_from
        wrong = None
        with memoryview(buffer) as view:
            while end_of_all - start >= frames.LENGTH.size:
                (size_bytes,) = frames.LENGTH.unpack_from(buffer, start)
                if size_bytes > self._limits.max_frame_bytes:
                    wrong = f"an answer of {size_bytes} bytes"
                    break
                end = start + frames.LENGTH.size + size_bytes
                if end > end_of_all:
                    break
                is_stored = False
                if size_bytes == answer_bytes:
                    _, version, operation, _, code, ledger_id, entry_id = unpack(buffer, start)
                    is_stored = version == frames.VERSION and operation == _ADD and not code
                try:
                    if is_stored:
                        run = self._on_stored(ledger_id, entry_id)
                        following = entry_id + 1
                        if run.early is None and run.next_entry_id < run.last_entry_id:
                            count = self._stored_in_a_row(view[end:], run)
                            following += count
                            end += count * (frames.LENGTH.size + answer_bytes)
                        stored.append((run, entry_id, following))
                    else:
                        with view[start + frames.LENGTH.size : end] as frame:
                            answer = frames.decoded_answer(frame)
                        answers.append((self._answered(answer), answer))
                except RemoteProtocolError as error:
                    wrong = str(error)
                    break
                start = end
        del buffer[:start]
        if stored:
            self._hand_out_stored(stored)
        self._hand_out(answers)
        if wrong is not None:
            self.lose(f"what the bookie sent can't be read: {wrong}")

    @staticmethod
    def _stored_in_a_row(memory: memoryview, run: AddRequest) -> int:
        """Take the answers to the next entries of a run but the last; returns how many."""
        first = run.next_entry_id
        with memory:
            count = run.answers.count_in(memory, first, run.last_entry_id - first)
        run.next_entry_id += count
        return count

    def _on_stored(self, ledger_id: int, entry_id: int) -> AddRequest:
        """The run of an entry that the bookie has stored, or of an add that it refused."""
        request = self._adds.answered(ledger_id, entry_id)
        if request is None:
            raise RemoteProtocolError(
                f"got an answer to a request that was not sent: the add of {ledger_id}:{entry_id}"
            )
        if request.is_answered:
            self.waiting_bytes -= request.size_bytes
            following = self._adds.end(request)
            if following is not None:
                self._begin(following)
        return request

    def _answered(self, answer: BookieAnswer) -> BookieRequest:
        """The request of an answer; requests that waited for it are sent."""
        if answer.operation == BookieOperation.ADD:
            return self._on_stored(answer.ledger_id, answer.entry_id)
        key = (answer.operation, answer.ledger_id, answer.entry_id)
        request = self._under_way.pop(key, None)
        if request is None:
            raise RemoteProtocolError(f"got an answer to a request that was not sent: {key}")
        self.waiting_bytes -= request.size_bytes
        if behind := self._behind.get(key):
            self._under_way[key] = following = behind.popleft()
            self._begin(following)
            if not behind:
                del self._behind[key]
        return request

    def _hand_out_stored(self, stored: Sequence[tuple[AddRequest, int, int]]) -> None:
        """Tell each sink what was stored."""
        self._on_stored_counts([(run.deadline, end - first) for run, first, end in stored])
        by_sink: dict[AddSink, list[range]] = {}
        for run, first, end in stored:
            if run.sink is None:
                continue
            its_own = by_sink.setdefault(run.add_sink, [])
            if its_own and its_own[-1].stop == first:
                its_own[-1] = range(its_own[-1].start, end)
            else:
                its_own.append(range(first, end))
        for sink, runs in by_sink.items():
            sink.on_stored(runs[0] if len(runs) == 1 else list(chain.from_iterable(runs)))

    # Ends

    def _set_timer(self) -> None:
        interval_seconds = self._limits.request_timeout_seconds / LOOKS
        self._timer = self._clock.call_later(interval_seconds, self._look)

    def _look(self) -> None:
        """Answer the requests that have waited too long with `TIMED_OUT`."""
        self._timer = None
        if not self._under_way and not self._adds:
            return
        self._set_timer()
        now = self._clock.monotonic_seconds()
        sent = chain(self._under_way.values(), self._adds.sent())
        late = [each for each in sent if each.deadline <= now]
        answers = [(each, each.failed(frames.TIMED_OUT)) for each in late if each.sink is not None]
        for key, behind in list(self._behind.items()):
            while behind and behind[0].deadline <= now:
                request = behind.popleft()
                self.waiting_bytes -= request.size_bytes
                answers.append((request, request.failed(frames.TIMED_OUT)))
            if not behind:
                del self._behind[key]
        for add in self._adds.take_late(now):
            self.waiting_bytes -= add.size_bytes
            answers.append((add, add.failed(frames.TIMED_OUT)))
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
        """End the connection; all requests are answered. May be called again."""
        if self.is_lost:
            return
        self.is_lost = True
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiting = [*self._adds.take_all(), *self._under_way.values()]
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
