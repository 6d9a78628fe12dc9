"""A client's end, as dispatch sees it: a connection that keeps what it is given."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.dispatch.client_connection import Buffer
from pulsar_py.wire.framing import FrameDecoder

MAX_FRAME_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Received:
    """One MESSAGE."""

    consumer_id: int
    ledger_id: int
    entry_id: int
    redelivery_count: int
    ack_set: tuple[int, ...]
    consumer_epoch: int | None
    data: bytes


_ids = itertools.count(1)


@dataclass(eq=False)
class FakeConnection:
    """Implements ClientConnection; `commands` and `messages` are what the client would have."""

    protocol_version: int = 21
    supports_broker_entry_metadata: bool = False
    is_writable: bool = True
    is_connected: bool = True
    is_responsive: bool = True
    client_version: str = "test"
    remote_address: str = "/127.0.0.1:1"
    commands: list[BaseCommand] = field(default_factory=list)
    messages: list[Received] = field(default_factory=list)
    writes_count: int = 0
    liveness_checks_count: int = 0
    consumers_closed: list[int] = field(default_factory=list)
    on_close: list[Callable[[], None]] = field(default_factory=list)
    _waiting: list[Callable[[], None]] = field(default_factory=list)

    def send(self, frame: bytes) -> None:
        self._take(frame)

    def write(self, buffers: Sequence[Buffer]) -> None:
        self.writes_count += 1
        self._take(b"".join(buffers))

    def _take(self, data: bytes) -> None:
        if not self.is_connected:
            return
        for frame in FrameDecoder(MAX_FRAME_BYTES).decode(data):
            command = BaseCommand.FromString(frame.command)
            if command.type == BaseCommand.MESSAGE:
                message = command.message
                self.messages.append(
                    Received(
                        message.consumer_id,
                        message.message_id.ledgerId,
                        message.message_id.entryId,
                        message.redelivery_count,
                        tuple(message.ack_set),
                        message.consumer_epoch if message.HasField("consumer_epoch") else None,
                        bytes(frame.headers_and_payload or b""),
                    )
                )
            else:
                self.commands.append(command)

    def when_writable(self, callback: Callable[[], None]) -> None:
        self._waiting.append(callback)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def become_writable(self) -> None:
        self.is_writable = True
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    async def check_liveness(self) -> bool:
        self.liveness_checks_count += 1
        if not self.is_responsive:
            self.close()
        return self.is_connected

    def close(self) -> None:
        self.is_connected = False
        for callback in self.on_close:
            callback()

    def producer_closed_by_broker(self, producer_id: int) -> None:
        raise NotImplementedError

    def consumer_closed_by_broker(self, consumer_id: int) -> None:
        self.consumers_closed.append(consumer_id)
        if self.protocol_version < 5:
            self.close()

    def entry_ids(self, consumer_id: int | None = None) -> list[int]:
        """Entry ids of the messages of a consumer, or of all, in order."""
        return [
            each.entry_id
            for each in self.messages
            if consumer_id is None or each.consumer_id == consumer_id
        ]

    def active_changes(self) -> list[tuple[int, bool]]:
        """(consumer id, is active) of each ACTIVE_CONSUMER_CHANGE."""
        return [
            (each.active_consumer_change.consumer_id, each.active_consumer_change.is_active)
            for each in self.commands
            if each.type == BaseCommand.ACTIVE_CONSUMER_CHANGE
        ]

    def ends_of_topic(self) -> list[int]:
        """Consumer id of each REACHED_END_OF_TOPIC."""
        return [
            each.reachedEndOfTopic.consumer_id
            for each in self.commands
            if each.type == BaseCommand.REACHED_END_OF_TOPIC
        ]
