"""ChunkAffinity, ChunkHolders: all chunks of one message go to one consumer (pure).

Shared: the consumer that gets a chunk of a message first owns the message until its last chunk was
sent, or until it leaves. A chunk whose owner can't take it now is parked: it stays in the
redelivery set and is passed over while its owner is not available.

Key_Shared: the key decides, but a message that is begun stays where its chunks are held, even when
the key has moved meanwhile. So the message of each chunk that is held or waits is recorded.

What always holds: open messages of Shared are at most `MAX_OPEN_MESSAGES`; too many forget the
oldest.

Source: SharedConsumerAssignor in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Generic, Protocol, TypeVar

from pulsar_py.server.dispatch.pending_acks import PositionKey
from pulsar_py.wire.entry_summary import EntrySummary

C = TypeVar("C")

MAX_OPEN_MESSAGES = 10_000
"""Messages of which some chunks, but not the last one, were sent; a bound for broken producers."""

MAX_PARKED_CHUNKS = 10_000
"""At most so many chunks wait for their consumer while new entries are read."""


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
        """Too many chunks wait: no new entries should be read."""
        return len(self._parked) >= MAX_PARKED_CHUNKS

    def owner(self, summary: EntrySummary) -> C | None:
        """The consumer that must get this entry; None if any may."""
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
        """The consumer that a parked entry waits for; None if it is not parked."""
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

    def forget_up_to(self, position: PositionKey) -> None:
        """Entries up to here are gone."""
        for key in [each for each in self._parked if each <= position]:
            del self._parked[key]


class ChunkHolder(Protocol):
    """The part of a consumer that chunks need."""

    @property
    def pending_acks(self) -> Container[PositionKey]:
        """The entries it has not acknowledged."""


H = TypeVar("H", bound=ChunkHolder)


class _Message(Generic[H]):
    """A chunked message: its unsettled chunks, and the consumer that was sent one last."""

    __slots__ = ("consumer", "positions")

    def __init__(self) -> None:
        self.positions: dict[PositionKey, None] = {}
        self.consumer: H | None = None


class ChunkHolders(Generic[H]):
    """Owned by the dispatcher of a Key_Shared subscription.

    Invariant: each known position belongs to one message, and each message has at least one. They
    are entries that are unacknowledged or wait, so both are bounded as those are.
    """

    __slots__ = ("_messages", "_uuids")

    def __init__(self) -> None:
        self._messages: dict[str, _Message[H]] = {}
        self._uuids: dict[PositionKey, str] = {}

    def __len__(self) -> int:
        """Chunks that are held or wait."""
        return len(self._uuids)

    def uuid_of(self, position: PositionKey) -> str | None:
        """The message that an entry is a part of; None if it is whole or not known."""
        return self._uuids.get(position)

    def holder(self, uuid: str | None) -> H | None:
        """The consumer with an unacknowledged chunk of the message; None without one."""
        message = None if uuid is None else self._messages.get(uuid)
        if message is None or message.consumer is None:
            return None
        pending_acks = message.consumer.pending_acks
        is_held = any(position in pending_acks for position in message.positions)
        return message.consumer if is_held else None

    def on_waiting(self, position: PositionKey, uuid: str | None) -> None:
        """An entry, perhaps a chunk, can't be sent yet."""
        if uuid is not None:
            self._message(position, uuid)

    def on_sent(self, position: PositionKey, uuid: str | None, consumer: H) -> None:
        """An entry, perhaps a chunk, went to this consumer."""
        if uuid is not None:
            self._message(position, uuid).consumer = consumer

    def forget(self, position: PositionKey) -> bool:
        """The entry was acknowledged or is gone; returns whether other chunks of it are left."""
        uuid = self._uuids.pop(position, None)
        if uuid is None:
            return False
        positions = self._messages[uuid].positions
        del positions[position]
        if not positions:
            del self._messages[uuid]
        return bool(positions)

    def forget_up_to(self, position: PositionKey) -> None:
        """Entries up to here are gone."""
        for key in [each for each in self._uuids if each <= position]:
            self.forget(key)

    def forget_consumer(self, consumer: H) -> None:
        """A consumer left: its messages have no owner, and all their chunks wait."""
        for message in self._messages.values():
            if message.consumer is consumer:
                message.consumer = None

    def clear(self) -> None:
        """All consumers left."""
        self._messages.clear()
        self._uuids.clear()

    def _message(self, position: PositionKey, uuid: str) -> _Message[H]:
        message = self._messages.get(uuid)
        if message is None:
            message = self._messages[uuid] = _Message()
        message.positions[position] = None
        self._uuids[position] = uuid
        return message

    def check(self) -> None:
        """Assert the invariant; for tests."""
        known = {
            position: uuid
            for uuid, message in self._messages.items()
            for position in message.positions
        }
        assert known == self._uuids, "positions do not match the messages"
        assert all(each.positions for each in self._messages.values()), "a message has no chunk"
