"""What is read from an ACK's bytes is what parsing it says, or nothing is read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck, KeyLongValue, MessageIdData
from pulsar_py.wire.commands import read_command, serialize
from pulsar_py.wire.plain_acks import ACK_START, PlainAck, read_plain_ack


def ack(ids: Sequence[tuple[int, int]], **fields: object) -> CommandAck:
    arguments = {
        "consumer_id": 1,
        "ack_type": CommandAck.Individual,
        "message_id": [MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in ids],
    }
    return CommandAck(**arguments | fields)  # type: ignore[arg-type]


def of_ledger(entry_ids: Sequence[int], ledger_id: int = 700) -> list[tuple[int, int]]:
    return [(ledger_id, entry_id) for entry_id in entry_ids]


def check(body: bytes) -> PlainAck | None:
    """What is read, once it is sure that parsing says nothing else."""
    found = read_plain_ack(body)
    if found is not None:
        command = read_command(body).ack
        request = {} if found.request_id is None else {"request_id": found.request_id}
        same = ack(
            of_ledger(found.entry_ids, found.ledger_id), consumer_id=found.consumer_id, **request
        )
        assert command == same
    return found


@pytest.mark.parametrize("first", [0, 100, 128, 250, 16_200, 20_000, 2**21, 2**27])
@pytest.mark.parametrize("request_id", [None, 0, 300, 2**28])
def test_neighbours_become_a_range(first: int, request_id: int | None) -> None:
    ids = range(first, first + 28)
    fields = {} if request_id is None else {"request_id": request_id}
    for consumer_id in (0, 1, 200, 2**40):
        body = serialize(ack(of_ledger(ids), consumer_id=consumer_id, **fields))
        found = check(body)
        assert found == PlainAck(consumer_id, 700, ids, request_id)
        assert type(found.entry_ids) is range


@pytest.mark.parametrize(
    "ids",
    [
        range(0, 60, 3),
        [5] * 20,
        list(range(40, 20, -1)),
        range(128, 10_000, 777),
        [*range(200, 220), 219],
        [*range(200, 220), 221],
        [199, *range(199, 219)],
        range(20_000, 2_000_000, 77_777),
        [2**21 + 127, 2**21 + 128, 2**27, 2**28 - 1] * 3,
        # As neighbours are, but for one.
        [*range(16_500, 16_600), 17_000],
        [*range(16_500, 16_550), *range(16_551, 16_600)],
    ],
)
def test_other_ids_of_one_ledger_become_a_list(ids: Sequence[int]) -> None:
    found = check(serialize(ack(of_ledger(ids), request_id=9)))
    assert found == PlainAck(1, 700, list(ids), 9)
    assert type(found.entry_ids) is list


PART = MessageIdData(ledgerId=700, entryId=212, ack_set=[1])
NEIGHBOURS = of_ledger(range(200, 220))


@pytest.mark.parametrize(
    "command",
    [
        ack(NEIGHBOURS, ack_type=CommandAck.Cumulative),
        ack(NEIGHBOURS, validation_error=CommandAck.ChecksumMismatch),
        ack(NEIGHBOURS, txnid_least_bits=1),
        ack(NEIGHBOURS, txnid_most_bits=1, request_id=5),
        ack(NEIGHBOURS, properties=[KeyLongValue(key="k", value=1)]),
        ack(NEIGHBOURS, consumer_id=2**63),
        ack(NEIGHBOURS, request_id=2**63),
        ack(NEIGHBOURS, request_id=2**56),  # as long as an id
        ack([*NEIGHBOURS, (701, 0)]),
        ack([*NEIGHBOURS, (701, 220)]),
        ack([*NEIGHBOURS[:9], (701, 209), *NEIGHBOURS[10:]]),
        ack([*NEIGHBOURS, (700, 3)]),
        ack([*NEIGHBOURS, (700, 2**64 - 1)]),
        ack(of_ledger(range(120, 140))),
        ack(of_ledger(range(2**28, 2**28 + 20))),
        ack(of_ledger(range(2**64 - 20, 2**64))),
        ack(of_ledger(range(20), ledger_id=2**64 - 1)),
        ack([], message_id=[PART] * 20),
        ack([], message_id=[*ack(NEIGHBOURS).message_id, PART]),
        ack([], message_id=[PART, *ack(NEIGHBOURS).message_id]),
        ack([], message_id=[MessageIdData(ledgerId=700, entryId=1, partition=2)] * 20),
        ack(of_ledger(range(3))),
    ],
    ids=str,
)
def test_anything_else_is_left_to_be_parsed(command: CommandAck) -> None:
    body = serialize(command)
    assert body.startswith(ACK_START)
    assert read_plain_ack(body) is None


def test_fields_behind_the_message_are_left_to_be_parsed() -> None:
    body = serialize(ack(NEIGHBOURS))
    assert read_plain_ack(body) is not None
    assert read_plain_ack(body + b"\x08\x06") is None
    assert read_plain_ack(body[:-1]) is None


def by_hand(
    ids: bytes, *, consumer: str = "0801", kind: str = "1000", tail: str = "", behind: str = ""
) -> bytes:
    """An ACK of these bytes, in hexadecimal digits."""
    inner = bytes.fromhex(consumer + kind) + ids + bytes.fromhex(tail)
    return ACK_START + varint(len(inner)) + inner + bytes.fromhex(behind)


NO_END = "80" * 9


@pytest.mark.parametrize(
    "body",
    [
        by_hand(bytes.fromhex("1a04 0805 1009") * 20, consumer="08" + NO_END),
        by_hand(bytes.fromhex("1a04 0805 1009") * 20, consumer="1001"),
        by_hand(bytes.fromhex("1a04 0805 1009") * 20, consumer="0801 0802"),
        by_hand(bytes.fromhex("1a04 0805 1009") * 20, kind="1000 1001"),
        by_hand(bytes.fromhex("1a0c 08" + NO_END + "10 05") * 20),
        by_hand(bytes.fromhex("1a03 0805 10") * 20),
        by_hand(bytes.fromhex("1a0e 08" + "ff" * 8 + "7f 10 808001") * 20, tail="40" + NO_END),
        by_hand(bytes.fromhex("1a04 0805 1009") * 20, tail="40054006"),
        by_hand(bytes.fromhex("1a04 0805 1009") * 20, tail="4005", behind="4006"),
        by_hand(bytes.fromhex("1a04 0805 1009") * 20, behind="4006"),
        by_hand(bytes.fromhex("1a04 0805 1809") * 20),
        by_hand(bytes.fromhex("1a04 1005 0809") * 20),
        by_hand(bytes.fromhex("1a04 1005 1009") * 20),
        by_hand(bytes.fromhex("1a06 0805 1009 1807") * 20),
        by_hand(bytes.fromhex("1a06 0805 1009 2a00") * 20),
        by_hand(bytes.fromhex("1a05 0805 1009") * 20),
        by_hand(bytes.fromhex("1a03 0805 1009") * 20),
        by_hand(bytes.fromhex("1a02 0805") * 20),
        by_hand(bytes.fromhex("1a05 0805 108901 1a05 0805 100901") * 10),
    ],
    ids=bytes.hex,
)
def test_bytes_that_only_look_alike_are_left_to_be_parsed(body: bytes) -> None:
    assert read_plain_ack(body) is None


def test_numbers_may_be_longer_than_they_need() -> None:
    body = by_hand(bytes.fromhex("1a06 088500 108900") * 20, consumer="088100", tail="408000")
    assert check(body) == PlainAck(1, 5, [9] * 20, 0)


@pytest.mark.parametrize(
    "ids", [range(200, 210), [300, 200, 5000] * 4, [3, 1] * 6], ids=["neighbours", "others", "few"]
)
def test_any_other_byte_at_any_place_is_read_right_or_left_to_be_parsed(ids: Sequence[int]) -> None:
    body = serialize(ack(of_ledger(ids), request_id=9))
    assert check(body) is not None
    for at in range(len(ACK_START), len(body)):
        for byte in range(256):
            check_if_it_can_be_parsed(body[:at] + bytes((byte,)) + body[at + 1 :])


def check_if_it_can_be_parsed(body: bytes) -> None:
    """As `check`; nothing is read of what can't be parsed."""
    if not body.startswith(ACK_START):
        return
    try:
        read_command(body)
    except RemoteProtocolError:
        assert read_plain_ack(body) is None
    else:
        check(body)


