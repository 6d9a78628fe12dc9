"""Opens a client's connections to brokers when they are needed, and shares them (edge).

A broker has up to `connections_per_broker` of them, each in a slot; a producer or consumer keeps
its slot. Callers that want a connection while it is being opened wait for the same attempt, and
where the last one failed (`outages`), for the next. A
connection that was unused for `connection_max_idle_seconds` is closed.

Source: ConnectionPool in Pulsar's client.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pulsar_py.client.brokers.client_cnx import ClientCnx, CnxSettings
from pulsar_py.client.brokers.outages import Outages
from pulsar_py.client.brokers.plain_probe import speaks_plain_pulsar
from pulsar_py.client.brokers.service_url import BrokerAddress, host_and_port
from pulsar_py.client.shared.retries import within
from pulsar_py.client.shared.shared_calls import SharedCalls
from pulsar_py.common.errors import (
    AuthenticationError,
    ClientTimeoutError,
    ConnectError,
    NotABrokerError,
    PulsarError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.tls import failure_text, refused_certificate

if TYPE_CHECKING:
    from random import Random

    from pulsar_py.client.brokers.client_config import ClientConfig
    from pulsar_py.common.loops.clock import Clock

__all__ = ["ConnectionPool", "Connector", "PoolContext"]

logger = logging.getLogger(__name__)

Connector = Callable[[ClientCnx, BrokerAddress], Awaitable[None]]
"""Connects a `ClientCnx` with the broker of an address; raises OSError where there is none."""

_Key = tuple[BrokerAddress, int]
_NO_TLS_REASONS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons where the peer did not speak TLS."""
_TLS_RESETS_COUNT = 3
"""Connections that end in place of a TLS handshake, one after the other, until it is believed."""
_NO_SUCH_HOST = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
"""What resolvers answer where a name does not exist; EAI_AGAIN is one that did not answer."""
CLOSE_SECONDS = 3.0
"""How long `close` waits for sockets to end."""


class PoolContext(Protocol):
    """The parts of a ClientContext that its connections use."""

    @property
    def config(self) -> ClientConfig:
        """The client's options now; they change with the service URL."""

    @property
    def clock(self) -> Clock:
        """Times out handshakes and requests."""

    @property
    def random(self) -> Random:
        """Spreads attempts."""

    def new_request_id(self) -> int:
        """An id that no other request of the client has."""


