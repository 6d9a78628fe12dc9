"""Ranges of entries, read from files that a broker lends over a real socket."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsar_py.client.messages.message import EntryKey, Message
from pulsar_py.client.receiving.received_batch import ReceivedBatch
from pulsar_py.client.short_circuit.stored_range import (
    ASKED_BYTES,
    BLOCK_BYTES,
    FIRST_BYTES,
    StoredRange,
)
from pulsar_py.common.disks.reused_memory import ReusedMemory
from pulsar_py.common.position import Position
from pulsar_py.wire.short_circuit import (
    LentRun,
    PlacesAnswer,
    PlacesRequest,
    encode_answer,
    encode_refusal,
)
from tests.unit.client.entries import batch, single
from tests.unit.client.lender import Answer, Lender, descriptors_count

TOPIC = "persistent://public/default/stored"
LEDGER = 7
MANY = [b"%d" % index for index in range(40)]


@contextmanager
def lending(
    directory: Path, entries: Mapping[EntryKey, bytes] | Sequence[bytes], **options: int
) -> Iterator[Lender]:
    """A lender; all descriptors are closed afterwards."""
    before = descriptors_count()
    if not isinstance(entries, Mapping):
        entries = {(LEDGER, index): data for index, data in enumerate(entries)}
    with Lender(directory, entries, **options) as lender:
        yield lender
    assert descriptors_count() <= before


def range_of(lender: Lender, first: int, end: int) -> StoredRange:
    return StoredRange(
        lender.path, lender.service_url, TOPIC, Position(LEDGER, first), Position(LEDGER, end)
    )


def blocks(stored: StoredRange) -> list[list[Sequence[Message]]]:
    """All blocks; the range is closed afterwards."""
    found = []
    while (runs := stored.read_block()) is not None:
        found.append(runs)
    assert stored.read_block() is None
    stored.close()
    return found


def payloads(stored: StoredRange) -> list[bytes]:
    return [each.data() for runs in blocks(stored) for run in runs for each in run]


def numbered(count: int) -> list[bytes]:
    return [single(b"%d" % index) for index in range(count)]


def test_exactly_the_entries_of_the_range_are_read(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(20)) as lender:
        stored = range_of(lender, 4, 17)
        assert payloads(stored) == [b"%d" % index for index in range(4, 17)]
        assert (stored.position, stored.refusal) == (Position(LEDGER, 17), None)
        (request,) = lender.requests
        assert request == (LEDGER, 4, 16, FIRST_BYTES)


def test_ids_are_those_of_the_entries(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(8)) as lender:
        messages = [m for runs in blocks(range_of(lender, 2, 7)) for run in runs for m in run]
    assert [each.entry.key for each in messages] == [(LEDGER, index) for index in range(2, 7)]
    assert {each.entry.topic for each in messages} == {TOPIC}


def test_entries_that_lie_together_are_read_together(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(9), per_run=3) as lender:
        found = blocks(range_of(lender, 1, 9))
    assert [[len(run) for run in runs] for runs in found] == [[2], [3], [3]]


def test_a_block_has_a_limit_and_a_larger_entry_is_read_alone(tmp_path: Path) -> None:
    half, large = bytes(BLOCK_BYTES // 2 - 100), bytes(BLOCK_BYTES * 2)
    entries = [single(each) for each in (half, half, half, large, b"x")]
    with lending(tmp_path, entries, per_run=5) as lender:
        found = blocks(range_of(lender, 0, 5))
    sizes = [[len(each.data()) for run in runs for each in run] for runs in found]
    assert sizes == [[len(half)] * 2, [len(half)], [len(large)], [1]]


def test_large_batches_are_runs_of_their_own(tmp_path: Path) -> None:
    entries = [single(b"a"), single(b"b"), batch(MANY), batch(MANY), batch([b"c", b"d"])]
    with lending(tmp_path, entries, per_run=5) as lender:
        (runs,) = blocks(range_of(lender, 0, 5))
    assert [type(run) for run in runs] == [list, ReceivedBatch, ReceivedBatch, list]
    assert [each.data() for run in runs for each in run] == [b"a", b"b", *MANY, *MANY, b"c", b"d"]


def test_memory_of_a_batch_that_is_held_is_not_used_again(tmp_path: Path) -> None:
    bodies = [[b"%d:%d" % (entry, index) for index in range(40)] for entry in range(12)]
    with lending(tmp_path, [batch(each) for each in bodies], per_run=1) as lender:
        found = blocks(range_of(lender, 0, 12))
    assert [[each.data() for each in run] for runs in found for run in runs] == bodies


def test_memory_is_used_again_when_nothing_holds_it(tmp_path: Path) -> None:
    with lending(tmp_path, [batch(MANY)] * 5, per_run=1) as lender:
        stored = range_of(lender, 0, 5)
        seen = set()
        for _ in range(5):
            runs = stored.read_block()
            assert runs is not None
            (run,) = runs
            assert isinstance(run, ReceivedBatch)
            assert isinstance(run.body, memoryview)
            seen.add(id(run.body.obj))
            del run, runs
        stored.close()
    assert len(seen) == 1


def test_answers_may_be_short(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(7)) as lender:

        def two_at_a_time(request: PlacesRequest) -> Answer:
            last = min(request.last_entry_id, request.first_entry_id + 1)
            return lender.usual_answer(request._replace(last_entry_id=last))

        lender.answer = two_at_a_time
        stored = range_of(lender, 0, 7)
        assert payloads(stored) == [b"%d" % index for index in range(7)]
        assert [each.first_entry_id for each in lender.requests] == [0, 2, 4, 6]
        assert [each.limit_bytes for each in lender.requests] == [FIRST_BYTES, *[ASKED_BYTES] * 3]
    assert stored.refusal is None


def test_the_broker_looks_for_more_while_entries_are_read(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(6), per_run=2) as lender:

        def two_at_a_time(request: PlacesRequest) -> Answer:
            last = min(request.last_entry_id, request.first_entry_id + 1)
            return lender.usual_answer(request._replace(last_entry_id=last))

        lender.answer = two_at_a_time
        stored = range_of(lender, 0, 6)
        stored.read_block()
        stored.read_block()  # takes the second answer, which was asked for with the first
        stored.close()
    assert [each.first_entry_id for each in lender.requests] == [0, 2, 4]


def test_what_is_in_no_file_is_left_to_the_broker(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(5)) as lender:
        stored = range_of(lender, 0, 9)
        assert payloads(stored) == [b"%d" % index for index in range(5)]
        assert (stored.position, stored.refusal) == (Position(LEDGER, 5), None)
        stored = range_of(lender, 6, 9)
        assert payloads(stored) == []
        assert (stored.position, stored.refusal) == (Position(LEDGER, 6), None)


@pytest.mark.parametrize(
    "entry", [single(b"", marker_type=1), single(b"abc")[:-1] + b"d", b"?"], ids=lambda e: e[-3:]
)
def test_an_entry_that_can_not_be_used_and_all_behind_it_are_left(
    tmp_path: Path, entry: bytes
) -> None:
    entries = [*numbered(4), entry, single(b"behind")]
    with lending(tmp_path, entries) as lender:
        stored = range_of(lender, 0, 6)
        assert payloads(stored) == [b"0", b"1", b"2", b"3"]
    assert (stored.position, stored.refusal) == (Position(LEDGER, 4), None)


def test_deleted_files_are_read_to_their_end(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(6), per_run=1) as lender:
        stored = range_of(lender, 0, 6)
        stored.read_block()
        for path in lender.files:
            path.unlink()
        assert payloads(stored) == [b"%d" % index for index in range(1, 6)]


def test_a_file_that_was_cut_ends_the_range(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(6), per_run=1) as lender:
        stored = range_of(lender, 0, 6)
        stored.read_block()
        os.truncate(lender.files[0], lender.places[LEDGER, 3][1] + 5)
        assert payloads(stored) == [b"1", b"2"]
    assert stored.position == Position(LEDGER, 3)
    assert stored.refusal is not None
    assert "the file ends within" in stored.refusal


def test_a_file_that_can_not_be_read_ends_the_range(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(2)) as lender:

        def unreadable(request: PlacesRequest) -> Answer:
            runs = [LentRun(0, 0, array("I", [10]))]
            answer = PlacesAnswer(request.ledger_id, request.first_entry_id, runs, [0])
            return encode_answer(answer), [os.open(lender.files[0], os.O_WRONLY)]

        lender.answer = unreadable
        stored = range_of(lender, 0, 2)
        assert payloads(stored) == []
    assert stored.position == Position(LEDGER, 0)
    assert stored.refusal is not None
    assert "reading entry 7:0: [Errno 9]" in stored.refusal


def test_a_length_beyond_the_file_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    take = ReusedMemory.take

    def noted(memory: ReusedMemory, size: int) -> memoryview:
        taken.append(size)
        return take(memory, size)

    monkeypatch.setattr(ReusedMemory, "take", noted)
    with lending(tmp_path, numbered(2)) as lender:

        def huge(request: PlacesRequest) -> Answer:
            _, descriptors = lender.usual_answer(request)
            runs = [LentRun(0, 0, array("I", [2**31 - 1]))]
            answer = PlacesAnswer(request.ledger_id, request.first_entry_id, runs, [0])
            return encode_answer(answer), descriptors

        lender.answer = huge
        stored = range_of(lender, 0, 2)
        assert payloads(stored) == []
    assert taken == []
    assert stored.refusal is not None
    assert "the file ends within 2147483647 bytes at 0" in stored.refusal


def test_a_refusal_says_why(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(2)) as lender:
        lender.greeting = encode_refusal("not for user 1000")
        stored = range_of(lender, 0, 2)
        assert payloads(stored) == []
        assert stored.refusal == f"{lender.path}: not for user 1000"


def test_a_broker_that_goes_away_leaves_what_was_named(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(6), per_run=1) as lender:

        def once(request: PlacesRequest) -> Answer:
            lender.answer = lambda _: (b"", [])
            return lender.usual_answer(request._replace(last_entry_id=2))

        lender.answer = once
        stored = range_of(lender, 0, 6)
        assert payloads(stored) == [b"0", b"1", b"2"]
    assert stored.position == Position(LEDGER, 3)
    assert stored.refusal is not None
    assert "ended the connection" in stored.refusal


def test_a_range_that_is_closed_early_leaves_nothing_open(tmp_path: Path) -> None:
    with lending(tmp_path, numbered(6), per_run=1) as lender:
        stored = range_of(lender, 0, 6)
        stored.read_block()
        stored.close()
        assert stored.read_block() is None
        stored.close()
