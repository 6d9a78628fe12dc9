"""What all parts of one client share."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from pulsar_py.client.client_config import ClientConfig
from pulsar_py.client.memory_limit import MemoryLimit
from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import ClientError
from pulsar_py.common.tasks import TaskOwner

if TYPE_CHECKING:
    from pulsar_py.client.connection_handler import ConnectionHandler, ConnectionOwner
    from pulsar_py.client.connection_pool import ConnectionPool
    from pulsar_py.client.lookup import LookupService
    from pulsar_py.client.statistics import StatisticsReporter

__all__ = ["ClientContext", "Closable"]


class Closable(Protocol):
    """What a client closes when it is closed: a producer, consumer, reader, table view."""

    async def close(self) -> None:
        """End in bounded time; may be called again."""


class ClientContext:
    """The inside of one client, handed to each of its parts. Made by `Client`, lives as long."""

    config: ClientConfig
    clock: Clock
    random: Random
    tasks: TaskOwner
    """Tasks of the client itself; parts with tasks have owners of their own."""
    pool: ConnectionPool
    lookup: LookupService
    """Of the current service URL: read it each time, it is replaced when the URL is."""
    memory_limit: MemoryLimit
    statistics: StatisticsReporter
    closed_error: ClientError | None
    """Why the client can't be used any more (closed, forked); hot paths test it for None."""

    def check_usable(self) -> None:
        """Raise if the client is closed, or was made by this process's parent.

        Raises:
            AlreadyClosedError, ForkedProcessError: As the names say.
        """
        raise NotImplementedError

    def new_producer_id(self) -> int:
        """An id that no other producer of this client has."""
        raise NotImplementedError

    def new_consumer_id(self) -> int:
        """An id that no other consumer or topic watcher of this client has."""
        raise NotImplementedError

    def new_request_id(self) -> int:
        """An id that no other request of this client has."""
        raise NotImplementedError

    async def partitions_count(self, topic: str, *, may_create: bool = True) -> int:
        """As `LookupService.partitions_count` of the current service URL."""
        raise NotImplementedError

    def connection_handler(
        self, topic: str, owner: ConnectionOwner, *, description: str, **options: Any
    ) -> ConnectionHandler:
        """A ConnectionHandler of this client."""
        raise NotImplementedError

    def register_child(self, child: Closable) -> None:
        """Close `child` with the client."""
        raise NotImplementedError

    def unregister_child(self, child: Closable) -> None:
        """It is closed; unknown ones are fine."""
        raise NotImplementedError
