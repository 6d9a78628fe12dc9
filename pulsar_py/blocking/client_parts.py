"""`ClientParts`: what the parts of one blocking client share (values)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary

from pulsar_py.blocking.client_thread import ClientThread
from pulsar_py.client.brokers.client_context import ClientContext

__all__ = ["ClientParts", "HandsOver"]


class HandsOver(Protocol):
    """A producer, consumer or reader, whose threads hand things over to the loop."""

    def hand_over(self) -> None:
        """Take everything that threads have queued; called in the loop."""


@dataclass(frozen=True, slots=True)
class ClientParts:
    """The parts that one client shares with what it makes."""

    owner: object
    """The client itself, which lives as long as what it made."""
    thread: ClientThread
    context: ClientContext
    """The asyncio client's; says whether it is closed, or of a process before a fork."""
    parts: WeakKeyDictionary[HandsOver, None] = field(default_factory=WeakKeyDictionary)
    """Those that hand over what they have before the client closes, oldest first."""

    def hand_over(self) -> None:
        """Have all parts hand over what they have; called in the loop."""
        for part in list(self.parts):
            part.hand_over()
