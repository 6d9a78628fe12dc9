"""Commands looked at as bytes agree with commands that are parsed."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck
from pulsar_py.wire.large_commands import (
    CutList,
    command_bytes,
    count_fields,
    cut_list,
    number_of,
    split_command,
    wire_fields,
)


def ack_of(ids_count: int, words_count: int = 0) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.ACK)
    command.ack.consumer_id = 3
    command.ack.ack_type = CommandAck.Individual
    command.ack.request_id = 300
    for entry_id in range(ids_count):
        command.ack.message_id.add(ledgerId=1, entryId=entry_id, ack_set=[-1] * words_count)
    command.ack.properties.add(key="k", value=1)
    return command


def run(work: object) -> tuple[CutList, int]:
    """What a generator returns, and how often it yielded."""
    steps = 0
    while True:
        try:
            next(work)  # type: ignore[call-overload]
        except StopIteration as end:
            return end.value, steps
        steps += 1


def test_type_and_message_are_found_in_any_order() -> None:
    part = ack_of(2).ack.SerializeToString()
    data = command_bytes(BaseCommand.ACK, part)
    assert BaseCommand.FromString(data) == ack_of(2)
    kind, start, end = split_command(data)
    assert (kind, data[start:end]) == (BaseCommand.ACK, part)
    kind, start, end = split_command(data[2:] + data[:2])
    assert (kind, (data[2:] + data[:2])[start:end]) == (BaseCommand.ACK, part)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08\x08",
        command_bytes(BaseCommand.ACK, b"") + b"\x42\x00",
        command_bytes(BaseCommand.ACK, b"")[:-1] + b"\x05",
        b"\x08\x08\x43\x44",
        b"\x08" + b"\xff" * 12,
        b"\x08\x01" * 20,
        command_bytes(1000, b""),
    ],
)
def test_what_is_no_command_of_one_message_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        split_command(data)


def test_all_fields_are_counted_and_those_of_packed_lists() -> None:
    ack = ack_of(5, words_count=4).ack
    data = ack.SerializeToString()
    own, pair, each = 3 + 1 + 5, 2, 2 + 4
    assert count_fields(CommandAck.DESCRIPTOR, data, 0, len(data), 1000) == own + pair + 5 * each
    words = b"\x01\x81\x01\x02"  # three numbers, packed
    message_id = b"\x08\x01\x10\x01\x2a" + bytes([len(words)]) + words
    packed = b"\x1a" + bytes([len(message_id)]) + message_id
    assert list(CommandAck.FromString(packed).message_id[0].ack_set) == [1, 129, 2]
    assert count_fields(CommandAck.DESCRIPTOR, packed, 0, len(packed), 1000) == 1 + 3 + 3


def test_counting_ends_above_the_limit() -> None:
    data = ack_of(1000).ack.SerializeToString()
    assert count_fields(CommandAck.DESCRIPTOR, data, 0, len(data), 10) == 11


def test_messages_nested_without_end_are_refused() -> None:
    nested = b""
    for _ in range(100):
        nested = b"\x3a" + bytes([len(nested)]) + nested if len(nested) < 120 else nested
    deep = CommandAck.DESCRIPTOR
    data = nested
    for _ in range(70):
        data = b"\x3a" + _length(data) + data
    data = b"\x1a" + _length(data) + data
    with pytest.raises(RemoteProtocolError, match="deep"):
        count_fields(deep, data, 0, len(data), 10_000)


def _length(data: bytes) -> bytes:
    size = len(data)
    return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])


@pytest.mark.parametrize(("max_elements", "max_bytes"), [(10, 10_000), (1000, 60), (1, 1)])
def test_pieces_of_a_list_with_the_rest_are_the_whole(max_elements: int, max_bytes: int) -> None:
    ack = ack_of(95).ack
    data = b"xx" + ack.SerializeToString() + b"yy"
    cut, steps = run(
        cut_list(data, 2, len(data) - 2, 3, max_elements=max_elements, max_bytes=max_bytes)
    )
    assert steps >= 95 // max_elements
    entry_ids = []
    for start, end in cut.stretches:
        part = CommandAck.FromString(cut.rest + data[start:end])
        assert 1 <= len(part.message_id) <= max_elements
        assert end - start <= max_bytes or len(part.message_id) == 1
        assert (part.consumer_id, part.request_id, len(part.properties)) == (3, 300, 1)
        entry_ids += [each.entryId for each in part.message_id]
    assert entry_ids == list(range(95))


def test_list_with_other_fields_in_between_is_cut_there() -> None:
    element, other = b"\x1a\x04\x08\x01\x10\x01", b"\x08\x03"
    data = element + other + element + element
    cut, _ = run(cut_list(data, 0, len(data), 3, max_elements=10, max_bytes=1000))
    assert cut.stretches == [(0, 6), (8, 20)]
    assert cut.rest == other


def test_group_is_refused_where_a_list_is_cut() -> None:
    with pytest.raises(RemoteProtocolError, match="group"):
        run(cut_list(b"\x1b\x1c", 0, 2, 3, max_elements=10, max_bytes=1000))


def test_numbers_are_read() -> None:
    data = ack_of(0).ack.SerializeToString()
    found = {each.number: each for each in wire_fields(data, 0, len(data))}
    assert number_of(data, found[CommandAck.REQUEST_ID_FIELD_NUMBER]) == 300
