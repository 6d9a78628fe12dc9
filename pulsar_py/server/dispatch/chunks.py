"""`ChunkAffinity`, `ChunkHolders`: send all chunks of one message to one consumer (pure).

Shared: the consumer that gets the first chunk of a message owns the message until its last chunk
was sent, or until the consumer leaves. A chunk that its owner can't be sent now is parked: it stays
in the redelivery set and is skipped while its owner is not available.

Key_Shared: the key decides, but all chunks of a message go to the consumer that has unacknowledged
ones, even when the key's slot has moved to another one. So the message of each chunk that is
unacknowledged or waits is recorded.

What always holds: at most `MAX_OPEN_MESSAGES` messages of Shared are open; beyond that the oldest
is forgotten.

Source: SharedConsumerAssignor in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Generic, Protocol, TypeVar

from pulsar_py.server.dispatch.pending_acks import PositionKey
from pulsar_py.wire.entry_summary import EntrySummary

C = TypeVar("C")

MAX_OPEN_MESSAGES = 10_000
"""The most messages of which some chunks, but not the last one, were sent; a broken producer may
leave any number of them."""

MAX_PARKED_CHUNKS = 10_000
"""Parked chunks beyond which no new entries are read."""


class ChunkAffinity(Generic[C]):
    """The owners of open chunked messages. Owned by the dispatcher of a Shared subscription."""

    __slots__ = ("_owners", "_parked")

    def __init__(self) -> None:
        self._owners: dict[str, C] = {}
        self._parked: dict[PositionKey, C] = {}

    @property
    def has_parked(self) -> bool:
        """Whether any chunk waits for its owner."""
        return bool(self._parked)

    @property
    def is_full(self) -> bool:
        """Whether so many chunks wait that no new entries should be read."""
        return len(self._parked) >= MAX_PARKED_CHUNKS

    def owner(self, summary: EntrySummary) -> C | None:
        """The consumer that must get this entry; None if any may."""
        return None if summary.uuid is None else self._owners.get(summary.uuid)

    def on_sent(self, position: PositionKey, summary: EntrySummary, consumer: C) -> None:
        """Note that an entry is sent to a consumer, which then owns the entry's message."""
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
        """Note that an entry waits until its owner can be sent it."""
        self._parked[position] = owner

    def parked_for(self, position: PositionKey) -> C | None:
        """The consumer that a parked entry waits for; None if it is not parked."""
        return self._parked.get(position)

    def parked_owners(self) -> dict[C, None]:
        """The consumers that parked entries wait for."""
        return dict.fromkeys(self._parked.values())

    def forget_position(self, position: PositionKey) -> None:
        """Forget an entry that was acknowledged or does not exist any more."""
        self._parked.pop(position, None)

    def forget_consumer(self, consumer: C) -> None:
        """Forget a consumer that left: others may get its messages."""
        for uuid in [each for each, owner in self._owners.items() if owner is consumer]:
            del self._owners[uuid]
        for position in [each for each, owner in self._parked.items() if owner is consumer]:
            del self._parked[position]

    def clear(self) -> None:
        """Forget everything: all consumers left."""
        self._owners.clear()
        self._parked.clear()

    def forget_up_to(self, position: PositionKey) -> None:
        """Forget entries up to a position, which were acknowledged or deleted."""
        for key in [each for each in self._parked if each <= position]:
            del self._parked[key]


class ChunkHolder(Protocol):
    """The part of a consumer that `ChunkHolders` uses."""

    @property
    def pending_acks(self) -> Container[PositionKey]:
        """The entries it has not acknowledged."""


H = TypeVar("H", bound=ChunkHolder)


class _Message(Generic[H]):
    """A chunked message: its chunks that wait or are unacknowledged, and their consumer."""

    __slots__ = ("consumer", "positions")

    def __init__(self) -> None:
        self.positions: dict[PositionKey, None] = {}
        self.consumer: H | None = None


class ChunkHolders(Generic[H]):
    """The consumers of chunked messages. Owned by the dispatcher of a Key_Shared subscription.

    Invariant: each known position belongs to one message, and each message has at least one
    position. The entries are unacknowledged or wait, so their number is bounded.
    """

    __slots__ = ("_messages", "_uuids")

    def __init__(self) -> None:
        self._messages: dict[str, _Message[H]] = {}
        self._uuids: dict[PositionKey, str] = {}

    def __len__(self) -> int:
        """Chunks that are unacknowledged or wait."""
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
        """Note that an entry, perhaps a chunk, can't be sent yet."""
        if uuid is not None:
            self._message(position, uuid)

    def on_sent(self, position: PositionKey, uuid: str | None, consumer: H) -> None:
        """Note that an entry, perhaps a chunk, was sent to a consumer."""
        if uuid is not None:
            self._message(position, uuid).consumer = consumer

    def forget(self, position: PositionKey) -> bool:
        """Forget an acknowledged or deleted entry; returns whether its message has other chunks."""
        uuid = self._uuids.pop(position, None)
        if uuid is None:
            return False
        positions = self._messages[uuid].positions
        del positions[position]
        if not positions:
            del self._messages[uuid]
        return bool(positions)

    def forget_up_to(self, position: PositionKey) -> None:
        """Forget entries up to a position, which were acknowledged or deleted."""
        for key in [each for each in self._uuids if each <= position]:
            self.forget(key)

    def forget_consumer(self, consumer: H) -> None:
        """Note that a consumer left: its messages have no holder, and all their chunks wait."""
        for message in self._messages.values():
            if message.consumer is consumer:
                message.consumer = None

    def clear(self) -> None:
        """Forget everything: all consumers left."""
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
