"""`WaitingPublishes`: what a connection received for producers while they are at a limit (pure).

Where consumers share the connection of a producer that a rate or the memory of publishes holds
back, its socket is read on, so that keep-alive, acknowledgements and permits get through:

    SEND                            waits, in order; one to no producer is served: it is refused
    PRODUCER, CLOSE_PRODUCER        waits if something of the same producer does
    everything else                 is served at once

What always holds: commands about one producer keep their order. Beyond `MAX_WAITING_BYTES` of a
connection, or `MAX_ALL_WAITING_BYTES` of all of a broker's, the socket is not read any more.

Source: a choice of ours; ServerCnxThrottleTracker of Pulsar's broker stops reading at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Mapping
from typing import Final

from pulsar_py.common.errors import UNREADABLE, RemoteProtocolError
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.wire import commands
from pulsar_py.wire.framing import Frame

MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
"""Of one connection: a thousand SENDs of 8 KB, which is how many clients have under way."""

MAX_ALL_WAITING_BYTES: Final = 64 * 1024 * 1024

FRAME_BYTES: Final = 256
"""The memory of a frame that waits, beside its bytes."""

SERVED_TOGETHER_BYTES: Final = 64 * 1024

# How commands begin as every client writes them: the tag of their type, then the type.
_SEND_START: Final = bytes((0x08, BaseCommand.SEND))
_TYPE_TAG: Final = 0x08
_OF_PRODUCERS: Final[Mapping[int, str]] = {
    BaseCommand.SEND: "send",
    BaseCommand.PRODUCER: "producer",
    BaseCommand.CLOSE_PRODUCER: "close_producer",
}


class WaitingBudget:
    """The bytes that wait in all connections of a broker, which owns it."""

    def __init__(self, max_bytes: int = MAX_ALL_WAITING_BYTES) -> None:
        self.max_bytes = max_bytes
        self.bytes_count = 0


class WaitingPublishes:
    """Owned by a `ServerCnx` while its producers are at a limit, and until none wait."""

    __slots__ = ("_budget", "_frames", "_producer_ids", "_producers", "bytes_count")

    def __init__(self, budget: WaitingBudget, producers: Container[int]) -> None:
        """`producers` are the ids of the connection's producers now."""
        self._budget = budget
        self._producers = producers
        self._frames: deque[tuple[Frame, int]] = deque()  # each with its producer's id
        self._producer_ids: Counter[int] = Counter()  # of how many frames each has
        self.bytes_count = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def is_full(self) -> bool:
        """Whether no more may be read."""
        return (
            self.bytes_count >= MAX_WAITING_BYTES
            or self._budget.bytes_count >= self._budget.max_bytes
        )

    @property
    def has_room(self) -> bool:
        """Whether reading may go on after it was full."""
        return (
            self.bytes_count <= MAX_WAITING_BYTES // 2
            and self._budget.bytes_count < self._budget.max_bytes
        )

    def keep(self, frames: list[Frame]) -> list[Frame]:
        """Keep the frames that have to wait; returns the others, which are served now."""
        others: list[Frame] = []
        for frame in frames:
            producer_id = self._waiting_producer(frame)
            if producer_id is None:
                others.append(frame)
                continue
            self._frames.append((frame, producer_id))
            self._producer_ids[producer_id] += 1
            self._count(size_of(frame))
        return others

    def _waiting_producer(self, frame: Frame) -> int | None:
        """The id of the producer that the frame has to wait for; None if it may be served."""
        kind, command = _read(frame.command)
        field = _OF_PRODUCERS.get(kind) if command is not None else None
        if field is None:
            return None
        producer_id: int = getattr(command, field).producer_id
        is_known = producer_id in self._producer_ids
        if kind == BaseCommand.SEND:
            is_known = is_known or producer_id in self._producers
        return producer_id if is_known else None

    def take(self) -> list[Frame]:
        """The next frames to serve: some SENDs as clients write them, or one of another kind."""
        taken: list[Frame] = []
        size_bytes = 0
        while self._frames and size_bytes < SERVED_TOGETHER_BYTES:
            frame, producer_id = self._frames[0]
            is_plain = frame.command.startswith(_SEND_START)
            if taken and not is_plain:
                break
            self._frames.popleft()
            self._producer_ids[producer_id] -= 1
            if not self._producer_ids[producer_id]:
                del self._producer_ids[producer_id]
            self._count(-size_of(frame))
            size_bytes += size_of(frame)
            taken.append(frame)
            if not is_plain:
                break
        return taken

    def forget(self, producer_id: int) -> None:
        """Drop the SENDs of a producer that the broker closed, which its client sends again."""
        if producer_id not in self._producer_ids:
            return
        frames, self._frames = self._frames, deque()
        is_former = True
        for frame, its_id in frames:
            if its_id == producer_id:
                is_send = frame.command.startswith(_SEND_START)
                if is_former and is_send:
                    self._count(-size_of(frame))
                    self._producer_ids[producer_id] -= 1
                    continue
                is_former = is_former and is_send
            self._frames.append((frame, its_id))
        if not self._producer_ids[producer_id]:
            del self._producer_ids[producer_id]

    def clear(self) -> None:
        """Forget all: the connection is closed."""
        self._frames.clear()
        self._producer_ids.clear()
        self._count(-self.bytes_count)

    def _count(self, size_bytes: int) -> None:
        self.bytes_count += size_bytes
        self._budget.bytes_count += size_bytes


def size_of(frame: Frame) -> int:
    """The bytes of memory that a frame takes while it waits."""
    return FRAME_BYTES + len(frame.command) + len(frame.headers_and_payload or b"")


def _read(body: bytes) -> tuple[int, BaseCommand | None]:
    """The type of a command, and the command if it may be one about a producer."""
    is_usual = len(body) > 1 and body[0] == _TYPE_TAG and body[1] < 0x80  # noqa: PLR2004 - a varint
    if is_usual and body[1] not in _OF_PRODUCERS:
        return body[1], None
    if not is_usual and len(body) > MAX_UNITS:
        return -1, None  # no client writes its type behind so much
    try:
        command = commands.read_command(body)
    except (*UNREADABLE, RemoteProtocolError):
        return -1, None  # whoever serves it closes the connection
    return command.type, command
