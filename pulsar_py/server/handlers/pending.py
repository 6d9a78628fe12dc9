"""Producers and consumers under creation, and the commands that arrive for them meanwhile.

Creating one is done in a task, while the connection reads on. These objects tell the task whether
the client gave up, and which permits it sent before the success.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pulsar_py.common.errors import RemoteProtocolError

if TYPE_CHECKING:
    from pulsar_py.server.publishing.producer import Producer

_MAX_PERMITS = 2**31 - 1


class PendingProducer:
    """A producer id whose PRODUCER is being served, or waits for exclusive access.

    Invariant: `producer` is None until the topic has taken it in.
    """

    __slots__ = ("_answered", "is_abandoned", "producer")

    def __init__(self) -> None:
        self.is_abandoned = False
        self.producer: Producer | None = None  # set while it waits for exclusive access
        self._answered = asyncio.Event()

    @property
    def is_answered(self) -> bool:
        """Whether the PRODUCER had its first answer, so that it only waits for exclusive access."""
        return self._answered.is_set()

    def on_answered(self) -> None:
        """Note that PRODUCER_SUCCESS or ERROR was sent, or that the client has gone."""
        self._answered.set()

    async def wait_until_answered(self) -> None:
        """Return once the PRODUCER has its first answer; at most the time of loading a topic."""
        await self._answered.wait()

    def abandon(self) -> None:
        """Note that the client closed the id, or is gone: the result is not wanted any more."""
        self.is_abandoned = True
        if self.producer is not None:
            self.producer.on_connection_lost()


class PendingConsumer:
    """A consumer id whose SUBSCRIBE is being served."""

    __slots__ = ("is_abandoned", "permits_count")

    def __init__(self) -> None:
        self.is_abandoned = False
        self.permits_count = 0  # of FLOWs that came early

    def flow(self, permits_count: int) -> None:
        """Keep permits for later.

        Raises:
            RemoteProtocolError: The number is 0 or, as a signed one, negative.
        """
        if not 0 < permits_count <= _MAX_PERMITS:
            raise RemoteProtocolError(f"FLOW of {permits_count} permits, expected 1 to 2147483647")
        self.permits_count += permits_count

    def abandon(self) -> None:
        """Note that the client closed the id, or is gone: the result is not wanted any more."""
        self.is_abandoned = True
