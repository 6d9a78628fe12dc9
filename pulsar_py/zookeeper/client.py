"""One session with a ZooKeeper cluster, over one connection after the other (edge).

The client connects to the servers in turn, the first one by chance, and goes on with its session on
the next when a connection ends or nothing was heard for half of the time-out. It waits
only after all of them were tried. A server that is cut off from the others and gives reads alone is
refused.

Requests wait for room and for a connection as long as an operation may take. One that was sent and
not answered may have been done: for a change that is an outcome nobody knows.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, NoReturn

from pulsar_py.common.backoff import Backoff
from pulsar_py.common.errors import (
    InvalidConfigurationError,
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    SessionInDoubtError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.tls import client_ssl_context
from pulsar_py.metadata.store import SessionEvent
from pulsar_py.zookeeper import jute, messages
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.authenticating import authenticate
from pulsar_py.zookeeper.batching import ChangeBatches
from pulsar_py.zookeeper.connection import Answer, ConnectionLostError, ZooKeeperConnection
from pulsar_py.zookeeper.digest_md5 import SaslError
from pulsar_py.zookeeper.messages import ConnectAnswer, ErrorCode, Operation, WatchEvent
from pulsar_py.zookeeper.room import Room
from pulsar_py.zookeeper.session import ZooKeeperSession
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from pulsar_py.zookeeper.statistics import ZooKeeperCounters, ZooKeeperStatistics

if TYPE_CHECKING:
    import ssl

__all__ = ["ZooKeeperClient", "ZooKeeperSettings"]

logger = logging.getLogger(__name__)

_PING_SHARE: Final = 1 / 3
"""Of the time-out without a request: then a ping is sent."""
_SILENCE_SHARE: Final = 1 / 2
"""Of the time-out in which a server says nothing at all: then another one is tried. With the share
for trying all of them it stays below that after which the session is in doubt."""
_ANSWER_SHARE: Final = 2 / 3
"""Of the time-out that one request waits although the server says other things."""
_LOOKS_A_TIMEOUT: Final = 12
_TRIES_SHARE: Final = 1 / 3
"""Of the time-out in which all servers are tried once."""
_LEAST_CONNECT_SECONDS: Final = 1.0
_CONNECTION_ERRORS: Final = frozenset(
    (ErrorCode.SESSION_EXPIRED, ErrorCode.SESSION_MOVED, ErrorCode.NOT_READ_ONLY)
)
"""Answers after which only another connection helps."""
_WATCHES_BYTES: Final = 128 * 1024
"""Of paths in one request that sets watches again."""


class ZooKeeperClient:
    """A session, its connection, and those who wait for either."""

    def __init__(
        self,
        address: ZooKeeperAddress,
        clock: Clock,
        chance: Random,
        settings: ZooKeeperSettings,
        on_watch_event: Callable[[WatchEvent], None],
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """`start` connects; `random_bytes` makes what nobody must foresee."""
        self._address = address
        self._clock = clock
        self._settings = settings
        self._on_watch_event = on_watch_event
        self._random_bytes = random_bytes
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
        self._room = Room(settings.max_under_way_count, settings.max_under_way_bytes)
        self._batches = ChangeBatches(
            self._change,
            self._tasks,
            max_count=settings.max_batch_count,
            max_bytes=min(settings.max_batch_bytes, settings.max_request_bytes // 2),
            timeout_seconds=settings.operation_timeout_seconds,
        )
        self._counters = ZooKeeperCounters()
        self._server = ""  # of the connection, while there is one
        self._failures: dict[str, str] = {}  # why servers could not be connected, as last told
        self._failed_in_turn_count = 0  # servers that could not be connected one after the other
        self.session = ZooKeeperSession(clock, self._end_session)
        self.watched: dict[str, None] = {}
        """Paths at or below which everything is told; set again on each connection."""
        self.on_connected: Callable[[], None] = lambda: None
        """Called when watches may have missed something, once they are set again."""

    def start(self) -> None:
        """Begin to connect, and go on for as long as this client is open.

        Raises:
            InvalidConfigurationError: The TLS options name what can't be used.
        """
        self._ssl_context()
        self._tasks.spawn(self._stay_connected(), "connect")

    def statistics(self) -> ZooKeeperStatistics:
        """What has been counted, and how it is now."""
        counters, session = self._counters, self.session
        return ZooKeeperStatistics(
            reads=counters.reads.snapshot(),
            changes=counters.changes.snapshot(),
            change_requests_count=self._batches.requests_count,
            unknown_outcomes_count=counters.unknown_outcomes_count,
            under_way_count=counters.under_way_count,
            server=self._server,
            session_id=session.session_id,
            session_timeout_millis=round(session.timeout_seconds * 1000),
            is_session_good=session.is_good,
            connections_count=counters.connections_count,
            failed_connections_count=counters.failed_connections_count,
            lost_connections_count=counters.lost_connections_count,
            doubts_count=counters.doubts_count + session.doubts_count,
            expired_sessions_count=counters.expired_sessions_count,
            watch_events_count=counters.watch_events_count,
            watch_gaps_count=counters.watch_gaps_count,
        )

    # Requests

    async def request(
        self, operation: Operation, record: bytes, *, is_change: bool, is_synced: bool = False
    ) -> Answer:
        """Ask the servers; returns what they said, errors of the request too.

        A read with `is_synced` sees all that was written before this call.

        Raises:
            MetadataUnavailableError: Nobody could be asked; a change was not made.
            SessionInDoubtError: A change, and the session may have ended; it was not made.
            MetadataOutcomeUnknownError: A change was sent, and the answer did not come.
        """
        counters = self._counters
        operations = counters.changes if is_change else counters.reads
        began_seconds = self._clock.monotonic_seconds()
        counters.under_way_count += 1
        answer = None
        try:
            if is_change:
                if self.session.number:
                    self._check_session()  # in doubt nobody waits
                answer = await self._batches.ask(operation, record)
            else:
                seconds = self._settings.operation_timeout_seconds
                deadline = asyncio.get_running_loop().time() + seconds
                answer = await self._exchange(
                    operation, record, deadline, is_change=False, is_synced=is_synced
                )
        except MetadataOutcomeUnknownError:
            counters.unknown_outcomes_count += 1
            raise
        finally:
            counters.under_way_count -= 1
            if answer is None:
                operations.failed_count += 1
            else:
                operations.answered(self._clock.monotonic_seconds() - began_seconds)
        return answer

    async def _change(self, operation: Operation, record: bytes, deadline: float) -> Answer:
        return await self._exchange(operation, record, deadline, is_change=True)

    async def _exchange(
        self,
        operation: Operation,
        record: bytes,
        deadline: float,
        *,
        is_change: bool,
        is_synced: bool = False,
    ) -> Answer:
        """Send a request when there is room and a connection; returns its answer, in time.

        A read whose connection is lost is sent again over the next one, a change never. With
        `is_synced` a SYNC goes before it, each time: the servers answer what comes over one
        connection in its order, so both together are one wait.
        """
        seconds = self._settings.operation_timeout_seconds
        has_room = is_sent = False
        try:
            async with asyncio.timeout_at(deadline):
                await self._room.take(len(record))
                has_room = True
                while True:
                    is_sent = False
                    connection = self._connection or await self._connected()
                    if is_change:
                        self._check_session()
                    is_sent = True
                    sync = connection.sync() if is_synced else None
                    try:
                        answer = await connection.send(operation, record)
                        if sync is not None and sync.result().error:
                            answer = sync.result()
                        break
                    except ConnectionLostError as error:
                        if is_change:
                            self._raise_unanswered(str(error), is_change=True)
        except TimeoutError:
            if is_sent:
                self._raise_unanswered(f"not within {seconds:g} s", is_change=is_change)
            self._raise_unsent(has_room=has_room)
        finally:
            if has_room:
                self._room.give_back(len(record))
        if answer.error in _CONNECTION_ERRORS:
            connection.lose(f"{self._server} answered {ErrorCode(answer.error).name}")
        return answer

    def _raise_unsent(self, *, has_room: bool) -> NoReturn:
        seconds = self._settings.operation_timeout_seconds
        what, why = "room", f"{self._counters.under_way_count} requests are not answered"
        if has_room:
            what, why = "connection", self._last_failure
        raise MetadataUnavailableError(
            f"{self._address}: no {what} for {seconds:g} s: {why}"
        ) from None

    def _raise_unanswered(self, reason: str, *, is_change: bool) -> NoReturn:
        if is_change:
            raise MetadataOutcomeUnknownError(
                f"{self._address}: no answer to a change: {reason}"
            ) from None
        raise MetadataUnavailableError(f"{self._address}: no answer: {reason}") from None

    def _check_session(self) -> None:
        if not self.session.is_good:
            raise SessionInDoubtError(
                f"{self._address}: the session {self.session.session_id} is in doubt, "
                "nothing is changed"
            )

    def send_if_connected(self, operation: Operation, record: bytes) -> None:
        """Send what is sent anew on each connection; its answer is not waited for."""
        if self._connection is not None:
            self._connection.send(operation, record).add_done_callback(_retrieve)

    async def _connected(self) -> ZooKeeperConnection:
        """The connection, once there is one."""
        while self._connection is None:
            await self._wait_for_connection()
        return self._connection

    async def _wait_for_connection(self) -> None:
        self._check_open()
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        self._check_open()

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
            except (
                OSError,
                TimeoutError,
                ConnectionLostError,
                jute.JuteError,
                SaslError,
                InvalidConfigurationError,
            ) as error:
                await self._on_not_connected(f"{host}:{port}", str(error) or "no answer")
                continue
            self._backoff.reset()
            self._failed_in_turn_count = 0
            self._failures.clear()
            await self._keep_alive()

    async def _on_not_connected(self, server: str, reason: str) -> None:
        """Tell what is new, and wait before the servers are tried in another round."""
        self._last_failure = f"{server}: {reason}"
        self._counters.failed_connections_count += 1
        self._failed_in_turn_count += 1
        is_new = self._failures.get(server) != reason
        self._failures[server] = reason
        logger.log(
            logging.WARNING if is_new else logging.DEBUG,
            "no connection to zookeeper",
            extra={"server": server, "reason": reason},
        )
        if self._failed_in_turn_count % len(self._servers) == 0:
            await self._clock.sleep(self._backoff.next_delay(self._clock.monotonic_seconds()))

    @property
    def _connect_timeout_seconds(self) -> float:
        """The seconds to wait for one server, so that each is tried before the session expires."""
        session_seconds = (
            self.session.timeout_seconds or self._settings.session_timeout_millis / 1000
        )
        share_seconds = _TRIES_SHARE * session_seconds / len(self._servers)
        return min(
            self._settings.connect_timeout_seconds, max(share_seconds, _LEAST_CONNECT_SECONDS)
        )

    def _ssl_context(self) -> ssl.SSLContext | None:
        return None if self._settings.tls is None else client_ssl_context(self._settings.tls)

    async def _connect(self, host: str, port: int) -> None:
        """Connect to one server, open a session and authenticate."""
        session = self.session
        loop = asyncio.get_running_loop()
        self._lost.clear()
        async with asyncio.timeout(self._connect_timeout_seconds):
            _, connection = await loop.create_connection(
                lambda: ZooKeeperConnection(self._clock, self), host, port, ssl=self._ssl_context()
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
                self._check_granted(session, granted)
                await authenticate(connection, self._settings, self._random_bytes)
                if connection.is_lost or not session.is_open:
                    raise ConnectionLostError("it ended at once")
        self._server = f"{host}:{port}"
        self._take(connection, session, granted, sent_seconds)

    def _check_granted(self, session: ZooKeeperSession, granted: ConnectAnswer) -> None:
        """Return if a server granted what is needed.

        Raises:
            ConnectionLostError: It did not; after an expired session the next connection asks for
                a new one.
        """
        if granted.timeout_millis <= 0 or granted.session_id == 0:
            logger.warning("zookeeper session expired", extra={"session": session.session_id})
            self._counters.expired_sessions_count += session.number != 0
            session.forget()
            raise ConnectionLostError("the session has expired")
        if granted.is_read_only:
            raise ConnectionLostError("the server is cut off from the others and gives reads only")

    def _take(
        self,
        connection: ZooKeeperConnection,
        session: ZooKeeperSession,
        granted: ConnectAnswer,
        sent_seconds: float,
    ) -> None:
        """Go on with what a server granted: set watches again, let in who waits, tell."""
        event = session.begin(
            granted.session_id, granted.password, granted.timeout_millis / 1000, sent_seconds
        )
        for part in messages.parts(list(self.watched), _WATCHES_BYTES):
            connection.send_unasked(
                messages.SET_WATCHES_XID,
                Operation.SET_WATCHES_2,
                messages.set_watches(self._last_zxid, part),
            )
        self._connection = connection
        self._counters.connections_count += 1
        logger.info(
            "connected to zookeeper",
            extra={
                "server": self._server,
                "session": session.session_id,
                "timeout_seconds": session.timeout_seconds,
            },
        )
        self._wake_waiting()
        if self._counters.connections_count > 1:
            self._counters.watch_gaps_count += bool(self.watched)
        self.on_connected()
        if event is not None:
            session.tell(event)

    async def _keep_alive(self) -> None:
        """Ping while the connection lasts; give it up when nothing is answered."""
        while (connection := self._connection) is not None:
            timeout_seconds = self.session.timeout_seconds
            if connection.unheard_seconds > _SILENCE_SHARE * timeout_seconds:
                connection.lose(f"nothing was heard for {connection.unheard_seconds:.1f} s")
                return
            if connection.waiting_seconds > _ANSWER_SHARE * timeout_seconds:
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
        self._counters.watch_events_count += 1
        self._on_watch_event(event)

    def on_lost(self, reason: str) -> None:
        """The connection has ended."""
        if self._connection is not None:
            server, self._server = self._server, ""
            self._last_failure = f"{server}: {reason}"
            self._connection = None
            if not self._is_closed:
                self._counters.lost_connections_count += 1
                logger.warning(
                    "connection to zookeeper lost",
                    extra={
                        "server": server,
                        "session": self.session.session_id,
                        "reason": reason,
                    },
                )
            if self.session.is_open and not self._is_closed:
                self.session.tell(SessionEvent.CONNECTION_LOST)
        self._lost.set()

    # Ends

    async def _end_session(self, session: ZooKeeperSession) -> None:
        """Close a session at the server, and go on with another one."""
        session.retire()
        connection = self._connection
        self._counters.doubts_count += session.doubts_count
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
        self._batches.close()
        if self.session.is_open:
            await self._end_session(self.session)
        self.session.retire()
        self._wake_waiting()
        await self._tasks.close()


def _retrieve(answer: asyncio.Future[Answer]) -> None:
    if not answer.cancelled():
        answer.exception()  # a connection that ended is begun anew, with everything
