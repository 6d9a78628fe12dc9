"""Connects a producer, consumer or topic watcher, and reconnects it when that is lost (edge).

    UNINITIALIZED --open--> CONNECTING --registered--> READY
    READY --connection or registration lost--> CONNECTING (in the background, with backoff);
                                        FAILED if it does not reconnect
    CONNECTING --first open failed, or fatal once open--> FAILED
    any --close--> CLOSED

Each round looks the topic up, takes the connection of this handler's slot and lets the owner
register. The first open ends within the operation timeout; later rounds go on for ever. A broker
that closes a producer or consumer may name another one: then the next round goes there at once,
without a look-up. What always holds: at most one round is under way; if the owner's
registration is lost while a round is under way, the result of that round is discarded.

Source: ConnectionHandler in Pulsar's client; CommandCloseProducer and CommandCloseConsumer in
PulsarApi.proto.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from pulsar_py.client.brokers.connection_events import PlaceEvents
from pulsar_py.client.brokers.lookup import LookupService
from pulsar_py.client.brokers.service_url import BrokerAddress, ServiceUrl
from pulsar_py.client.shared.retries import FATAL_ONCE_OPEN, is_retriable, tried_text, within
from pulsar_py.common.backoff import Backoff
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConnectionClosedError,
    InvalidServiceUrlError,
    PulsarError,
    ServiceError,
)
from pulsar_py.common.loops.tasks import TaskOwner

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_cnx import ClientCnx
    from pulsar_py.client.brokers.client_context import ClientContext
    from pulsar_py.client.brokers.handlers import BrokerConnection

__all__ = ["ConnectionHandler", "ConnectionOwner", "HandlerState"]

logger = logging.getLogger(__name__)


class HandlerState(Enum):
    """The state of a producer's or consumer's connection."""

    UNINITIALIZED = "uninitialized"
    CONNECTING = "connecting"
    READY = "ready"
    CLOSED = "closed"
    FAILED = "failed"


class ConnectionOwner(Protocol):
    """The producer, consumer or topic watcher that the connection is for."""

    async def opened(self, cnx: ClientCnx) -> None:
        """Register with the broker on `cnx`; returns when the broker has, raises when it refused.

        On an error or when cancelled the owner has unregistered from `cnx` again.
        `ConnectionHandler.request_timeout_seconds` is how long its requests may take. The handler
        is READY, without another step of the loop, when this returns.
        """

    def on_connection_failed(self, error: Exception) -> None:
        """The handler FAILED with `error` after it was open; the first `open` raises instead."""


class ConnectionHandler:
    """Looks a topic up, connects, lets its owner register, and does so again after a loss.

    Owned by its owner, closed with it.

    Invariant: `cnx` is there exactly while READY; a background task runs only while CONNECTING.
    """

    def __init__(
        self,
        context: ClientContext,
        topic: str,
        owner: ConnectionOwner,
        *,
        description: str,
        fatal_errors: tuple[type[Exception], ...] = FATAL_ONCE_OPEN,
    ) -> None:
        """Nothing happens before `open`.

        Args:
            context: The client's shared parts.
            topic: Full name of a topic or partition.
            owner: Registers on each connection.
            description: The owner's name in logs and errors: `producer p-1 of persistent://…`.
            fatal_errors: Errors after which it does not try again once it was open.
        """
        self._context = context
        self.topic = topic
        self._owner = owner
        self.description = description
        self._fatal_errors = fatal_errors
        # Whether a lost registration is made anew; if not, the handler is FAILED then.
        self.reconnects = True
        self._slot = context.pool.new_slot()
        listener = context.config.connection_listener
        self._events = PlaceEvents(listener, context.place_log, description)
        self._tasks = TaskOwner(description)
        config = context.config
        # What brokers refuse for now is asked for less and less often, whoever is away stays looked
        # for: see `ClientConfig.max_backoff_interval_ms`.
        self._backoff = Backoff(
            context.random,
            initial_seconds=config.initial_backoff_seconds,
            maximum_seconds=config.max_backoff_seconds,
        )
        self._outage_backoff = Backoff(
            context.random,
            initial_seconds=config.initial_backoff_seconds,
            maximum_seconds=config.outage_backoff_seconds,
        )
        self.state = HandlerState.UNINITIALIZED
        self.cnx: ClientCnx | None = None
        # Rounds that reached the owner so far.
        self._registrations_count = 0
        # The time by which the first `open` has to end; None once it has.
        self._deadline: float | None = None
        # Whether the registration was lost while a round was under way: its result does not count.
        self._is_round_void = False
        # The broker that a CLOSE command assigned; None: look the topic up.
        self._assigned: tuple[str | None, str | None] | None = None
        # After a migration: the other cluster's URL, and the client's URL at that time.
        self._migrated: tuple[str, ServiceUrl] | None = None
        self._was_proxied_by: str | None = None
        # The error of `wait_connected` once it is FAILED or CLOSED.
        self._error: Exception | None = None
        # Callers that wait in `wait_connected`.
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def is_connected(self) -> bool:
        """Whether it is READY."""
        return self.state is HandlerState.READY

    @property
    def request_timeout_seconds(self) -> float:
        """How long a request of `opened` may take: the operation timeout, or what is left of it."""
        timeout = self._context.config.operation_timeout_seconds
        if self._deadline is None:
            return timeout
        return min(timeout, max(self._deadline - self._context.clock.monotonic_seconds(), 0.001))

    @property
    def epoch(self) -> int:
        """The number of registrations before this round: 0 in the first `opened`."""
        return max(self._registrations_count - 1, 0)

    async def open(self) -> None:
        """Return when the owner is registered for the first time.

        Raises:
            ServiceError, ClientError: The last attempt failed, and either its error is final or
                the operation timeout is over. The handler is FAILED then.
        """
        assert self.state is HandlerState.UNINITIALIZED, f"{self.description}: {self.state}"
        clock = self._context.clock
        self._deadline = clock.monotonic_seconds() + self._context.config.operation_timeout_seconds
        self.state = HandlerState.CONNECTING
        try:
            await self._connect()
        except asyncio.CancelledError:
            self._fail(AlreadyClosedError(f"{self.description}: cancelled while opening"))
            raise
        except Exception as error:  # raised again; `wait_connected` raises it, too
            self._fail(error)
            raise
        self._deadline = None

    async def _connect(self) -> None:
        """Repeat rounds until the owner is registered, or an error is fatal."""
        while True:
            try:
                await self._round()
            except Exception as error:  # decided on below: all but two kinds are raised again
                # If the client was closed or forked meanwhile, that is the error to raise.
                self._context.check_usable()
                if not isinstance(error, PulsarError) or self._is_fatal(error):
                    raise
                is_refused = isinstance(error, ServiceError)
                backoff = self._backoff if is_refused else self._outage_backoff
                delay = backoff.next_delay(self._context.clock.monotonic_seconds())
                self._check_deadline(error, delay)
                self._events.delayed(error, delay)
                await self._context.clock.sleep(delay)
            else:
                return

    async def _round(self) -> None:
        self._is_round_void = False
        cnx = await within(
            self.grab_cnx(), self.request_timeout_seconds, f"{self.description}: connecting"
        )
        self._registrations_count += 1
        await self._owner.opened(cnx)
        # The registration may be lost again before this step of the loop, without a new call.
        if self._is_round_void or not cnx.is_connected:
            raise ConnectionClosedError(
                f"{self.description}: the connection was lost during registration"
            )
        self.state = HandlerState.READY
        self.cnx = cnx
        self._backoff.reset()
        self._outage_backoff.reset()
        self._wake(None)
        self._events.connected(cnx.remote_address)

    def _is_fatal(self, error: PulsarError) -> bool:
        if self._deadline is not None:
            return not is_retriable(error)
        return isinstance(error, self._fatal_errors)

    def _check_deadline(self, error: PulsarError, delay: float) -> None:
        """Raise instead of waiting past the end of the first open."""
        if self._deadline is None:
            return
        left = self._deadline - self._context.clock.monotonic_seconds()
        if delay < left:
            return
        if isinstance(error, ClientTimeoutError):
            raise error
        seconds = self._context.config.operation_timeout_seconds
        tried = tried_text(seconds - left, seconds)
        raise ClientTimeoutError(
            f"{self.description}: not open after {tried}, last: {error}"
        ) from error

    async def grab_cnx(self) -> ClientCnx:
        """A connection to the broker that owns the topic, or that a CLOSE command assigned."""
        assigned, self._assigned = self._assigned, None
        if assigned is not None and (address := self._assigned_address(*assigned)) is not None:
            # The assigned broker is a hint: if it can't be reached, a look-up decides.
            with suppress(PulsarError):
                return await self._context.pool.get(address, self._slot)
        address = await self._lookup().lookup(self.topic)
        self._was_proxied_by = address.physical if address.is_proxied else None
        return await self._context.pool.get(address, self._slot)

    def _lookup(self) -> LookupService:
        """The cluster that the topic migrated to, unless the service URL changed since."""
        if self._migrated is not None and self._migrated[1] is self._context.service_url:
            return self._context.lookup_at(self._migrated[0])
        return self._context.lookup

    def _assigned_address(self, url: str | None, url_tls: str | None) -> BrokerAddress | None:
        is_tls = self._context.service_url.is_tls
        text = url_tls if is_tls else url
        if not text:
            return None
        try:
            host = ServiceUrl.parse(text).hosts[0]
        except InvalidServiceUrlError:
            return None  # the topic is looked up instead
        return BrokerAddress(host, self._was_proxied_by or host, is_tls)

    def connection_closed(
        self,
        cnx: BrokerConnection,
        assigned_url: str | None = None,
        assigned_url_tls: str | None = None,
    ) -> None:
        """The owner lost `cnx` or its registration on it: connect again, at once where assigned.

        News of a connection that is not the current one changes nothing.
        """
        if self.state is HandlerState.CONNECTING:
            self._is_round_void = True
            if assigned_url or assigned_url_tls:
                self._assigned = (assigned_url, assigned_url_tls)
        elif cnx is self.cnx:
            if assigned_url or assigned_url_tls:
                self._assigned = (assigned_url, assigned_url_tls)
            self._begin_anew()

    def reconnect(self) -> None:
        """Give up the current registration and make a new one, though the connection may be intact.

        The owner has to unregister from the connection itself before.
        """
        if self.state is HandlerState.CONNECTING:
            self._is_round_void = True
        elif self.state is HandlerState.READY:
            self._begin_anew()

    def topic_migrated(self, service_url: str | None, service_url_tls: str | None) -> None:
        """From now on look the topic up in another cluster.

        Nothing else has to be done: the broker closes the producer or consumer itself.
        """
        text = service_url_tls if self._context.service_url.is_tls else service_url
        if not text:
            return
        try:
            self._context.lookup_at(text)
        except InvalidServiceUrlError:
            logger.warning(
                "%s: migration to %r ignored: it is not a service URL",
                self.description,
                text,
                extra={"who": self.description, "url": text},
            )
            return
        self._migrated = (text, self._context.service_url)
        logger.info(
            "%s: topic migrated to %s",
            self.description,
            text,
            extra={"who": self.description, "service_url": text},
        )

    def _begin_anew(self) -> None:
        if not self.reconnects:
            error = ConnectionClosedError(
                f"{self.description}: disconnected, or closed by the broker"
            )
            self._give_up(error)
            return
        if self.cnx is not None:
            self._events.disconnected(self.cnx.closed_reason or "the broker closed its place")
        self.state = HandlerState.CONNECTING
        self.cnx = None
        try:
            self._tasks.spawn(self._reconnect(), "reconnect")
        except RuntimeError:
            self._fail(AlreadyClosedError(f"{self.description}: closed"))

    async def _reconnect(self) -> None:
        try:
            if self._assigned is None:
                now = self._context.clock.monotonic_seconds()
                await self._context.clock.sleep(self._outage_backoff.next_delay(now))
            await self._connect()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # the task's outermost edge: the owner gets the error
            if not isinstance(error, PulsarError):
                logger.exception(
                    "%s: reconnecting failed", self.description, extra={"who": self.description}
                )
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._fail(error)
        self._events.given_up(error)
        self._owner.on_connection_failed(error)

    def _fail(self, error: Exception) -> None:
        if self.state is not HandlerState.CLOSED:
            self.state = HandlerState.FAILED
            self._error = error
        self.cnx = None
        self._wake(self._error)

    def _wake(self, error: Exception | None) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    async def wait_connected(self) -> ClientCnx:
        """Return when READY.

        Raises:
            AlreadyClosedError: The handler is, or becomes, closed.
            ClientError, ServiceError: It FAILED; the error that ended it.
        """
        while True:
            if self.cnx is not None:
                return self.cnx
            if self._error is not None:
                raise self._error
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    async def close(self) -> None:
        """No more attempts; the connection itself stays open for others. May be called again."""
        self.abandon()
        await self._tasks.close()

    def abandon(self) -> None:
        """As `close`, without waiting for the end of an attempt."""
        self.state = HandlerState.CLOSED
        self._error = self._error or AlreadyClosedError(f"{self.description}: closed")
        self.cnx = None
        self._tasks.abandon()
        self._wake(self._error)
