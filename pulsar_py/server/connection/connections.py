"""All connections of one broker: limits, and one sweep for keep-alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_py.common.clock import Clock
from pulsar_py.server.connection.settings import ConnectionSettings

if TYPE_CHECKING:
    from pulsar_py.server.connection.server_cnx import ServerCnx
    from pulsar_py.server.namespaces.lookup import NamespaceService
    from pulsar_py.server.schema_registry import SchemaRegistry
    from pulsar_py.server.topics.registry import TopicRegistry


class Connections:
    """Made and owned by the broker; knows what the handlers of its connections work with."""

    def __init__(
        self,
        *,
        topics: TopicRegistry,
        namespaces: NamespaceService,
        schemas: SchemaRegistry,
        clock: Clock,
        settings: ConnectionSettings,
    ) -> None:
        self.topics = topics
        self.namespaces = namespaces
        self.schemas = schemas
        self.clock = clock
        self.settings = settings

    def new_connection(self) -> ServerCnx:
        """A protocol object for one accepted socket; usable as `loop.create_server`'s factory."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """Open connections."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the keep-alive sweep on the running loop."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close every connection and wait until their work has ended."""
        raise NotImplementedError