class ConnectionPool:
    """All connections of a client. Owned by its ClientContext.

    Invariant: `_connections` holds at most one connection that is not closed for each key.
    """

    def __init__(self, context: PoolContext) -> None:
        self._context = context
        # Makes connections in place of sockets, for a client within the broker; None: sockets.
        self.connector: Connector | None = None
        self._tasks = TaskOwner("connections")
        self._connections: dict[_Key, ClientCnx] = {}
        self._attempts: SharedCalls[ClientCnx] = SharedCalls(self._tasks)
        # Closed by us; their sockets may still be sending.
        self._ending: list[ClientCnx] = []
        self._next_slot = 0
        # Addresses where the last attempt failed; logged once, until an attempt succeeds.
        self._outages = Outages()
        # Resets in place of TLS, one after the other.
        self._tls_resets: dict[BrokerAddress, int] = {}
        # Connections that were unused when the idle timer last ran; closed if they still are.
        self._idle: dict[ClientCnx, None] = {}
        self._idle_timer: asyncio.TimerHandle | None = None

    async def get(self, address: BrokerAddress, slot: int = 0) -> ClientCnx:
        """A connection that has shaken hands, shared or new.

        Args:
            address: Of a lookup.
            slot: Of `new_slot`.

        Raises:
            ConnectError: No connection, or no handshake, within the connection time-out.
            ServiceError, AuthenticationDataError: The handshake failed.
            ConnectionClosedError: The client was closed meanwhile.
        """
        key = (address, slot % self._context.config.connections_per_broker)
        cnx = self._connections.get(key)
        if cnx is not None and cnx.is_connected:
            self._idle.pop(cnx, None)
            return cnx
        return await self._attempts.run(key, partial(self._connect_in_turn, key))

    def new_slot(self) -> int:
        """The slot of the next handler among a broker's connections; slots are given in turn."""
        self._next_slot += 1
        return (self._next_slot - 1) % self._context.config.connections_per_broker

    @property
    def connections(self) -> list[ClientCnx]:
        """Those that are open."""
        return [cnx for cnx in self._connections.values() if cnx.is_connected]

    async def _connect_in_turn(self, key: _Key) -> ClientCnx:
        """Where the last attempt failed, the next one is made when it is due, for all who wait."""
        clock = self._context.clock
        if wait_seconds := self._outages.wait_seconds(key[0], clock.monotonic_seconds()):
            await clock.sleep(wait_seconds)
        return await self._connect(key)

    async def _connect(self, key: _Key) -> ClientCnx:
        address, _ = key
        config = self._context.config
        seconds = config.connection_timeout_ms / 1000
        cnx = ClientCnx(
            CnxSettings(
                remote_address=address.logical,
                proxy_to_broker=address.logical if address.is_proxied else None,
                authentication=config.authentication,
                request_timeout_seconds=config.operation_timeout_seconds,
                keep_alive_interval_seconds=config.keep_alive_interval_seconds,
            ),
            clock=self._context.clock,
            tasks=self._tasks,
            new_request_id=self._context.new_request_id,
        )
        try:
            await within(self._open(cnx, address), seconds, f"connection to {address.logical}")
        except ClientTimeoutError as error:
            cnx.close("no handshake in time")
            self._on_unreachable(address, error)
            raise ConnectError(str(error)) from error
        except BaseException as error:  # cancelled, too; raised again
            cnx.close("handshake failed")
            if isinstance(error, ConnectError):
                self._on_unreachable(address, error)
            raise
        self._connections[key] = cnx
        self._set_idle_timer()
        again = " again" if self._outages.on_success(address) else ""
        self._tls_resets.pop(address, None)
        logger.info("connected to %s%s", address.logical, again, extra={"broker": address.logical})
        return cnx

    def _on_unreachable(self, address: BrokerAddress, error: PulsarError) -> None:
        config, clock = self._context.config, self._context.clock
        is_first = self._outages.on_failure(
            address,
            clock.monotonic_seconds(),
            chance=self._context.random,
            initial_seconds=config.initial_backoff_seconds,
            maximum_seconds=config.outage_backoff_seconds,
        )
        text = str(error).removeprefix("connection to ").removeprefix(f"{address.logical}: ")
        logger.log(
            logging.WARNING if is_first else logging.DEBUG,
            "no connection to %s: %s",
            address.logical,
            text,
            extra={"broker": address.logical, "error": str(error)},
        )

    async def _open(self, cnx: ClientCnx, address: BrokerAddress) -> None:
        host, port = host_and_port(address.physical)
        loop = asyncio.get_running_loop()
        try:
            if self.connector is not None:
                await self.connector(cnx, address)
            elif address.is_tls:
                context = self._context.config.new_ssl_context()
                await loop.create_connection(
                    lambda: cnx, host, port, ssl=context, server_hostname=host
                )
            else:
                await loop.create_connection(lambda: cnx, host, port)
        except OSError as error:
            if address.is_tls and _is_reset(error) and await speaks_plain_pulsar(host, port):
                raise NotABrokerError(
                    f"{address.physical}: no TLS on that port, it speaks plainly:"
                    f" use pulsar://{address.physical}"
                ) from error
            if (refusal := refused_certificate(error)) is not None:
                raise AuthenticationError(f"{address.physical}: {refusal}") from error
            text = f"{address.physical}: {_reason(error, is_tls=address.is_tls)}"
            kind = NotABrokerError if self._is_for_good(address, error) else ConnectError
            raise kind(text) from error
        await cnx.handshake.run()

    def _is_for_good(self, address: BrokerAddress, error: OSError) -> bool:
        """Whether waiting can't help: no such host, or nobody there who speaks TLS."""
        if isinstance(error, socket.gaierror):
            return error.errno in _NO_SUCH_HOST
        if not address.is_tls:
            return False
        if getattr(error, "reason", "") in _NO_TLS_REASONS:
            return True
        if not _is_reset(error):
            return False
        # A balancer whose servers are away does this, too, for a moment.
        resets_count = self._tls_resets[address] = self._tls_resets.get(address, 0) + 1
        return resets_count >= _TLS_RESETS_COUNT

    def _set_idle_timer(self) -> None:
        seconds = self._context.config.connection_max_idle_seconds
        if self._idle_timer is None and seconds > 0:
            self._idle_timer = self._context.clock.call_later(seconds, self._close_idle)

    def _close_idle(self) -> None:
        self._idle_timer = None
        self._connections = {k: cnx for k, cnx in self._connections.items() if cnx.is_connected}
        for cnx in self.connections:
            if cnx.is_idle and cnx in self._idle:
                cnx.close("idle")
        self._idle = dict.fromkeys(cnx for cnx in self.connections if cnx.is_idle)
        if self.connections:
            self._set_idle_timer()

    def close_connections(self, reason: str) -> None:
        """Close all connections; the next `get` opens a new one."""
        connections = self.connections
        self._ending = [
            cnx for cnx in (*self._ending, *self._connections.values()) if cnx.has_socket
        ]
        self._connections.clear()
        self._idle.clear()
        for cnx in connections:
            cnx.close(reason)

    def abandon(self) -> None:
        """Close everything without waiting."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        self._tasks.abandon()
        self.close_connections("client closed")

    async def close(self) -> None:
        """Close everything and wait for the sockets to end, for at most `CLOSE_SECONDS`."""
        self.abandon()
        await self._tasks.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                for cnx in self._ending:
                    await cnx.wait_closed()

    def detach_after_fork(self) -> list[int]:
        """In a forked child: forget all sockets, untouched; returns their descriptors."""
        numbers = [cnx.file_number for cnx in self._connections.values()]
        for cnx in self._connections.values():
            cnx.detach_after_fork()
        self._connections.clear()
        return [number for number in numbers if number >= 0]


def _reason(error: OSError, *, is_tls: bool) -> str:
    """The text of a failed attempt, never empty; with a guess where the peer did not speak TLS."""
    text = failure_text(error)
    if isinstance(error, ConnectionRefusedError):  # asyncio's text has the address once more
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return f"{text}: is the host's name right, and known here?"
    is_no_tls = _is_reset(error) or getattr(error, "reason", "") in _NO_TLS_REASONS
    if is_tls and is_no_tls:
        return f"{text}: no TLS on that port? Plain brokers have pulsar:// and often port 6650"
    return text


def _is_reset(error: OSError) -> bool:
    return isinstance(error, ConnectionResetError | ssl.SSLEOFError)
