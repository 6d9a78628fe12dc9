"""`UnprovedFrames`: what a connection received while its credentials are expired (pure).

From the challenge for other credentials to the answer nothing is served but keep-alive and the
answer itself; all else waits, in order, and is bounded.

Source: a choice of ours; ServerCnx of Pulsar's broker serves such a client until it is closed.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.connection.waiting_publishes import size_of
from pulsar_py.wire import commands
from pulsar_py.wire.framing import Frame

_SERVED: Final = frozenset({BaseCommand.PING, BaseCommand.PONG, BaseCommand.AUTH_RESPONSE})


class UnprovedFrames:
    """Owned by a `ServerCnx` from the challenge to the answer."""

    __slots__ = ("_bytes_count", "_max_bytes", "frames")

    def __init__(self, max_bytes: int) -> None:
        """At most so many bytes of memory may wait."""
        self.frames: list[Frame] = []  # wait, in their order
        self._max_bytes = max_bytes
        self._bytes_count = 0

    def keep(self, frames: list[Frame]) -> list[Frame]:
        """Keep the frames that have to wait; returns those that are served meanwhile.

        Raises:
            RemoteProtocolError: A command can't be read, or more waits than may.
        """
        served: list[Frame] = []
        for frame in frames:
            body, rest = frame
            if (
                rest is None
                and len(body) <= MAX_UNITS
                and commands.read_command(body).type in _SERVED
            ):
                served.append(frame)
                continue
            self.frames.append(frame)
            self._bytes_count += size_of(frame)
        if self._bytes_count > self._max_bytes:
            raise RemoteProtocolError(
                "more was sent than waits for credentials in place of expired ones"
            )
        return served
