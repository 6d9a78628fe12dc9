"""Requests and answers of short-circuit reads: their bytes, any cut of them, and what is refused."""

from __future__ import annotations

import re
from array import array

import pytest

from pulsar_py.common.errors import LocalProtocolError, RemoteProtocolError
from pulsar_py.wire.short_circuit import (
    MAX_ADDRESSES,
    MAX_ENTRIES,
    MAX_ID,
    MAX_LIMIT_BYTES,
    MAX_NEW_FILES,
    MAX_REFUSAL_BYTES,
    MAX_RUNS,
    AnswerDecoder,
    FromBroker,
    LendingBroker,
    LentRun,
    PlacesAnswer,
    PlacesRefusal,
    PlacesRequest,
    RequestDecoder,
    encode_answer,
    encode_greeting,
    encode_refusal,
    encode_request,
)

REQUEST = PlacesRequest(ledger_id=7, first_entry_id=20, last_entry_id=300, limit_bytes=0x10000)
REQUEST_HEX = "00000020010100000001000000000000000000070000000000000014000000000000012c"
ANSWER = PlacesAnswer(
    ledger_id=7,
    first_entry_id=20,
    runs=[
        LentRun(3, 4096, array("I", [1000, 1001])),
        LentRun(5, 72, array("I", [0x01020304])),
    ],
    new_files=[5],
)
ANSWER_HEX = (
    "00000054" "01" "02" "0001" "00000002" "0000000000000007" "0000000000000014"
    "0000000000000005"
    "0000000000000003" "0000000000001000" "00000002" "000003e8" "000003e9"
    "0000000000000005" "0000000000000048" "00000001" "01020304"
)  # fmt: skip


BROKER = LendingBroker(0xF0000001, [("127.0.0.1", 6650), ("::", 6651)])
BROKER_HEX = (
    "00000034" "01" "04" "0002" "00000000f0000001"
    "19fa" "0004" "7f000001000000000000000000000000"
    "19fb" "0006" "00000000000000000000000000000000"
)  # fmt: skip


def answers(data: bytes) -> list[FromBroker]:
    return AnswerDecoder().feed(data)


def test_bytes_of_a_request() -> None:
    assert encode_request(REQUEST).hex() == REQUEST_HEX
    assert RequestDecoder().feed(bytes.fromhex(REQUEST_HEX)) == [REQUEST]


def test_bytes_of_an_answer() -> None:
    assert encode_answer(ANSWER).hex() == ANSWER_HEX
    assert answers(bytes.fromhex(ANSWER_HEX)) == [ANSWER]
    assert ANSWER.entries_count == 3


def test_bytes_of_a_greeting() -> None:
    assert encode_greeting(BROKER).hex() == BROKER_HEX
    assert answers(bytes.fromhex(BROKER_HEX)) == [BROKER]
    many = [("1.2.3.4", port) for port in range(MAX_ADDRESSES + 1)]
    (greeting,) = answers(encode_greeting(LendingBroker(1, many)))
    assert greeting == LendingBroker(1, many[:MAX_ADDRESSES])
    assert answers(encode_greeting(LendingBroker(2**64 - 1, []))) == [LendingBroker(2**64 - 1, [])]


@pytest.mark.parametrize(
    ("ip", "port", "is_there"),
    [
        ("127.0.0.1", 6650, True),
        ("127.0.0.1", 6651, False),
        ("127.0.0.2", 6650, False),
        ("::1", 6651, True),
        ("fe80::1", 6651, True),
        ("::1", 6650, False),
        ("10.1.2.3", 6651, False),
    ],
)
def test_which_addresses_are_the_brokers(ip: str, port: int, *, is_there: bool) -> None:
    assert BROKER.listens_on(ip, port) is is_there


def test_an_address_for_all_is_for_its_kind_alone() -> None:
    broker = LendingBroker(1, [("0.0.0.0", 6650)])
    assert broker.listens_on("192.168.1.1", 6650)
    assert not broker.listens_on("::1", 6650)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("01040002", "01040003", "greeting with 3 addresses in 40 bytes, expected 60"),
        ("01040002", "01040001", "greeting with 1 addresses in 40 bytes, expected 20"),
        ("19fa0004", "19fa0005", "address of IP version 5, expected 4 or 6"),
        ("00000034", "00000510", "greeting of 1296 bytes, expected 12 to 1292"),
    ],
)
def test_greetings_that_contradict_themselves(old: str, new: str, message: str) -> None:
    assert BROKER_HEX.count(old) == 1
    with pytest.raises(RemoteProtocolError, match=message):
        answers(bytes.fromhex(BROKER_HEX.replace(old, new)))


def test_an_empty_answer_and_a_refusal() -> None:
    empty = PlacesAnswer(ledger_id=MAX_ID, first_entry_id=0, runs=[], new_files=[])
    refusal = encode_refusal("Nö")
    assert refusal.hex() == "00000007010300004ec3b6"
    assert answers(encode_answer(empty) + refusal) == [empty, PlacesRefusal("Nö")]


