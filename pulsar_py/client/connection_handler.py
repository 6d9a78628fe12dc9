"""How a producer or consumer gets its connection, and gets it back. Implementation follows."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulsar_py.client.client_cnx import ClientCnx
    from pulsar_py.client.client_context import ClientContext

__all__ = ["ConnectionHandler", "ConnectionOwner", "ConnectionState"]


class ConnectionState(Enum):
    """How far a producer's or consumer's connection is."""

    UNINITIALIZED = "uninitialized"
    CONNECTING = "connecting"
    READY = "ready"
    CLOSED = "closed"
    FAILED = "failed"


class ConnectionOwner(Protocol):
    """Who needs the connection: one producer, consumer or watcher."""

    async def opened(self, cnx: ClientCnx) -> None:
        """Register with the broker on `cnx`: returns when it said yes, raises when it did not.

        On an error or when cancelled the owner has unregistered from `cnx` again.
        `ConnectionHandler.request_timeout_seconds` is how long its requests may take. What must not
        be seen before the first success belongs after the last await: the handler is READY, without
        another step of the loop, when this returns.
        """

    def on_connection_failed(self, error: Exception) -> None:
        """There will be no connection any more: `error` says why. Not called for the first `open`,
        which raises instead.
        """


class ConnectionHandler:
    """Looks a topic up, connects, lets its owner register, and begins anew when that is lost."""

    def __init__(
        self,
        context: ClientContext,
        topic: str,
        owner: ConnectionOwner,
        *,
        description: str,
        fatal_errors: tuple[type[Exception], ...] | None = None,
    ) -> None:
        """Take in who wants what; nothing happens before `open`.

        Args:
            context: The client.
            topic: Full name, a partition's where it is one.
            owner: Whose connection it is.
            description: What logs and errors call it: `producer p-1 of persistent://…`.
            fatal_errors: What ends it once it was open; None for `FATAL_ONCE_OPEN`.
        """
        raise NotImplementedError

    @property
    def state(self) -> ConnectionState:
        """How far it is."""
        raise NotImplementedError

    @property
    def cnx(self) -> ClientCnx | None:
        """The connection while READY, else None. Hot paths may keep their own copy."""
        raise NotImplementedError

    @property
    def is_connected(self) -> bool:
        """Whether it is READY."""
        raise NotImplementedError

    @property
    def request_timeout_seconds(self) -> float:
        """How long a request of `opened` may take: the operation timeout, or what is left of it."""
        raise NotImplementedError

    @property
    def epoch(self) -> int:
        """How often a registration was begun before this one: 0 in the first `opened`."""
        raise NotImplementedError

    async def open(self) -> None:
        """Return when the owner is registered for the first time.

        Raises:
            ServiceError, ClientError: The last attempt's, when it is not worth another, or the
                operation timeout is over. The handler is FAILED then.
        """
        raise NotImplementedError

    def connection_closed(
        self,
        cnx: ClientCnx,
        assigned_url: str | None = None,
        assigned_url_tls: str | None = None,
    ) -> None:
        """The owner lost `cnx`, or its place on it: begin anew, at once where a broker is assigned.

        News of a connection that is not the current one changes nothing.
        """
        raise NotImplementedError

    def topic_migrated(self, service_url: str | None, service_url_tls: str | None) -> None:
        """From now on look the topic up in another cluster."""
        raise NotImplementedError

    def reconnect(self) -> None:
        """Give up the current registration and begin anew, though the connection may be whole.

        The owner has to unregister from the connection itself before.
        """
        raise NotImplementedError

    async def wait_connected(self) -> ClientCnx:
        """Return when READY.

        Raises:
            AlreadyClosedError: The handler is, or becomes, closed.
            ClientError, ServiceError: It FAILED, and why.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """No more attempts; the connection itself stays open for others. May be called again."""
        raise NotImplementedError
