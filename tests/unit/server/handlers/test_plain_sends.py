from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSend
from pulsar_py.server.handlers.plain_sends import alike_sends, alike_sequence_ids
from pulsar_py.wire.command_codec import sequence_id_place
from pulsar_py.wire.commands import serialize
from pulsar_py.wire.framing import (
    AlikeFrames,
    Frame,
    FrameDecoder,
    encode_message_header,
    single_frames,
)


def test_alike_sends_are_those_before_the_first_other_one() -> None:
    ids = [*range(130, 140), 131]
    frames = [
        Frame(serialize(CommandSend(producer_id=1, sequence_id=sequence_id)), b"%d" % sequence_id)
        for sequence_id in ids
    ]
    alike = [(sequence_id, None, 1, False, False, b"%d" % sequence_id) for sequence_id in ids]
    plain = CommandSend(producer_id=1, sequence_id=131)
    for other in (
        Frame(serialize(plain), None),
        Frame(serialize(CommandSend(producer_id=2, sequence_id=131)), b"x"),
        Frame(serialize(CommandSend(producer_id=1, sequence_id=256)), b"x"),
        Frame(serialize(CommandSend(producer_id=1, sequence_id=13)), b"x"),
        Frame(serialize(CommandSend(producer_id=1, sequence_id=131, marker=True)), b"x"),
    ):
        place = sequence_id_place(frames[0].command)
        assert alike_sends([*frames, other, frames[0]], 0, place, 130) == alike
    assert alike_sends(frames, 9, place, 139) == alike[9:]


def alike(first: bytes, *others: bytes) -> AlikeFrames:
    """SENDs with these commands, as a decoder takes them together."""
    commands = [first, *others] * 20
    data = b"".join(encode_message_header(each, 1) + b"x" for each in commands)
    _, together, rest = FrameDecoder(1000).decode_lent(memoryview(data))
    assert isinstance(together, AlikeFrames)
    assert rest == []
    assert [each.command for each in together.frames()] == commands
    return together


@pytest.mark.parametrize(
    "ids",
    [
        [0],
        [5],
        [0, 127],
        [130, 131, 255],
        [128, 300, 16_383],
        [2**21, 2**21 + 127],
        [2**21 + 127, 2**21 + 128],
        [2**64 - 1, 2**64 - 128],
        [2**63 + 9, 2**63 + 500],
    ],
)
def test_sequence_ids_of_alike_sends_are_those_that_each_has(ids: list[int]) -> None:
    sends = alike(*(serialize(CommandSend(producer_id=300, sequence_id=each)) for each in ids))
    low_at = sequence_id_place(sends.command)
    assert alike_sequence_ids(sends, low_at, ids[0]) == ids * 20


@pytest.mark.parametrize(
    ("first", "other"),
    [
        # Another producer, alone and beside another sequence id.
        ("080632 06 0801 10848001", "080632 06 0802 10848001"),
        ("080632 06 0801 10848001", "080632 06 0802 10858001"),
        # More bits of the sequence id than are read from the bytes.
        ("080632 06 0801 10848001", "080632 06 0801 10858102"),
        ("080632 06 0801 10848001", "080632 06 0801 10848002"),
        # The sequence id ends early, and a field of a byte follows; or it does not end.
        ("080632 06 0801 10858001", "080632 06 0801 10058001"),
        ("080632 06 0801 10858401", "080632 06 0801 10058401"),
        ("080632 04 0801 1005", "080632 04 0801 1085"),
        ("080632 05 0801 108501", "080632 05 0801 108581"),
        # Another kind of command, or of field.
        ("080632 04 0801 1005", "080732 04 0801 1005"),
        ("080632 04 0801 1005", "080632 04 0801 1805"),
    ],
)
def test_sends_that_differ_otherwise_are_read_one_by_one(first: str, other: str) -> None:
    sends = alike(bytes.fromhex(first), bytes.fromhex(other))
    command = BaseCommand.FromString(sends.command)
    low_at = sequence_id_place(sends.command)
    assert low_at
    assert alike_sequence_ids(sends, low_at, command.send.sequence_id) is None


NUMBERS = st.one_of(
    st.integers(0, 300),
    st.integers(2**14 - 130, 2**14 + 130),
    st.integers(2**63 - 2, 2**63 + 2),
    st.integers(0, 2**64 - 1),
)


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 2, 200]), NUMBERS, st.integers(0, 40), st.integers(1, 40)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([None, 3]),
)
def test_alike_sends_read_together_are_those_read_one_by_one(
    rows: list[tuple[int, int, int, int]], messages_count: int | None
) -> None:
    sends = [
        CommandSend(
            producer_id=producer_id,
            sequence_id=(first + step * place) % 2**64,
            num_messages=messages_count,
        )
        for producer_id, first, step, count in rows
        for place in range(count)
    ]
    data = b"".join(encode_message_header(serialize(each), 1) + b"x" for each in sends)
    parts = FrameDecoder(1000).decode_lent(memoryview(data))
    for frames, together in zip(map(single_frames, ([part] for part in parts)), parts, strict=True):
        wanted, sends = sends[: len(frames)], sends[len(frames) :]
        assert [each.command for each in frames] == [serialize(each) for each in wanted]
        if isinstance(together, AlikeFrames):
            low_at = sequence_id_place(together.command)
            assert bool(low_at) == (messages_count is None)
            ids = low_at and alike_sequence_ids(together, low_at, wanted[0].sequence_id)
            assert not ids or ids == [each.sequence_id for each in wanted]
    assert not sends
