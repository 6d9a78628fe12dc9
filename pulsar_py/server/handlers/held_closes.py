"""`HeldCloses`: CLOSE_PRODUCER and CLOSE_CONSUMER that wait for the next broker (edge).

A bundle may move to a broker that is known beforehand. Its topics are closed here first; the
commands that tell clients so are held until that broker has the bundle, and then carry its
address: clients go there without asking anybody. If it does not take the bundle, they are sent
without an address, and clients look the topic up.

What always holds: a command that is held is sent when its hold ends, unless the client has closed
or reused the id by itself, or its connection is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeAlias

from pulsar_py.common.names import TopicName

_IsUsed: TypeAlias = Callable[[int], bool]
_Send: TypeAlias = Callable[[str | None, str | None], None]


class HoldingConnection(Protocol):
    """The part of a connection that `HeldCloses` uses."""

    def uses_producer_id(self, producer_id: int) -> bool:
        """Whether a producer has the id, or is being created with it."""

    def uses_consumer_id(self, consumer_id: int) -> bool:
        """Whether a consumer has the id, or is being created with it."""

    def send(self, frame: bytes) -> None:
        """Send a command; does nothing on a closed connection."""


class Hold:
    """The commands about some topics; ended by its owner."""

    def __init__(self, concerns: Callable[[TopicName], bool]) -> None:
        self.concerns = concerns
        # Whether an id is in use again, and what to send if it is not.
        self._held: list[tuple[_IsUsed, int, _Send]] = []

    def add(self, is_used: _IsUsed, closed_id: int, send: _Send) -> None:
        """Hold what is sent about an id, unless that is in use again by then."""
        self._held.append((is_used, closed_id, send))

    def end(self, url: str | None = None, url_tls: str | None = None) -> int:
        """Send all that is held, with the addresses of who serves the topics; returns how many."""
        held, self._held = self._held, []
        for is_used, closed_id, send in held:
            if not is_used(closed_id):
                send(url, url_tls)
        return len(held)


class HeldCloses:
    """The holds of one broker's connections."""

    def __init__(self) -> None:
        self._holds: list[Hold] = []  # few: bundles on their way

    @contextmanager
    def holding(self, concerns: Callable[[TopicName], bool]) -> Iterator[Hold]:
        """Hold commands about some topics; what is left at the end goes without an address."""
        hold = Hold(concerns)
        self._holds.append(hold)
        try:
            yield hold
        finally:
            self._holds.remove(hold)
            hold.end()

    def close_producer(
        self, cnx: HoldingConnection, producer_id: int, topic: TopicName | None
    ) -> None:
        """Send CLOSE_PRODUCER, or hold it; `topic` is None if it is not known."""
        send = partial(_close_producer, cnx, producer_id)
        self._send_or_hold(topic, cnx.uses_producer_id, producer_id, send)

    def close_consumer(
        self, cnx: HoldingConnection, consumer_id: int, topic: TopicName | None
    ) -> None:
        """Send CLOSE_CONSUMER, or hold it; `topic` is None if it is not known."""
        send = partial(_close_consumer, cnx, consumer_id)
        self._send_or_hold(topic, cnx.uses_consumer_id, consumer_id, send)

    def _send_or_hold(
        self, topic: TopicName | None, is_used: _IsUsed, closed_id: int, send: _Send
    ) -> None:
        for hold in self._holds:
            if topic is not None and hold.concerns(topic):
                hold.add(is_used, closed_id, send)
                return
        send(None, None)


def _close_producer(
    cnx: HoldingConnection, producer_id: int, url: str | None, url_tls: str | None
) -> None:
    from pulsar_py.wire import commands  # noqa: PLC0415 - at first use

    cnx.send(commands.close_producer(producer_id, assigned_url=url, assigned_url_tls=url_tls))


def _close_consumer(
    cnx: HoldingConnection, consumer_id: int, url: str | None, url_tls: str | None
) -> None:
    from pulsar_py.wire import commands  # noqa: PLC0415 - at first use

    cnx.send(commands.close_consumer(consumer_id, assigned_url=url, assigned_url_tls=url_tls))
