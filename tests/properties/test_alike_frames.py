"""What a connection makes of nearly alike frames, against one that parses each command.

Both get the same bytes in the same reads. What producers and consumers are told has to be the same,
and so have to be the messages that a queue makes of the entries, and the end of the connection.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsar_py.client.acknowledging.ack_grouping import NoAcknowledgmentsTracker
from pulsar_py.client.brokers import client_cnx
from pulsar_py.client.brokers.client_cnx import ClientCnx, CnxSettings
from pulsar_py.client.messages.message import EntryKey
from pulsar_py.client.receiving.alike_entries import AlikeEntries
from pulsar_py.client.receiving.chunk_assembly import ChunkAssembly
from pulsar_py.client.receiving.incoming_queue import IncomingQueue
from pulsar_py.common.hashing import crc32c
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarApi_pb2 import CommandMessage, FeatureFlags
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.wire import commands
from pulsar_py.wire.alike_commands import NOTHING, AlikeCommands
from pulsar_py.wire.framing import DEFAULT_MAX_MESSAGE_SIZE, SIZES


class Parsing(AlikeCommands):
    """Knows no command, so that each is parsed."""

    def find_alone(self, data: bytes) -> None:
        return None

    def find(self, data: bytes) -> Any:
        return NOTHING

    def is_receipt_frame(self, piece: bytes) -> bool:
        return False


@dataclass(eq=False)
class Seen:
    """What one handler was told."""

    is_awaited: bool = False
    news: list[object] = field(default_factory=list)
    queue: IncomingQueue = field(
        default_factory=lambda: IncomingQueue(
            "t", NoAcknowledgmentsTracker(), ChunkAssembly(), keeps_batches=False
        )
    )

    def on_send_receipt(
        self, sequence_id: int, highest: int, ledger_id: int, entry_id: int
    ) -> None:
        self.news.append((sequence_id, highest, ledger_id, entry_id))

    on_lone_receipt = on_send_receipt

    def on_send_receipts(
        self, sequence_id: int, highest: int, ledger_id: int, entry_id: int, count: int
    ) -> None:
        for more in range(count):
            self.on_send_receipt(sequence_id + more, highest, ledger_id, entry_id + more)

    def on_message(self, command: CommandMessage, data: bytes, key: EntryKey | None = None) -> None:
        queue = self.queue
        queue.push(command, data, key)
        while queue.fill(0.0):
            while queue.ready:
                message = queue.ready.popleft()
                entry = message.entry
                self.news.append(
                    (
                        entry.key,
                        entry.redelivery_count,
                        message.data(),
                        message.batch_index,
                        entry.metadata.SerializePartialToString(),
                        str(entry.broker_metadata),
                    )
                )
        self.news.append((str(queue.take_effects()), queue.passed_key, queue.permits_used))

    def on_batch_end(self) -> None:
        pass

    def on_connection_closed(self, cnx: ClientCnx) -> None:
        self.news.append("closed")


async def told(reads: list[bytes], *, is_awaited: bool) -> dict[str, object]:
    """What is told of these reads."""
    cnx = ClientCnx(
        CnxSettings(remote_address="broker"),
        clock=VirtualClock(),
        tasks=TaskOwner("test"),
        new_request_id=iter(range(1000)).__next__,
    )
    cnx.connection_made(Mock(get_extra_info=Mock(return_value=None)))
    cnx._state.on_connect()
    read(cnx, commands.connected("test", 21, DEFAULT_MAX_MESSAGE_SIZE, FeatureFlags()))
    handlers = [Seen(is_awaited=is_awaited) for _ in range(4)]
    for number in range(2):
        cnx.register_producer(number, handlers[number])
        cnx.register_consumer(number, handlers[2 + number])
    for data in reads:
        if cnx.closed_reason is None:
            read(cnx, data)
    reason = cnx.closed_reason
    cnx.close()
    return {"closed": reason, "told": [each.news for each in handlers]}


def read(cnx: ClientCnx, data: bytes) -> None:
    while data:
        room = cnx.get_buffer(-1)
        size = min(len(room), len(data))
        room[:size] = data[:size]
        cnx.buffer_updated(size)
        data = data[size:]
        if cnx.closed_reason is not None:
            return


def both(reads: list[bytes], *, is_awaited: bool = False) -> dict[str, object]:
    """What is told either way, which has to be the same."""
    fast = run_virtual(told(reads, is_awaited=is_awaited))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_cnx, "AlikeCommands", Parsing)
        patch.setattr(client_cnx, "count_following", lambda *_: 0)
        patch.setattr(AlikeEntries, "has", lambda *_: False)
        patch.setattr(AlikeEntries, "learn", lambda *_: None)
        parsed = run_virtual(told(reads, is_awaited=is_awaited))
    assert fast == parsed
    assert "our side" not in str(fast["closed"]), fast["closed"]
    return fast


def number(tag: int, value: int, spare: int = 0) -> bytes:
    """A field of that number, perhaps encoded longer than it needs."""
    encoded = bytearray(varint(value))
    if spare and len(encoded) + spare <= 10:
        encoded[-1] |= 0x80
        encoded += b"\x80" * (spare - 1) + b"\x00"
    return varint(tag << 3) + bytes(encoded)


def nested(tag: int, inner: bytes) -> bytes:
    return varint(tag << 3 | 2) + varint(len(inner)) + inner


def framed(command: bytes, rest: bytes = b"") -> bytes:
    return SIZES.pack(4 + len(command) + len(rest), len(command)) + command + rest


LAST = 2**64 - 1
IDS = st.sampled_from(
    (0, 1, 2, 3, 100, 126, 127, 128, 129, 16_383, 16_384, 2**62, 2**63, 2**64 - 1)
)
ROWS = st.integers(0, 8)
SPARE = st.sampled_from((0, 0, 0, 0, 0, 1, 8))


@st.composite
def receipts(draw: st.DrawFn) -> list[bytes]:
    """Frames of receipts in a row, of which each may say something else at the end."""
    producer_id, spare = draw(st.sampled_from((0, 0, 0, 1, 7, 8, 16))), draw(SPARE)
    sequence_id, ledger_id, entry_id = draw(IDS), draw(IDS), draw(IDS)
    parts = draw(
        st.lists(
            st.sampled_from(
                (
                    number(4, 0),
                    number(4, sequence_id),
                    number(4, 2**64 - 1),
                    number(2, sequence_id),
                    number(1, producer_id),
                    nested(3, number(1, ledger_id) + number(2, entry_id)),
                    nested(3, number(2, entry_id)),
                    nested(15, b"x" * 1100),
                    number(15, 3),
                )
            ),
            max_size=1,
        )
    )
    outer = draw(st.sampled_from((b"", b"", b"", nested(7, number(2, sequence_id)), number(1, 7))))
    frames = []
    for more in range(draw(ROWS)):
        last = 2**64 - 1
        message_id = number(1, ledger_id) + number(2, (entry_id + more) & last, spare)
        inner = number(1, producer_id) + number(2, (sequence_id + more) & last, spare)
        inner += nested(3, message_id) + b"".join(parts)
        frames.append(framed(number(1, 7) + nested(7, inner) + outer))
    return frames


@st.composite
def entries(draw: st.DrawFn) -> bytes:
    """What follows a MESSAGE: most often a plain message."""
    metadata = b""
    if draw(st.sampled_from((1, 1, 1, 1, 0))):
        metadata += nested(
            1, draw(st.sampled_from((b"p", b"p", b"q", b"", b"n" * 126, b"n" * 128)))
        )
    if draw(st.sampled_from((1, 1, 1, 1, 0))):
        metadata += number(2, draw(IDS), draw(SPARE))
    metadata += number(3, draw(st.sampled_from((0, 1, 5, 130, 2**40, 2**64 - 1))), draw(SPARE))
    extras = (
        nested(4, nested(1, b"k") + nested(2, b"v")),
        nested(4, nested(1, b"k") + nested(2, b"w")),
        nested(5, b"r"),
        nested(6, b"key"),
        number(8, 1),
        number(9, 100),
        number(11, 1),
        number(11, 3),
        number(12, 7),
        nested(13, nested(1, b"k") + nested(2, b"v")),
        nested(16, b"\0" * 7 + b"\1"),
        nested(16, b"\0" * 7 + b"\2"),
        number(2, 9),
        number(3, 9),
        nested(1, b"z"),
        number(26, 2),
        nested(99, b"?"),
        b"\x0a",
    )
    metadata += b"".join(draw(st.lists(st.sampled_from(extras), max_size=1)))
    payload = draw(st.sampled_from((b"", b"x", b"y", b"payload", b"\0" * 300)))
    size = len(metadata) + draw(st.sampled_from((0, 0, 0, 0, 0, 1, -1, 2**31)))
    covered = (max(size, 0)).to_bytes(4, "big") + metadata + payload
    checksum = crc32c(covered) ^ draw(st.sampled_from((0, 0, 0, 0, 0, 1)))
    head = draw(st.sampled_from((b"\x0e\x01", b"\x0e\x01", b"\x0e\x01", b"", b"\x0e\x02")))
    entry = covered if not head else b"\x0e\x01" + checksum.to_bytes(4, "big") + covered
    if head == b"\x0e\x02":
        block = number(1, 77) + number(2, 3)
        entry = head + len(block).to_bytes(4, "big") + block + entry
    return entry


@st.composite
def messages(draw: st.DrawFn) -> list[bytes]:
    consumer_id, ledger_id = draw(st.sampled_from((0, 0, 0, 1, 9))), draw(IDS)
    entry_id, spare = draw(IDS), draw(SPARE)
    more_of_id = draw(st.sampled_from((b"", b"", b"", number(3, 2), number(4, 1), number(2, 3))))
    options = (
        number(3, 0),
        number(3, 1),
        number(3, 2),
        number(4, 1),
        number(4, 2**64 - 1),
        number(5, 1),
        nested(2, number(1, 3) + number(2, 4)),
        number(1, 1),
        number(15, 3),
    )
    more = draw(st.lists(st.sampled_from(options), max_size=1))
    outer = draw(st.sampled_from((b"", b"", b"", nested(9, number(3, 4)))))
    frames = []
    for each in draw(st.lists(entries(), max_size=4)):
        message_id = number(1, ledger_id) + number(2, entry_id, spare) + more_of_id
        inner = number(1, consumer_id) + nested(2, message_id) + b"".join(more)
        frames.append(framed(number(1, 9) + nested(9, inner) + outer, each))
        entry_id = (entry_id + 1) & (2**64 - 1)
    return frames


ODD = st.sampled_from(
    (
        framed(b"\x08\x12\x92\x01\x00"),  # PING
        framed(b""),
        bytes(7),
        bytes(8),
        b"\0\0\0\x05\0\0\0\x01x",
        framed(b"\x08\x07"),
        framed(b"\x08\x09", b"x"),
        framed(b"\x08\x07\x3a\x00"),
    )
)


@st.composite
def reads(draw: st.DrawFn) -> list[bytes]:
    """Frames of a kind, often again with other ids, cut into reads anywhere."""
    kinds = st.one_of(receipts(), messages(), receipts(), messages(), st.lists(ODD, max_size=1))
    frames = [each for some in draw(st.lists(kinds, max_size=5)) for each in some]
    again = draw(st.lists(st.sampled_from(frames), max_size=6)) if frames else []
    frames += again
    for at, place, byte in draw(
        st.lists(
            st.tuples(st.integers(0, 60), st.integers(8, 70), st.sampled_from((1, 0x80, 0x40))),
            max_size=2,
        )
    ):
        if at < len(frames) and place < len(frames[at]):
            frame = bytearray(frames[at])
            frame[place] ^= byte
            frames[at] = bytes(frame)
    found, read_ = [], b""
    for each in frames:
        where = draw(st.sampled_from(("alone", "alone", "alone", "with the next", "cut")))
        read_ += each
        if where == "alone":
            found.append(read_)
            read_ = b""
        elif where == "cut":
            at = draw(st.integers(0, len(read_)))
            found.append(read_[:at])
            read_ = read_[at:]
    return [each for each in (*found, read_) if each]


def receipts_in_one_read(*, end: bytes = b"", outer: bytes = b"") -> list[bytes]:
    return [
        b"".join(
            framed(
                number(1, 7)
                + nested(
                    7,
                    number(1, 0)
                    + number(2, each)
                    + nested(3, number(1, 3) + number(2, each))
                    + end,
                )
                + outer
            )
            for each in range(10, 18)
        )
    ]


def message(entry: bytes) -> bytes:
    message_id = nested(2, number(1, 3) + number(2, 10))
    return framed(number(1, 9) + nested(9, number(1, 0) + message_id), entry)


SHORT = b"\0\0\0\2" + number(3, 5)  # metadata of two bytes


# A frame that begins before the read does, if no receipt is known.
@example(data=[message(SHORT), bytes(7) + message(SHORT)], is_awaited=False)
# Fields that come twice, of which the last one counts.
@example(data=receipts_in_one_read(end=number(2, 10)), is_awaited=False)
@example(data=receipts_in_one_read(end=nested(3, number(2, 10))), is_awaited=False)
@example(data=receipts_in_one_read(outer=nested(7, number(2, 10))), is_awaited=False)
# A negative entry id in a ledger that is none.
@example(
    data=[
        2
        * framed(
            number(1, 7)
            + nested(
                7,
                number(1, 0)
                + number(2, 0)
                + nested(3, number(1, 0) + number(2, 2**63))
                + number(4, LAST),
            )
        )
    ],
    is_awaited=False,
)
# No checksum, and hardly any metadata.
@example(data=[message(SHORT)], is_awaited=False)
@given(data=reads(), is_awaited=st.booleans())
@settings(max_examples=400, deadline=None)
def test_nearly_alike_frames_say_what_parsing_them_says(
    data: list[bytes], *, is_awaited: bool
) -> None:
    both(data, is_awaited=is_awaited)
