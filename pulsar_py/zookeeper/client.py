"""One session with a ZooKeeper cluster, over one connection after the other (edge).

The client connects to the servers in turn, the first one by chance, and goes on with its session on
the next when a connection ends or nothing was answered for two thirds of the time-out. Requests
wait for a connection as long as an operation may take. One that was sent and not answered may have
been done: for a change that is an outcome nobody knows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from pulsar_py.common.backoff import Backoff
from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    SessionInDoubtError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.metadata.store import SessionEvent
from pulsar_py.zookeeper import jute, messages
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.connection import Answer, ConnectionLostError, ZooKeeperConnection
from pulsar_py.zookeeper.messages import ConnectAnswer, Operation, WatchEvent
from pulsar_py.zookeeper.session import ZooKeeperSession

logger = logging.getLogger(__name__)

_PING_SHARE: Final = 1 / 3
"""Of the time-out without a request: then a ping is sent."""
_SILENCE_SHARE: Final = 2 / 3
"""Of the time-out without an answer: then another server is tried."""
_LOOKS_A_TIMEOUT: Final = 12
_WATCHES_BYTES: Final = 128 * 1024
"""Of paths in one request that sets watches again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSettings:
    """What a client asks of its servers, and how long it waits."""

    session_timeout_millis: int = 30_000
    operation_timeout_seconds: float = 30.0
    connect_timeout_seconds: float = 5.0
    credentials: tuple[tuple[str, bytes], ...] = ()
    """Proofs of who this is: a scheme such as `digest`, and what it wants."""
    acls: tuple[messages.Acl, ...] = messages.OPEN_ACL
    """Of every node that is made."""