def test_a_long_refusal_is_cut_between_characters() -> None:
    data = encode_refusal("ä" * MAX_REFUSAL_BYTES)
    assert answers(data) == [PlacesRefusal("ä" * (MAX_REFUSAL_BYTES // 2))]
    assert answers(encode_refusal("a" + "ä" * MAX_REFUSAL_BYTES)) == [
        PlacesRefusal("a" + "ä" * (MAX_REFUSAL_BYTES // 2 - 1))
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 35, 36, 37, 1000])
def test_any_cut_gives_the_same(size: int) -> None:
    many = [REQUEST, REQUEST._replace(ledger_id=8), REQUEST._replace(limit_bytes=MAX_LIMIT_BYTES)]
    data = b"".join(map(encode_request, many))
    decoder = RequestDecoder()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert [each for piece in pieces for each in decoder.feed(piece)] == many

    second = ANSWER._replace(first_entry_id=9)
    sent = [BROKER, ANSWER, second, PlacesRefusal("no")]
    data = encode_greeting(BROKER) + encode_answer(ANSWER) + encode_answer(second)
    data += encode_refusal("no")
    reader = AnswerDecoder()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert [each for piece in pieces for each in reader.feed(piece)] == sent


def test_the_largest_answer_passes() -> None:
    lengths = array("I", [2**31 - 1]) * (MAX_ENTRIES // MAX_RUNS)
    runs = [LentRun(number, 2**40, lengths) for number in range(MAX_RUNS)]
    largest = PlacesAnswer(MAX_ID, MAX_ID, runs, list(range(MAX_NEW_FILES)))
    assert answers(encode_answer(largest)) == [largest]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (REQUEST._replace(ledger_id=2**63), "ledger 9223372036854775808: expected an id of 0 to"),
        (REQUEST._replace(last_entry_id=19), "entries 20 to 19: expected ids of 0 to"),
        (REQUEST._replace(last_entry_id=2**63), "entries 20 to 9223372036854775808: expected"),
        (REQUEST._replace(limit_bytes=0), "limit of 0 bytes, expected 1 to 268435456"),
        (
            REQUEST._replace(limit_bytes=MAX_LIMIT_BYTES + 1),
            "limit of 268435457 bytes, expected 1 to 268435456",
        ),
    ],
)
def test_requests_out_of_bounds(request_: PlacesRequest, message: str) -> None:
    with pytest.raises(LocalProtocolError, match=message):
        encode_request(request_)
    good = encode_request(REQUEST)
    numbers = [request_[3].to_bytes(4), *(each.to_bytes(8) for each in request_[:3])]
    with pytest.raises(RemoteProtocolError, match=message):
        RequestDecoder().feed(good[:8] + b"".join(numbers))


@pytest.mark.parametrize("request_", [REQUEST._replace(ledger_id=-1), (7, -1, 3, 100)])
def test_negative_numbers_are_not_sent(request_: tuple[int, int, int, int]) -> None:
    with pytest.raises(LocalProtocolError, match="-1"):
        encode_request(PlacesRequest(*request_))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("0000002002010000", "version 2, expected 1: use the same version of pulsar_py"),
        ("0000002001020000", r"kind 2, expected request \(kind 1\)"),
        ("0000001f01010000", "request of 31 bytes, expected 32 to 32"),
        ("ffffffff01010000", "request of 4294967295 bytes, expected 32 to 32"),
        ("0000000001010000", "request of 0 bytes, expected 32 to 32"),
        (b"GET / HTTP/1.1".hex(), "version 47, expected 1"),
    ],
)
def test_what_is_no_request_is_refused_at_its_head(head: str, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=message):
        RequestDecoder().feed(bytes.fromhex(head))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("01020001", "01010001", r"kind 1, expected answer \(kind 2\) or refusal \("),
        ("00000054", "00080000", "answer of 524288 bytes, expected 24 to 344216"),
        ("01020001", "01020011", "2 runs and 17 files in 84 bytes, expected at most 4096 and"),
        ("01020001", "01020010", "2 runs and 16 files in 84 bytes, expected at most"),
        ("000000020000000000000007", "000010010000000000000007", "4097 runs and 1 files"),
        ("000000020000000000000007", "000000030000000000000007", "ends in run 2 of 3"),
        ("000000020000000000000007", "000000010000000000000007", "24 bytes behind the last"),
        ("00000002000003e8", "00000000000003e8", "run 0: 0 entries"),
        ("0000000101020304", "0000000201020304", "run 1: 2 entries in 4 bytes"),
        ("0000000101020304", "ffffffff01020304", "run 1: 4294967295 entries in 4 bytes"),
        ("01020304", "80000000", "run 1: longest entry of 2147483648 bytes at offset 72"),
        ("0000000000000048", "7ffffffffffffff0", "at offset 9223372036854775792, expected"),
    ],
)
def test_answers_that_contradict_themselves(old: str, new: str, message: str) -> None:
    assert len(re.findall(old, ANSWER_HEX)) == 1
    with pytest.raises(RemoteProtocolError, match=message):
        answers(bytes.fromhex(ANSWER_HEX.replace(old, new)))
