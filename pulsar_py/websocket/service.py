"""`WebSocketService`: answers handshakes, and owns the connections that come of them (edge).

A handshake is refused before anything is opened if it is not a WebSocket's, its path is unknown, a
browser sends it for another site's page, or its credentials are wrong. Then the producer, consumer
or reader is opened for the caller's role; only when the broker has admitted it, 101 is answered.

A connection ends within a second once its credentials expire or are revoked, since no frame of
WebSocket asks for others, or once its right is withdrawn. Apache Pulsar leaves it open.

Source: WebSocketService, AbstractWebSocketHandler in Pulsar.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from wsproto.frame_protocol import CloseReason
from wsproto.utilities import RemoteProtocolError

from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.admin.http_messages import Response, page_response, reason_response
from pulsar_py.common.errors import PulsarError
from pulsar_py.common.failures import OnFailureAwait
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.websocket.broker_client import OwnBroker, broker_client
from pulsar_py.websocket.connection import WebSocketConnection, WebSocketLimits
from pulsar_py.websocket.consuming import ConsumerDialog, ReaderDialog, SendWindow
from pulsar_py.websocket.parameters import (
    TOKEN,
    consumer_parameters,
    parameters_of,
    producer_options,
    reader_parameters,
    token_of,
    topics_of,
)
from pulsar_py.websocket.paths import BadWebSocketPathError, Endpoint, WebSocketPlace, place_of
from pulsar_py.websocket.producing import ProducerDialog
from pulsar_py.websocket.refusals import status_of

if TYPE_CHECKING:
    from pulsar_py.client.client import Client

__all__ = ["HandshakeCaller", "WebSocketService"]

logger = logging.getLogger(__name__)

VERSION: Final = "13"


LOOK_SECONDS: Final = 0.5
"""The time between two looks at all credentials that can end."""


class Credentials(Protocol):
    """The credentials with which a caller proved its role."""

    @property
    def can_end(self) -> bool:
        """Whether they expire, or may be revoked."""

    def reason_to_end(self, now_millis: int) -> str | None:
        """Why the connection should end now; None while it should not."""


class HandshakeCaller(Protocol):
    """The caller of an accepted handshake, for whom connections with the broker are made."""

    @property
    def credentials(self) -> Credentials | None:
        """The credentials of the caller; None while authentication is off."""

    @property
    def peername(self) -> tuple[str, int] | None:
        """The address, if it is known."""

    def new_connection(
        self, on_right_lost: Callable[[], None] | None = None
    ) -> asyncio.BufferedProtocol:
        """The broker's end of a connection that has the caller's rights.

        `on_right_lost` is told when something of it was closed, for which the right is gone.
        """


Headers = Sequence[tuple[bytes, bytes]]


class WebSocketService:
    """All WebSocket connections of one broker. Made at the first handshake."""

    def __init__(
        self,
        broker: OwnBroker,
        *,
        clock: Clock,
        limits: WebSocketLimits,
        page_rules: PageRules | None = None,
    ) -> None:
        """`page_rules` say which pages may shake hands; None: those of no other site."""
        self._broker = broker
        self._clock = clock
        self._limits = limits
        self._page_rules = page_rules or PageRules()
        self._tasks = TaskOwner("websocket")
        self._connections: dict[WebSocketConnection, Credentials | None] = {}
        self._credentials_timer: asyncio.TimerHandle | None = None  # None while none can end
        self._is_closed = False

    @property
    def connections_count(self) -> int:
        """Open connections."""
        return len(self._connections)

    async def handshake(  # noqa: PLR0911 - a kind of refusal each
        self,
        method: str,
        target: str,
        headers: Headers,
        caller_of: Callable[[Mapping[str, str]], Awaitable[HandshakeCaller]],
    ) -> Response | WebSocketConnection:
        """Answer a request; never raises. `caller_of` authenticates its headers."""
        if self._is_closed:
            return page_response(HTTPStatus.SERVICE_UNAVAILABLE)
        raw_path, _, raw_query = target.partition("?")
        given = parameters_of(raw_query)
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        try:
            if TOKEN in given and "authorization" not in named:
                named["authorization"] = f"Bearer {token_of(raw_query)}"
            place = place_of(raw_path)
            if place is None:
                return page_response(HTTPStatus.NOT_FOUND)
            if (refusal := self._refusal(method, named)) is not None:
                return refusal
            caller = await caller_of(named)
            connection = WebSocketConnection(
                list(headers), target, clock=self._clock, limits=self._limits
            )
            await self._open(connection, place, given, caller)
        except BadWebSocketPathError as error:
            return reason_response(HTTPStatus.BAD_REQUEST, str(error))
        except RemoteProtocolError as error:
            return reason_response(HTTPStatus.BAD_REQUEST, str(error))
        except (PulsarError, TimeoutError) as error:
            return reason_response(status_of(error), str(error) or "timed out")
        except Exception:  # The outermost edge of a request.
            logger.exception("handshake failed", extra={"path": raw_path})
            return reason_response(HTTPStatus.INTERNAL_SERVER_ERROR, "an unexpected error occurred")
        return connection

    def _refusal(self, method: str, headers: Mapping[str, str]) -> Response | None:
        """The answer to what is no handshake, or one of a page of another site."""
        is_upgrade = headers.get("upgrade", "").lower() == "websocket"
        if method != "GET" or not is_upgrade or headers.get("sec-websocket-version") != VERSION:
            answer = (("Allow", "GET"), ("Sec-WebSocket-Version", VERSION))
            return page_response(HTTPStatus.METHOD_NOT_ALLOWED, answer)
        if "sec-websocket-key" not in headers:
            return page_response(HTTPStatus.BAD_REQUEST)
        if (reason := self._page_rules.refusal_of(headers)) is not None:
            return reason_response(HTTPStatus.FORBIDDEN, reason)
        return None

    async def _open(
        self,
        connection: WebSocketConnection,
        place: WebSocketPlace,
        given: Mapping[str, str],
        caller: HandshakeCaller,
    ) -> None:
        """Open what the client wants to be, with a client of its own."""
        on_right_lost = partial(
            connection.close, CloseReason.POLICY_VIOLATION, "the right was withdrawn"
        )
        client = broker_client(
            self._broker,
            partial(caller.new_connection, on_right_lost),
            clock=self._clock,
            peername=caller.peername,
        )
        tasks = TaskOwner("websocket dialog")
        async with OnFailureAwait(client.close):
            if place.endpoint is Endpoint.PRODUCER:
                await self._open_producer(connection, place, given, client, tasks)
            elif place.endpoint is Endpoint.CONSUMER:
                await self._open_consumer(connection, place, given, client, tasks)
            else:
                await self._open_reader(connection, place, given, client, tasks)
        self._connections[connection] = caller.credentials
        self._look_later()

    async def _open_producer(
        self,
        connection: WebSocketConnection,
        place: WebSocketPlace,
        given: Mapping[str, str],
        client: Client,
        tasks: TaskOwner,
    ) -> None:
        options = producer_options(given)
        producer = await client.create_producer(str(place.topic), **options)
        end = self._ending(connection, client, tasks)
        is_encrypted = "crypto_key_reader" in options
        connection.attach(ProducerDialog(connection, producer, end, is_encrypted=is_encrypted))

    async def _open_consumer(
        self,
        connection: WebSocketConnection,
        place: WebSocketPlace,
        given: Mapping[str, str],
        client: Client,
        tasks: TaskOwner,
    ) -> None:
        parameters = consumer_parameters(given)
        topics = topics_of(given) if place.topic is None else place.topic
        if isinstance(topics, list) and len(topics) == 1:
            topics = topics[0]
        consumer = await client.subscribe(topics, str(place.subscription), **parameters.options)
        window = SendWindow(0 if parameters.is_pull else parameters.window_count)
        end = self._ending(connection, client, tasks)
        connection.attach(
            ConsumerDialog(connection, consumer, window, tasks, end, is_pull=parameters.is_pull)
        )

    async def _open_reader(
        self,
        connection: WebSocketConnection,
        place: WebSocketPlace,
        given: Mapping[str, str],
        client: Client,
        tasks: TaskOwner,
    ) -> None:
        parameters = reader_parameters(given)
        reader = await client.create_reader(
            str(place.topic), parameters.start, **parameters.options
        )
        window = SendWindow(parameters.window_count)
        end = self._ending(connection, client, tasks)
        connection.attach(ReaderDialog(connection, reader, window, tasks, end))

    def _look_later(self) -> None:
        """Have credentials looked at, as long as there are any that can end."""
        if self._is_closed or self._credentials_timer is not None:
            return
        if any(each is not None and each.can_end for each in self._connections.values()):
            self._credentials_timer = self._clock.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        now_millis = self._clock.wall_time_millis()
        for connection, credentials in list(self._connections.items()):
            reason = None if credentials is None else credentials.reason_to_end(now_millis)
            if reason is not None:
                connection.close(CloseReason.POLICY_VIOLATION, reason)
        self._credentials_timer = None
        self._look_later()

    def _ending(
        self, connection: WebSocketConnection, client: Client, tasks: TaskOwner
    ) -> Callable[[], None]:
        """What a dialog calls at its end: its tasks end, and its client leaves the broker."""

        async def end() -> None:
            await tasks.close()
            await client.close()

        def begin_to_end() -> None:
            self._connections.pop(connection, None)
            self._tasks.spawn(end(), "end")

        return begin_to_end

    async def close(self) -> None:
        """Tell all clients that the broker goes away, and wait until their dialogs have ended."""
        self._is_closed = True
        if self._credentials_timer is not None:
            self._credentials_timer.cancel()
        for connection in list(self._connections):
            connection.close(1001, "the broker is stopping")
        await self._tasks.drain()
        await self._tasks.close()