@given(
    one=st.lists(st.sampled_from(bytes.fromhex("08 10 18 1a 28 40 00 01 05 7f 80 ff")), max_size=7),
    count=st.integers(8, 20),
    tail=st.sampled_from(["", "4005", "40", "10"]),
)
@settings(max_examples=400)
def test_any_ids_that_are_alike_are_read_right_or_left_to_be_parsed(
    one: list[int], count: int, tail: str
) -> None:
    check_if_it_can_be_parsed(by_hand(bytes((0x1A, len(one), *one)) * count, tail=tail))


one_ledger = st.builds(
    lambda first, count, step: of_ledger(range(first, first + count * step, step)),
    st.one_of(st.integers(0, 300), st.integers(16_000, 17_000), st.integers(2**21, 2**28)),
    st.integers(1, 300),
    st.sampled_from([1, 1, 2, 130]),
)
strange = st.integers(0, 2**64 - 1) | st.integers(0, 20_000)
any_ids = st.lists(st.tuples(st.just(700) | strange, strange), max_size=40)
edits = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=3)


@given(
    ids=one_ledger | any_ids,
    request_id=st.none() | strange,
    edits=edits,
    cut=st.none() | st.integers(0, 4000),
)
@example(ids=of_ledger(range(20)), request_id=None, edits=[(12, 255)], cut=None)
def test_whatever_bytes_come_nothing_else_is_read(
    ids: list[tuple[int, int]],
    request_id: int | None,
    edits: list[tuple[int, int]],
    cut: int | None,
) -> None:
    """Commands of which some bytes were changed, and that perhaps end early."""
    fields = {} if request_id is None else {"request_id": request_id}
    body = bytearray(serialize(ack(ids, **fields)))
    for at, byte in edits:
        body[at % len(body)] = byte
    check_if_it_can_be_parsed(bytes(body[:cut]))


def test_a_command_that_is_no_ack_is_never_asked_about() -> None:
    assert serialize(ack(NEIGHBOURS))[:3] == ACK_START
    assert BaseCommand.FromString(ACK_START + b"\x00").type == BaseCommand.ACK