class ZooKeeperClient:
    """A session, its connection, and those who wait for either."""

    def __init__(
        self,
        address: ZooKeeperAddress,
        clock: Clock,
        chance: Random,
        settings: ZooKeeperSettings,
        on_watch_event: Callable[[WatchEvent], None],
    ) -> None:
        """`start` connects."""
        self._address = address
        self._clock = clock
        self._settings = settings
        self._on_watch_event = on_watch_event
        self._tasks = TaskOwner("zookeeper")
        self._servers = list(address.servers)
        chance.shuffle(self._servers)
        self._backoff = Backoff(chance, initial_seconds=0.05, maximum_seconds=2.0)
        self._connection: ZooKeeperConnection | None = None
        self._waiting: list[asyncio.Future[None]] = []  # for a connection
        self._lost = asyncio.Event()
        self._last_zxid = 0
        self._last_failure = "not connected so far"
        self._is_closed = False
        self.session = ZooKeeperSession(clock, self._end_session)
        self.watched: dict[str, None] = {}
        """Paths at or below which everything is told; set again on each connection."""
        self.on_connected: Callable[[], None] = lambda: None
        """Called when watches may have missed something, once they are set again."""

    def start(self) -> None:
        """Begin to connect, and go on for as long as this client is open."""
        self._tasks.spawn(self._stay_connected(), "connect")

    # Requests

    async def request(self, operation: Operation, record: bytes, *, is_change: bool) -> Answer:
        """Ask the servers; returns what they said, errors of the request too.

        Raises:
            MetadataUnavailableError: Nobody could be asked; a change was not made.
            SessionInDoubtError: A change, and the session may have ended; it was not made.
            MetadataOutcomeUnknownError: A change was sent, and the answer did not come.
        """
        connection = self._connection or await self._connected()
        if is_change and not self.session.is_good:
            raise SessionInDoubtError(
                f"{self._address}: the session {self.session.session_id} is in doubt, "
                "nothing is changed"
            )
        try:
            return await connection.send(operation, record)
        except ConnectionLostError as error:
            if is_change:
                raise MetadataOutcomeUnknownError(
                    f"{self._address}: no answer to a change: {error}"
                ) from None
            raise MetadataUnavailableError(f"{self._address}: no answer: {error}") from None

    def send_if_connected(self, operation: Operation, record: bytes) -> None:
        """Send what is sent anew on each connection; its answer is not waited for."""
        if self._connection is not None:
            self._connection.send(operation, record).add_done_callback(_retrieve)

    async def _connected(self) -> ZooKeeperConnection:
        """The connection, once there is one.

        Raises:
            MetadataUnavailableError: There was none for as long as an operation may take.
        """
        self._check_open()
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(self._settings.operation_timeout_seconds):
                await waiter
        except TimeoutError:
            raise MetadataUnavailableError(
                f"{self._address}: no connection for "
                f"{self._settings.operation_timeout_seconds:g} s: {self._last_failure}"
            ) from None
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        self._check_open()
        if self._connection is None:
            raise MetadataUnavailableError(f"{self._address}: {self._last_failure}")
        return self._connection

    def _check_open(self) -> None:
        if self._is_closed:
            raise MetadataError("the metadata store is closed")

    def _wake_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    # Connections

    async def _stay_connected(self) -> None:
        while not self._is_closed:
            host, port = self._servers[0]
            self._servers.append(self._servers.pop(0))
            try:
                await self._connect(host, port)
            except (OSError, TimeoutError, ConnectionLostError, jute.JuteError) as error:
                self._last_failure = f"{host}:{port}: {str(error) or 'no answer'}"
                logger.info("no connection to zookeeper", extra={"reason": self._last_failure})
                await self._clock.sleep(self._backoff.next_delay(self._clock.monotonic_seconds()))
                continue
            self._backoff.reset()
            await self._keep_alive()

    async def _connect(self, host: str, port: int) -> None:
        session = self.session
        loop = asyncio.get_running_loop()
        self._lost.clear()
        async with asyncio.timeout(self._settings.connect_timeout_seconds):
            _, connection = await loop.create_connection(
                lambda: ZooKeeperConnection(self._clock, self), host, port
            )
            with OnFailure(lambda: connection.lose("given up")):
                sent_seconds = self._clock.monotonic_seconds()
                granted = await connection.greet(
                    messages.connect(
                        last_zxid=self._last_zxid,
                        timeout_millis=self._settings.session_timeout_millis,
                        session_id=session.number,
                        password=session.password,
                        may_read_only=False,
                    )
                )
        self._take(connection, session, granted, sent_seconds)

    def _take(
        self,
        connection: ZooKeeperConnection,
        session: ZooKeeperSession,
        granted: ConnectAnswer,
        sent_seconds: float,
    ) -> None:
        """Go on with what a server granted.

        Raises:
            ConnectionLostError: The session has ended; the next connection asks for a new one.
        """
        if granted.timeout_millis <= 0 or granted.session_id == 0:
            logger.warning("zookeeper session expired", extra={"session": session.session_id})
            session.forget()
            connection.lose("the session has expired")
            raise ConnectionLostError("the session has expired")
        if not session.is_open:
            connection.lose("the session was closed")
            raise ConnectionLostError("the session was closed")
        event = session.begin(
            granted.session_id, granted.password, granted.timeout_millis / 1000, sent_seconds
        )
        for scheme, secret in self._settings.credentials:
            connection.send_unasked(
                messages.AUTH_XID, Operation.AUTH, messages.auth(scheme, secret)
            )
        for chunk in _chunks(list(self.watched)):
            connection.send_unasked(
                messages.SET_WATCHES_XID,
                Operation.SET_WATCHES_2,
                messages.set_watches(self._last_zxid, chunk),
            )
        self._connection = connection
        logger.info("connected to zookeeper", extra={"session": session.session_id})
        self._wake_waiting()
        self.on_connected()
        if event is not None:
            session.tell(event)

    async def _keep_alive(self) -> None:
        """Ping while the connection lasts; give it up when nothing is answered."""
        while (connection := self._connection) is not None:
            timeout_seconds = self.session.timeout_seconds
            if connection.waiting_seconds > _SILENCE_SHARE * timeout_seconds:
                connection.lose(f"nothing was answered for {connection.waiting_seconds:.1f} s")
                return
            if connection.silent_seconds > (_PING_SHARE - 1 / _LOOKS_A_TIMEOUT) * timeout_seconds:
                connection.ping()
            try:
                async with asyncio.timeout(timeout_seconds / _LOOKS_A_TIMEOUT):
                    await self._lost.wait()
            except TimeoutError:
                continue

    # What the connection tells

    def on_news(self, sent_seconds: float, zxid: int) -> None:
        """The server answered what was sent then."""
        self._last_zxid = max(self._last_zxid, zxid)
        self.session.on_news(sent_seconds)

    def on_watch_event(self, event: WatchEvent) -> None:
        """A watch tells a change."""
        self._on_watch_event(event)

    def on_lost(self, reason: str) -> None:
        """The connection has ended."""
        self._last_failure = reason
        if self._connection is not None:
            self._connection = None
            logger.info("connection to zookeeper lost", extra={"reason": reason})
            if self.session.is_open and not self._is_closed:
                self.session.tell(SessionEvent.CONNECTION_LOST)
        self._lost.set()

    # Ends

    async def _end_session(self, session: ZooKeeperSession) -> None:
        """Close a session at the server, and go on with another one."""
        session.retire()
        connection = self._connection
        self.session = ZooKeeperSession(self._clock, self._end_session)
        if connection is not None:
            try:
                await connection.send(Operation.CLOSE_SESSION)
            except ConnectionLostError:
                logger.info("session ends by its time-out", extra={"session": session.session_id})
            connection.lose("the session was closed")

    async def close(self) -> None:
        """End the session and the connection. May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.session.is_open:
            await self._end_session(self.session)
        self.session.retire()
        self._wake_waiting()
        await self._tasks.close()


def _chunks(watched: list[str]) -> list[list[str]]:
    """Paths in parts of which each fits one request."""
    chunks: list[list[str]] = []
    size_bytes = _WATCHES_BYTES
    for path in watched:
        path_bytes = 4 + len(path.encode())
        if size_bytes + path_bytes > _WATCHES_BYTES:
            chunks.append([])
            size_bytes = 0
        chunks[-1].append(path)
        size_bytes += path_bytes
    return chunks


def _retrieve(answer: asyncio.Future[Answer]) -> None:
    if not answer.cancelled():
        answer.exception()  # a connection that ended is begun anew, with everything
