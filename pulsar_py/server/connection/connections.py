"""`Connections`: all connections of one broker, their limits, keep-alive and shared services.

Connections have no timers of their own: a sweep checks all of them a few times an interval, which
costs about a millisecond for ten thousand. A socket that never finishes its handshake is closed by
the same sweep, so a flood of half-open ones is bounded by what one interval lets in.

Source: BrokerService, ConnectionController in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.connection.ending_credentials import EndingCredentials
from pulsar_py.server.handlers.held_closes import HeldCloses
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.server.hooks.interceptors import CONNECTION_CALLS, Interceptors
from pulsar_py.server.limits.in_flight import PublishBuffer
from pulsar_py.server.limits.topic_list_budget import TopicListBudget
from pulsar_py.server.namespaces.service import NamespaceService
from pulsar_py.server.schema_registry import SchemaRegistry
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.authorization import Authorization, Caller, Unrestricted
from pulsar_py.server.security.peer import named_peer
from pulsar_py.server.topics.registry import TopicRegistry
from pulsar_py.wire.receive_memory import ReceiveMemory

if TYPE_CHECKING:
    from pulsar_py.server.connection.server_cnx import ServerCnx
    from pulsar_py.server.connection.waiting_publishes import WaitingBudget
    from pulsar_py.server.handlers.revoking import Revoking


logger = logging.getLogger(__name__)

SWEEPS_AN_INTERVAL = 8
CLOSING_SECONDS = 5.0


class Connections:
    """The connections of one broker, which owns it; implements `BrokerServices` for them."""

    def __init__(
        self,
        *,
        topics: TopicRegistry,
        namespaces: NamespaceService,
        schemas: SchemaRegistry,
        publish_buffer: PublishBuffer,
        clock: Clock,
        settings: ConnectionSettings,
        authenticators: Authenticators | None = None,
        authorization: Authorization | None = None,
        resources: Resources | None = None,
        interceptors: Interceptors | None = None,
        audit: Audit | None = None,
    ) -> None:
        """`interceptors` are told of connections and commands."""
        self.topics = topics
        self.namespaces = namespaces
        self.schemas = schemas
        self.publish_buffer = publish_buffer
        self.receive_memory = ReceiveMemory()
        self.clock = clock
        self.settings = settings
        self.authenticators = authenticators or Authenticators()
        self.authorization = authorization or Unrestricted()
        self.audit = audit or Audit(clock)
        self._interceptors: Interceptors | None = None  # None if none listens
        if interceptors is not None and interceptors.hears(*CONNECTION_CALLS):
            self._interceptors = interceptors
        self.tasks = TaskOwner("connections")
        self.revoking: Revoking | None = None  # None while rights are not checked
        if resources is not None and self.authorization.is_enabled:
            from pulsar_py.server.handlers.revoking import (  # noqa: PLC0415 - at first use
                Revoking,
            )

            self.revoking = Revoking(
                self.authorization, resources, lambda: self._open, self.tasks, self.audit
            )
        self._ending_credentials = EndingCredentials(
            lambda: self._open,
            clock,
            answer_seconds=settings.authentication_refresh_check_seconds,
        )
        self.held_closes = HeldCloses()
        self.pending_lookups_count = 0
        self.topic_lists = TopicListBudget(clock, settings.topic_lists)
        self.created_count = 0  # since the start
        self.handshakes_count = self.refused_handshakes_count = 0  # likewise
        self._open: dict[ServerCnx, None] = {}  # in order of connecting
        self._per_host: Counter[str] = Counter()
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._all_lost = asyncio.Event()
        self._is_closed = False

    def new_connection(self) -> ServerCnx:
        """A protocol object for one accepted socket.

        What serves clients is imported with the first, if `EarlyConnections` has not done it.
        """
        if self._interceptors is not None:
            from pulsar_py.server.connection.watched_cnx import (  # noqa: PLC0415 - at first use
                WatchedCnx,
            )

            return WatchedCnx(self, self._interceptors)
        from pulsar_py.server.connection.server_cnx import (  # noqa: PLC0415 - at first use
            ServerCnx,
        )

        return ServerCnx(self)

    def new_proxied_connection(self, client: tuple[str, int] | None) -> ServerCnx:
        """A protocol object whose client a proxy named; None: it named none."""
        cnx = self.new_connection()
        cnx.peer = named_peer(client)
        return cnx

    def new_connection_for(
        self, caller: Caller, on_right_lost: Callable[[], None] | None = None
    ) -> ServerCnx:
        """A connection within the process, for an authenticated caller such as one of HTTP.

        It has his rights, whatever its CONNECT says. `on_right_lost` is told when a producer or
        consumer of it was closed, since he no longer has the right to it.
        """
        cnx = self.new_connection()
        cnx.vouched_for = caller
        cnx.on_right_lost = on_right_lost
        return cnx

    @cached_property
    def waiting_budget(self) -> WaitingBudget:
        """The bound of publishes that wait, of all connections together; made with the first."""
        from pulsar_py.server.connection.waiting_publishes import (  # noqa: PLC0415 - at first use
            WaitingBudget,
        )

        return WaitingBudget()

    @property
    def count(self) -> int:
        """Open connections."""
        return len(self._open)

    @property
    def paused_count(self) -> int:
        """Connections that are not read now because of a limit, or whose publishes are not."""
        return sum(cnx.is_held_back for cnx in self._open)

    def start(self) -> None:
        """Start the keep-alive sweep on the running loop, and listen to what is owned."""
        self.namespaces.when_settled(self._on_ownership_settled)
        self._schedule_sweep()
        if self.revoking is not None:
            self.revoking.start()
        if self.authenticators.is_enabled:
            self._ending_credentials.start()

    def _on_ownership_settled(self) -> None:
        for cnx in list(self._open):
            cnx.on_ownership_settled()

    # --- called by connections ---------------------------------------------------------------

    def opened(self, cnx: ServerCnx) -> None:
        """Count a connected socket; one beyond the limits gets an ERROR and is closed."""
        self._open[cnx] = None
        self.created_count += 1
        host = _host_of(cnx)
        self._per_host[host] += 1
        reason = self._reason_to_refuse(host)
        if reason is None:
            return
        logger.warning("connection refused", extra={"remote_address": cnx.remote_address})
        from pulsar_py.wire import commands  # noqa: PLC0415 - at first use

        code = NotAllowedError.code
        cnx.send(commands.error(commands.NO_REQUEST_ID, code, reason))
        cnx.close()

    def _reason_to_refuse(self, host: str) -> str | None:
        limit, host_limit = self.settings.max_connections, self.settings.max_connections_per_ip
        if self._is_closed:
            return "The broker is stopping"
        if 0 < limit < len(self._open):
            return "Reached the maximum number of connections"
        if 0 < host_limit < self._per_host[host]:
            return "Reached the maximum number of connections on address"
        return None

    def lost(self, cnx: ServerCnx) -> None:
        """Forget a closed socket."""
        if cnx not in self._open:
            return
        del self._open[cnx]
        host = _host_of(cnx)
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        if self._is_closed and not self._open:
            self._all_lost.set()

    # --- keep-alive ------------------------------------------------------------------------

    def _schedule_sweep(self) -> None:
        delay = self.settings.keep_alive_interval_seconds / SWEEPS_AN_INTERVAL
        self._sweep_timer = self.clock.call_later(delay, self._sweep)

    def _sweep(self) -> None:
        self._schedule_sweep()
        now = self.clock.monotonic_seconds()
        due = [cnx for cnx in self._open if cnx.keep_alive.due_at <= now]
        for cnx in due:
            self._tick(cnx, now)

    def _tick(self, cnx: ServerCnx, now: float) -> None:
        if not cnx.is_connected:
            cnx.abort()  # closed an interval ago, but the client does not read the last output
            return
        cnx.closed_producers.on_interval()
        decision = cnx.keep_alive.tick(
            now,
            is_handshake_done=cnx.is_handshake_done,
            peer_version=cnx.protocol_version,
            is_reading_paused=cnx.is_reading_paused,
        )
        from pulsar_py.wire import commands  # noqa: PLC0415 - at first use
        from pulsar_py.wire.connection_state import KeepAliveDecision  # noqa: PLC0415 - at first use

        if decision is KeepAliveDecision.SEND_PING:
            cnx.send(commands.ping())
        elif decision.is_close:
            extra = {"remote_address": cnx.remote_address, "reason": decision.value}
            logger.warning("connection timed out", extra=extra)
            cnx.abort()

    # --- end -------------------------------------------------------------------------------

    def stop_reading(self) -> None:
        """Read no more from any client, so that topics close without new requests to answer."""
        for cnx in list(self._open):
            cnx.stop_reading()

    async def close(self) -> None:
        """Close every connection and wait until their tasks have ended."""
        self._is_closed = True
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        self._ending_credentials.close()
        if self.revoking is not None:
            self.revoking.close()
        for cnx in list(self._open):
            cnx.close()
        await self.tasks.close()
        if self._open:
            try:
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._all_lost.wait()
            except TimeoutError:
                for cnx in list(self._open):
                    cnx.abort()


def _host_of(cnx: ServerCnx) -> str:
    return cnx.remote_address.rpartition(":")[0]
