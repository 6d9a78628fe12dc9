from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.digest import master_key
from pulsar_py.bookkeeper.protocol.frames import BookieCode, BookieOperation, RequestFlags
from pulsar_py.common.errors import RemoteProtocolError
from tests.unit.bookkeeper.recorded import ENTRIES, EXCHANGES

KEY = master_key(b"")


def framed(recorded: str) -> bytes:
    """With the size that stands before a frame, which recordings leave out."""
    return frames.LENGTH.pack(len(recorded) // 2) + bytes.fromhex(recorded)


@pytest.mark.parametrize("each", ENTRIES, ids=str)
def test_adds_are_those_recorded(each: dict[str, Any]) -> None:
    stored = bytes.fromhex(each["stored"])
    head = frames.add_head(master_key(each["password"].encode()), len(stored), RequestFlags.NONE)
    assert head + stored == framed(each["add"])
    assert len(head) == frames.ADD_OVERHEAD_BYTES


@pytest.mark.parametrize("name", ["recovery add after the fence", "recovery add (Java client)"])
def test_adds_of_a_recovery_are_those_recorded(name: str) -> None:
    recorded = EXCHANGES[name]["request"]
    stored = bytes.fromhex(recorded)[24:]
    assert frames.add_head(KEY, len(stored), frames.RECOVERY_ADD) + stored == framed(recorded)


@pytest.mark.parametrize(
    ("name", "ledger_id", "entry_id", "flags"),
    [
        ("read entry 0", 24, 0, RequestFlags.NONE),
        ("read the last entry", 24, -1, RequestFlags.NONE),
        ("fenced read of the last entry", 24, -1, frames.FENCE_AND_READ),
        ("first fencing read of a recovery (Java client)", 4, -1, frames.FENCE_AND_READ),
        ("recovery read (Java client)", 4, 2, frames.RECOVERY_READ),
    ],
)
def test_reads_are_those_recorded(
    name: str, ledger_id: int, entry_id: int, flags: RequestFlags
) -> None:
    key = KEY if RequestFlags.FENCE in flags else b""
    asked = frames.read_request(ledger_id, entry_id, flags, key)
    assert asked == framed(EXCHANGES[name]["request"])


@pytest.mark.parametrize(
    "each",
    [each for each in EXCHANGES.values() if each["answer"].startswith("02")],
    ids=lambda each: each["name"],
)
def test_answers_are_read_as_recorded(each: dict[str, Any]) -> None:
    answer = frames.decoded_answer(bytes.fromhex(each["answer"]))
    assert frames.code_name(answer.code) == each["code"]
    assert (answer.ledger_id, answer.entry_id) == (each["ledger"], each["entry"])
    assert answer.operation == bytes.fromhex(each["request"])[1]
    is_read = answer.operation == BookieOperation.READ and answer.code == BookieCode.EOK
    assert bool(answer.data) == is_read


def test_an_unknown_code_is_an_answer() -> None:
    recorded = bytearray.fromhex(EXCHANGES["add entry 0"]["answer"])
    recorded[7] = 200
    answer = frames.decoded_answer(bytes(recorded))
    assert frames.code_name(answer.code) == "code 200"


@pytest.mark.parametrize("wrong", [b"", bytes(23), b"\x03" + bytes(23), b"\x02\x04" + bytes(22)])
def test_what_is_no_answer_is_refused(wrong: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        frames.decoded_answer(wrong)


def test_entries_that_follow_one_another_are_asked_for_with_one_frame() -> None:
    frame = frames.batch_read_request(5, 7, max_count=3, max_bytes=4096)
    assert frame.hex() == (
        "0000002802070000"
        "000000000000000500000000000000070000000000000000"
        "00000003" "0000000000001000"
    )  # fmt: skip


def test_a_batch_is_taken_apart() -> None:
    data = bytes(8) + b"".join(len(each).to_bytes(4, "big") + each for each in (b"ab", b"", b"c"))
    assert frames.batch_entries(data) == [b"ab", b"", b"c"]
    assert frames.batch_entries(bytes(8)) == []
    assert frames.batch_entries(b"") == []


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_a_batch_that_ends_within_an_entry_is_refused(cut: int) -> None:
    whole = bytes(8) + (6).to_bytes(4, "big") + b"abcdef"
    with pytest.raises(RemoteProtocolError, match="ends within one"):
        frames.batch_entries(whole[:-cut] if cut < 5 else whole[: 8 + 2])


@pytest.mark.parametrize(
    "other",
    [
        (2, 1, 0, 0, 7, 9),  # an entry further on
        (2, 1, 0, 0, 7, 7),  # one before
        (2, 1, 0, 0, 8, 8),  # of another ledger
        (2, 1, 0, 101, 7, 8),  # not stored
        (2, 2, 0, 0, 7, 8),  # not an add
        (3, 1, 0, 0, 7, 8),  # another protocol
    ],
)
def test_answers_that_tell_of_entries_in_a_row_are_counted(other: tuple[int, ...]) -> None:
    size = frames.ANSWER_HEAD_BYTES
    alike = b"".join(frames.SIZED_ANSWER.pack(size, 2, 1, 0, 0, 7, each) for each in (5, 6, 7))
    following = alike + frames.SIZED_ANSWER.pack(size, *other) + alike
    with memoryview(following) as memory:
        assert frames.stored_in_a_row(memory, 7, 5, 10) == 3
        assert frames.stored_in_a_row(memory, 7, 5, 2) == 2
        assert frames.stored_in_a_row(memory[:-1], 7, 6, 10) == 0
        assert frames.stored_in_a_row(memory[: len(alike) - 1], 7, 5, 10) == 2
        assert frames.stored_in_a_row(memory[:0], 7, 5, 10) == 0


@pytest.mark.parametrize("first", [4, 5])
def test_answers_to_a_run_are_counted_as_any_in_a_row(first: int) -> None:
    size = frames.ANSWER_HEAD_BYTES
    said = [frames.SIZED_ANSWER.pack(size, 2, 1, 0, 0, 7, each) for each in range(5, 9)]
    run = frames.StoredAnswers(7, first, 9)
    with memoryview(b"".join(said) + said[0]) as memory:
        for _ in range(2):  # of two bookies
            assert run.count_in(memory, 5, 3) == 3
            assert run.count_in(memory, 5, 5) == 4
            assert run.count_in(memory[len(said[0]) :], 6, 2) == 2
            assert run.count_in(memory[: len(said[0]) - 1], 5, 3) == 0
            assert run.count_in(memory[: 2 * len(said[0]) + 1], 5, 3) == 2
            assert run.count_in(memory, 6, 3) == 0
            assert frames.StoredAnswers(8, first, 9).count_in(memory, 5, 3) == 0


def test_heads_of_a_run_say_how_long_each_frame_is() -> None:
    key, flags = bytes(20), frames.RequestFlags.NONE
    for sizes in ([10, 10], [10, 0, 11], [7]):
        assert frames.add_heads(key, 36, sizes, flags) == [
            frames.add_head(key, 36 + size, flags) for size in sizes
        ]
