"""`WatchedCnx`: a connection that tells interceptors of its life and its commands.

`Connections` makes its connections of this class only while an interceptor listens to one of
`CALLS`.
"""

from __future__ import annotations

import asyncio

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.connection.server_cnx import ServerCnx, ServerCnxOwner
from pulsar_py.server.hooks.broker_interceptor import ClientInfo
from pulsar_py.server.hooks.interceptors import Interceptors


class WatchedCnx(ServerCnx):
    """Made by `Connections` in place of a `ServerCnx`."""

    __slots__ = ("_interceptors",)

    def __init__(self, connections: ServerCnxOwner, interceptors: Interceptors) -> None:
        super().__init__(connections)
        self._interceptors = interceptors

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with an open socket."""
        super().connection_made(transport)
        self._interceptors.tell("on_connection_created", self._info())

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave all topics: the socket is closed."""
        super().connection_lost(exc)
        self._interceptors.tell("on_connection_closed", self._info())

    def _serve_plain_ack(self, body: bytes) -> bool:
        """Have it parsed, so that `serve` can tell of it."""
        del body
        return False

    def serve(self, command: BaseCommand, rest: bytes | None) -> None:
        """Tell of a command, then serve it.

        Raises:
            RemoteProtocolError: It breaks the protocol.
        """
        self._interceptors.tell("on_pulsar_command", command, self._info())
        super().serve(command, rest)

    def _info(self) -> ClientInfo:
        return ClientInfo(address=self.remote_address, version=self.client_version, role=self.role)
