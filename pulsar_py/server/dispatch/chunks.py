"""ChunkAffinity: all chunks of one message go to one Shared consumer (pure).

The consumer that gets a chunk of a message first owns the message until its last chunk was sent, or
until it leaves. A chunk whose owner can't take it now is parked: it stays in the redelivery set and
is passed over while its owner is not available.

What always holds: open messages are at most `MAX_OPEN_MESSAGES`; too many forget the oldest.

Source: SharedConsumerAssignor in Pulsar's broker.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pulsar_py.server.dispatch.pending_acks import PositionKey
from pulsar_py.wire.entry_summary import EntrySummary

C = TypeVar("C")

MAX_OPEN_MESSAGES = 10_000
"""Messages of which some chunks, but not the last one, were sent; a bound for broken producers."""

MAX_PARKED_CHUNKS = 10_000
"""Chunks that wait for their consumer before no new entries are read."""


class ChunkAffinity(Generic[C]):
    """Owned by the dispatcher of a Shared subscription."""

    __slots__ = ("_owners", "_parked")

    def __init__(self) -> None:
        self._owners: dict[str, C] = {}
        self._parked: dict[PositionKey, C] = {}

    @property
    def has_parked(self) -> bool:
        """Some chunk waits for its owner."""
        return bool(self._parked)

    @property
    def is_full(self) -> bool:
        """So many wait that nothing new should be read."""
        return len(self._parked) >= MAX_PARKED_CHUNKS

    def owner(self, summary: EntrySummary) -> C | None:
        """Who has to get this entry; None if anybody may."""
        return None if summary.uuid is None else self._owners.get(summary.uuid)

    def on_sent(self, position: PositionKey, summary: EntrySummary, consumer: C) -> None:
        """The entry goes to this consumer."""
        self._parked.pop(position, None)
        if summary.uuid is None:
            return
        if summary.is_last_chunk:
            self._owners.pop(summary.uuid, None)
            return
        self._owners[summary.uuid] = consumer
        if len(self._owners) > MAX_OPEN_MESSAGES:
            del self._owners[next(iter(self._owners))]

    def park(self, position: PositionKey, owner: C) -> None:
        """The entry waits until its owner can take it."""
        self._parked[position] = owner

    def parked_for(self, position: PositionKey) -> C | None:
        """Whom a parked entry waits for; None if it is not parked."""
        return self._parked.get(position)

    def forget_position(self, position: PositionKey) -> None:
        """The entry was acknowledged or is gone."""
        self._parked.pop(position, None)

    def forget_consumer(self, consumer: C) -> None:
        """A consumer left: others may get its messages."""
        for uuid in [each for each, owner in self._owners.items() if owner is consumer]:
            del self._owners[uuid]
        for position in [each for each, owner in self._parked.items() if owner is consumer]:
            del self._parked[position]

    def clear(self) -> None:
        """All consumers left."""
        self._owners.clear()
        self._parked.clear()
