"""One TCP connection to a bookie for explicit last add confirmed, in protocol 3 (edge).

A connection speaks one protocol from its first frame on, and that of entries is protocol 2, which
has no such request (`connection`). So bookies that are told, or asked for, the last add confirmed
get a connection of their own. Requests are numbered, and answers come in any order.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from pulsar_py.bookkeeper.protocol import explicit_lac, frames
from pulsar_py.bookkeeper.protocol.explicit_lac import LacAnswer
from pulsar_py.common.errors import RemoteProtocolError, StoreBusyError, StoreUnavailableError

MAX_WAITING_COUNT: Final = 4096
"""Requests without an answer; a bookie that owes so many gets no more."""


class LacConnection(asyncio.Protocol):
    """A connection; made by the loop, ended by `lose` or the bookie."""

    def __init__(self, max_frame_bytes: int) -> None:
        """`max_frame_bytes` is the largest answer: it may hold an entry."""
        self._max_frame_bytes = max_frame_bytes
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._next_number = 1
        self._waiting: dict[int, asyncio.Future[LacAnswer]] = {}
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not derive from it

    async def write_lac(self, ledger_id: int, master_key: bytes, body: bytes) -> LacAnswer:
        """Have the bookie keep a ledger's last add confirmed, packed as `packed_lac` does.

        Raises:
            StoreUnavailableError: The connection is lost.
            StoreBusyError: Too many requests wait for answers.
        """
        number = self._take_number()
        frame = explicit_lac.write_lac_frame(number, ledger_id, master_key, body)
        return await self._answer_to(number, frame)

    async def read_lac(self, ledger_id: int) -> LacAnswer:
        """Ask for what the bookie keeps.

        Raises:
            StoreUnavailableError: The connection is lost.
            StoreBusyError: Too many requests wait for answers.
        """
        number = self._take_number()
        return await self._answer_to(number, explicit_lac.read_lac_frame(number, ledger_id))

    def _take_number(self) -> int:
        number, self._next_number = self._next_number, self._next_number + 1
        return number

    async def _answer_to(self, number: int, frame: bytes) -> LacAnswer:
        if self.is_lost or self._transport is None:
            raise StoreUnavailableError("the connection is lost")
        if len(self._waiting) >= MAX_WAITING_COUNT:
            raise StoreBusyError(f"{MAX_WAITING_COUNT} requests wait for the bookie's answers")
        answer: asyncio.Future[LacAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._transport.write(frame)
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    def data_received(self, data: bytes) -> None:
        """Called by the loop: hand out every answer that is whole."""
        self._buffer += data
        try:
            while (frame := self._next_frame()) is not None:
                self._hand_out(explicit_lac.decoded_lac_answer(frame))
        except RemoteProtocolError as error:
            self.lose(f"what the bookie sent can't be read: {error}")

    def _next_frame(self) -> bytes | None:
        """The next answer, without its size, if it is whole."""
        buffer, head_bytes = self._buffer, frames.LENGTH.size
        if len(buffer) < head_bytes:
            return None
        (size_bytes,) = frames.LENGTH.unpack_from(buffer)
        if size_bytes > self._max_frame_bytes:
            raise RemoteProtocolError(
                f"an answer of {size_bytes} bytes, at most {self._max_frame_bytes} may come"
            )
        if len(buffer) < head_bytes + size_bytes:
            return None
        frame = bytes(buffer[head_bytes : head_bytes + size_bytes])
        del buffer[: head_bytes + size_bytes]
        return frame

    def _hand_out(self, answer: LacAnswer) -> None:
        waiting = self._waiting.get(answer.number)
        if waiting is not None and not waiting.done():  # otherwise nobody waits any more
            waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self.lose(str(exc) if exc else "the bookie closed it")

    def lose(self, reason: str) -> None:
        """End the connection; all requests fail. May be called again."""
        if self.is_lost:
            return
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(StoreUnavailableError(f"the connection is lost: {reason}"))
