"""One TCP connection to a ZooKeeper server: requests, their answers, watch events (edge).

Answers come in the order of the requests, so the waiting callers are a queue. All answers of one
read are handed out in one turn of the loop, and all requests of one turn are written at once. When
the connection ends, every unanswered request fails with `ConnectionLostError`: the server may have
carried it out or not.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol, cast

from pulsar_py.common.loops.clock import Clock
from pulsar_py.zookeeper import jute, messages
from pulsar_py.zookeeper.messages import ConnectAnswer, Operation, WatchEvent

MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Servers send lists of children that are longer than what they take."""

_LENGTH = struct.Struct(">i")


class ConnectionLostError(Exception):
    """The connection ended before the answer came."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer to one request."""

    error: int
    record: jute.RecordReader


class ConnectionEvents(Protocol):
    """The interface by which a connection reports events; called on the loop."""

    def on_news(self, sent_seconds: float, zxid: int) -> None:
        """The server answered a request that was sent at that time, by the client's clock."""

    def on_watch_event(self, event: WatchEvent) -> None:
        """The server sent a watch event."""

    def on_lost(self, reason: str) -> None:
        """The connection has ended; called once."""


@dataclass(slots=True, eq=False)
class _Pending:
    xid: int
    sent_seconds: float
    answer: asyncio.Future[Answer]


class ZooKeeperConnection(asyncio.Protocol):
    """A connection; `open` makes it, `lost` ends it."""

    def __init__(self, clock: Clock, events: ConnectionEvents) -> None:
        self._clock = clock
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._outgoing: list[bytes] = []
        self._unsent_sync: asyncio.Future[Answer] | None = None  # among those
        self._pending: deque[_Pending] = deque()
        self._pings_sent_seconds: deque[float] = deque()
        self._last_xid = 0
        self._greeting: asyncio.Future[ConnectAnswer] = self._loop.create_future()
        self._is_lost = False
        self._last_sent_seconds = self._last_heard_seconds = clock.monotonic_seconds()

    # To the server

    async def greet(self, frame: bytes) -> ConnectAnswer:
        """Ask for a session; nothing else may be sent before this returns.

        Raises:
            ConnectionLostError: The server closed the connection.
        """
        self._write(frame)
        return await self._greeting

    def send(self, operation: Operation, record: bytes = b"") -> asyncio.Future[Answer]:
        """Send a request with the others of this turn; the result is the answer."""
        answer = self._loop.create_future()
        if self._is_lost:
            answer.set_exception(ConnectionLostError("the connection has ended"))
            return answer
        self._last_xid = self._last_xid % 0x7FFFFFFF + 1
        self._write(messages.request(self._last_xid, operation, record))
        self._pending.append(_Pending(self._last_xid, self._last_sent_seconds, answer))
        return answer

    def sync(self) -> asyncio.Future[Answer]:
        """Have what this turn sends from now on see all that was written before; one a turn.

        The answer comes before theirs. It is shared: to be looked at then, not to be awaited.
        """
        if self._unsent_sync is None:
            sync = self.send(Operation.SYNC, messages.sync("/"))
            if not self._outgoing:  # the connection has ended
                return sync
            self._unsent_sync = sync
        return self._unsent_sync

    def send_unasked(self, xid: int, operation: Operation, record: bytes) -> None:
        """Send a frame with a fixed `xid`, whose answer does not come in the order of requests."""
        self._write(messages.request(xid, operation, record))

    def ping(self) -> None:
        """Send a ping, which keeps the session from expiring."""
        self._write(messages.request(messages.PING_XID, Operation.PING))
        self._pings_sent_seconds.append(self._last_sent_seconds)

    def _write(self, frame: bytes) -> None:
        self._last_sent_seconds = self._clock.monotonic_seconds()
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(frame)

    def _flush(self) -> None:
        frames, self._outgoing = self._outgoing, []
        self._unsent_sync = None
        if self._transport is not None and not self._is_lost:
            self._transport.writelines(frames)

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended."""
        return self._is_lost

    @property
    def silent_seconds(self) -> float:
        """The seconds since this client last sent anything."""
        return self._clock.monotonic_seconds() - self._last_sent_seconds

    @property
    def unheard_seconds(self) -> float:
        """The seconds since the server last sent anything, or since the connection began."""
        return self._clock.monotonic_seconds() - self._last_heard_seconds

    @property
    def waiting_seconds(self) -> float:
        """How long the oldest request or ping has waited for its answer; 0 if none does."""
        oldest = [self._pending[0].sent_seconds] if self._pending else []
        if self._pings_sent_seconds:
            oldest.append(self._pings_sent_seconds[0])
        return self._clock.monotonic_seconds() - min(oldest) if oldest else 0.0

    # From the server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not derive from it

    def data_received(self, data: bytes) -> None:
        """Called by the loop: hand out every answer that is whole."""
        self._last_heard_seconds = self._clock.monotonic_seconds()
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= _LENGTH.size:
                (size_bytes,) = _LENGTH.unpack_from(buffer, start)
                if not 0 <= size_bytes <= MAX_ANSWER_BYTES:
                    raise jute.JuteError(  # noqa: TRY301
                        f"an answer of {size_bytes} bytes, expected at most {MAX_ANSWER_BYTES}"
                    )
                end = start + _LENGTH.size + size_bytes
                if end > len(buffer):
                    break
                self._on_frame(bytes(memoryview(buffer)[start + _LENGTH.size : end]))
                start = end
        except jute.JuteError as error:
            self.lose(f"what the server sent can't be read: {error}")
        del buffer[:start]

    def _on_frame(self, frame: bytes) -> None:
        if not self._greeting.done():
            self._greeting.set_result(messages.decode_connect(frame))
            return
        reader = jute.RecordReader(frame)
        head = messages.decode_head(reader)
        match head.xid:
            case messages.WATCH_EVENT_XID:
                self._events.on_watch_event(messages.decode_watch_event(reader))
            case messages.PING_XID:
                if self._pings_sent_seconds:
                    self._events.on_news(self._pings_sent_seconds.popleft(), head.zxid)
            case messages.AUTH_XID | messages.SET_WATCHES_XID:
                if head.error:
                    self.lose(f"the server refused what begins a connection: error {head.error}")
            case _:
                self._on_answer(head, Answer(head.error, reader))

    def _on_answer(self, head: messages.AnswerHead, answer: Answer) -> None:
        if not self._pending or self._pending[0].xid != head.xid:
            expected = self._pending[0].xid if self._pending else "none"
            raise jute.JuteError(f"an answer to request {head.xid}, expected {expected}")
        pending = self._pending.popleft()
        self._events.on_news(pending.sent_seconds, head.zxid)
        if not pending.answer.done():  # its caller may have been cancelled
            pending.answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self.lose(str(exc) if exc else "the server closed it")

    def lose(self, reason: str) -> None:
        """End the connection; waiting callers get ConnectionLostError. May be called again."""
        if self._is_lost:
            return
        self._is_lost = True
        if self._transport is not None:
            self._transport.abort()
        error = ConnectionLostError(reason)
        if not self._greeting.done():
            self._greeting.set_exception(error)
            self._greeting.exception()  # nobody may be waiting any more
        pending, self._pending = self._pending, deque()
        for each in pending:
            if not each.answer.done():
                each.answer.set_exception(error)
                each.answer.exception()
        self._events.on_lost(reason)
