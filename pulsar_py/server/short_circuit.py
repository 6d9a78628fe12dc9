"""`ShortCircuitListener`: lends entry logs to readers on this machine, over a Unix socket (edge).

A reader asks where entries of a ledger lie, and gets the files with the answer
(`pulsar_py.wire.short_circuit`); the bytes then go past the broker. Whoever may connect, the
broker's own user and root, could read the data directory as well, so nothing is asked for but that.

What always holds: a connection has one request in work, and what it sends meanwhile waits in the
socket; at most `max_connections` are open, and of all of them at most `ANSWERS_COUNT` are looked up
at a time, so that one of the disk's threads stays free; a peer that takes nothing, or says nothing,
is left after a while. What goes wrong in the storage is an empty answer: the reader then asks the
broker as usual, which says what it is. So is everything while the broker may have entry filters,
which decide who gets an entry: they are asked when it is dispatched.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, Self

from pulsar_py.common.errors import RemoteProtocolError, StorageError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.unix_sockets import (
    MAX_PATH_BYTES,
    bind_unix,
    has_peer_users,
    peer_user,
    send_with_files,
)
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.entry_logs.places import PlaceLimits, Places
from pulsar_py.wire.short_circuit import (
    MAX_ANSWER_BYTES,
    MAX_ENTRIES,
    MAX_NEW_FILES,
    MAX_RUNS,
    LendingBroker,
    LentRun,
    PlacesAnswer,
    PlacesRequest,
    RequestDecoder,
    encode_answer,
    encode_greeting,
    encode_refusal,
)

__all__ = ["LendingStore", "ShortCircuitListener"]

logger = logging.getLogger(__name__)

ANSWERS_COUNT: Final = 2
MAX_CONNECTIONS: Final = 256
IDLE_SECONDS: Final = 600.0
"""How long a connection may ask nothing."""
TAKING_SECONDS: Final = 30.0
"""In which a reader has to take an answer."""
_BACKLOG: Final = 1024
"""Connections that the kernel queues; beyond it, who does not block gets an error at once."""
_RECEIVED_BYTES: Final = 4096
"""Of requests, received at once."""
_SENT_BYTES: Final = MAX_ANSWER_BYTES * 9 // 16
"""The system's buffer for what a reader has not taken, which Linux doubles, for its own needs, too:
a whole answer fits, so that a reader may use the answer before it for longer than
`TAKING_SECONDS`."""
_ACCEPTED_A_TURN: Final = 16
_PAUSE_SECONDS: Final = 1.0
"""How long nobody is accepted after that failed: mostly, the process ran out of files."""
_ROOT: Final = 0


class LendingStore(Protocol):
    """A ledger store with files that can be lent."""

    async def places(
        self,
        ledger_id: int,
        first_entry_id: int,
        last_entry_id: int,
        *,
        limits: PlaceLimits,
        held_logs: Container[int],
    ) -> Places:
        """Where entries lie, as far as that can be said.

        Raises:
            StorageError: It can't be found out now.
        """


class ShortCircuitListener:
    """The Unix socket of one broker, which owns it."""

    def __init__(
        self,
        store: LendingStore,
        path: Path,
        *,
        may_lend: Callable[[], bool],
        max_connections: int = MAX_CONNECTIONS,
        idle_seconds: float = IDLE_SECONDS,
        taking_seconds: float = TAKING_SECONDS,
    ) -> None:
        """Nothing is bound yet. While `may_lend` says no, all answers are empty."""
        self._store = store
        self._may_lend = may_lend
        self._path = path
        self._max_connections = max_connections
        self._idle_seconds = idle_seconds
        self._taking_seconds = taking_seconds
        self._listening: socket.socket | None = None  # None before `bind` and after `close`
        self._inode = -1  # of the socket's file
        self._answering = asyncio.Semaphore(ANSWERS_COUNT)
        self._tasks = TaskOwner("short circuit")
        self.connections_count = 0

    @classmethod
    def bound(cls, store: LedgerStore, path: Path, *, may_lend: Callable[[], bool]) -> Self | None:
        """One that has taken its path; None, with a warning, where nothing can be lent.

        Raises:
            ConfigurationError: The path is taken.
            OSError: It can't be bound.
        """
        reason = _reason_for_none(store, path)
        if reason is not None or not isinstance(store, Bookie):
            logger.warning(
                "no short-circuit reads, all readers ask the broker for entries",
                extra={"reason": reason, "shortCircuitSocketPath": str(path)},
            )
            return None
        made = cls(store, path, may_lend=may_lend)
        made.bind()
        return made

    def bind(self) -> None:
        """Take the path; who connects has to wait for `serve`.

        Raises:
            ConfigurationError: The path is too long, or taken.
            OSError: It can't be bound.
        """
        self._listening = bind_unix(self._path, _BACKLOG)
        self._inode = self._path.lstat().st_ino

    def serve(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Begin to accept; `addresses` are those of the binary protocol, by which it is known.

        Raises:
            OSError: The system does not say in which network namespace this is.
        """
        assert self._listening is not None, "bind was not called"
        namespace = Path("/proc/self/ns/net").stat().st_ino
        greeting = encode_greeting(LendingBroker(namespace, addresses))
        self._tasks.spawn(self._accept(self._listening, greeting), "accept")

    async def close(self) -> None:
        """End all connections, and remove the socket's file if it is still this one's."""
        await self._tasks.close()
        listening, self._listening = self._listening, None
        if listening is None:
            return
        with suppress(OSError):
            if self._path.lstat().st_ino == self._inode:
                self._path.unlink()
        listening.close()

    async def _accept(self, listening: socket.socket, greeting: bytes) -> None:
        loop = asyncio.get_running_loop()
        count = 0
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                logger.warning("short-circuit reader not accepted", extra={"error": str(error)})
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._admit(accepted, greeting)
            count += 1
            if count % _ACCEPTED_A_TURN == 0:
                await asyncio.sleep(0)

    def _admit(self, accepted: socket.socket, greeting: bytes) -> None:
        """Serve an accepted connection, or end it."""
        accepted.setblocking(False)
        reason = self._reason_against(accepted)
        if reason:
            logger.info("short-circuit reader refused", extra={"reason": reason})
            _refuse(accepted, reason)
            accepted.close()
        else:
            self.connections_count += 1
            self._tasks.spawn(self._serve(accepted, greeting), "connection")

    def _reason_against(self, accepted: socket.socket) -> str:
        """Why a connection is not served; empty if it is."""
        own = os.geteuid()
        try:
            user = peer_user(accepted)
        except OSError as error:
            return f"its user is unknown: {error}"
        if user not in {own, _ROOT}:
            return f"user {user} may not read here: expected that of the broker, {own}"
        if self.connections_count >= self._max_connections:
            return f"{self._max_connections} connections are open, which is the limit: close some"
        return ""

    async def _serve(self, accepted: socket.socket, greeting: bytes) -> None:
        try:
            with accepted:
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENT_BYTES)
                await self._send(accepted, greeting)
                await self._answer_all(accepted)
        except OSError as error:  # TimeoutError, too
            logger.debug("short-circuit reader left", extra={"error": str(error) or "timed out"})
        finally:
            self.connections_count -= 1

    async def _answer_all(self, accepted: socket.socket) -> None:
        """Answer requests until the reader leaves, or is left."""
        loop = asyncio.get_running_loop()
        decoder = RequestDecoder()
        held_logs: dict[int, None] = {}
        reason = f"no request for {self._idle_seconds:g} seconds"
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(self._idle_seconds):
                    data = await loop.sock_recv(accepted, _RECEIVED_BYTES)
                if not data:
                    return
                try:
                    requests = decoder.feed(data)
                except RemoteProtocolError as error:
                    reason = str(error)
                    break
                for request in requests:
                    await self._answer(accepted, request, held_logs)
        logger.info("short-circuit reader refused", extra={"reason": reason})
        _refuse(accepted, reason)

    async def _answer(
        self, accepted: socket.socket, request: PlacesRequest, held_logs: dict[int, None]
    ) -> None:
        places = await self._places(request, held_logs)
        try:
            answer = PlacesAnswer(
                request.ledger_id,
                request.first_entry_id,
                [LentRun(*run) for run in places.runs],
                list(places.new_logs),
            )
            descriptors = [log.fileno() for log in places.new_logs.values()]
            await self._send(accepted, encode_answer(answer), descriptors)
        finally:
            places.close()
        held_logs.update(dict.fromkeys(places.new_logs))

    async def _places(self, request: PlacesRequest, held_logs: Container[int]) -> Places:
        if not self._may_lend():
            return Places()
        limits = PlaceLimits(
            size_bytes=request.limit_bytes,
            entries_count=MAX_ENTRIES,
            runs_count=MAX_RUNS,
            new_logs_count=MAX_NEW_FILES,
        )
        try:
            async with self._answering:
                return await self._store.places(
                    request.ledger_id,
                    request.first_entry_id,
                    request.last_entry_id,
                    limits=limits,
                    held_logs=held_logs,
                )
        except StorageError as error:
            logger.debug("nothing to lend", extra={"error": str(error)})
            return Places()

    async def _send(
        self, accepted: socket.socket, data: bytes, descriptors: Sequence[int] = ()
    ) -> None:
        """Send, if the reader takes it in time.

        Raises:
            ConnectionError: It did not.
            OSError: It is gone.
        """
        try:
            async with asyncio.timeout(self._taking_seconds):
                await send_with_files(accepted, data, descriptors)
        except TimeoutError as error:
            raise ConnectionAbortedError(
                f"an answer was not taken within {self._taking_seconds:g} seconds"
            ) from error


def _reason_for_none(store: LedgerStore, path: Path) -> str | None:
    """Why nothing can be lent; None if it can."""
    if not isinstance(store, Bookie) or store.is_volatile:
        return "the ledgers are not in files of this broker"
    if not has_peer_users():
        return "the system does not say which user connects"
    size = len(os.fsencode(path))
    if size > MAX_PATH_BYTES:
        return (
            f"the path has {size} bytes, the system takes socket paths of at most "
            f"{MAX_PATH_BYTES}: choose a shorter one"
        )
    return None


def _refuse(accepted: socket.socket, reason: str) -> None:
    """Say why the connection ends, if there is room to."""
    with suppress(OSError):
        accepted.send(encode_refusal(reason))
