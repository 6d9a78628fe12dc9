from __future__ import annotations

import random

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.entry_logs import entry_log_format
from pulsar_py.storage.entry_logs.entry_log_format import (
    PADDING_LEDGER_ID,
    check_log_header,
    checked_lengths,
    cut_runs,
    decode_run,
    encode_log_header,
    encode_run,
    head_bytes,
    padding,
    run_length,
)
from pulsar_py.storage.shared.location import Location

ENTRIES = [b"one", b"", b"three" * 100]


def run() -> bytes:
    return b"".join(encode_run(9, 100, ENTRIES))


def test_a_run_is_read_back() -> None:
    decoded = decode_run(run(), "p", 0)

    assert (decoded.ledger_id, decoded.first_entry_id, [*decoded.entries]) == (9, 100, ENTRIES)


def test_a_run_is_read_from_the_middle_of_what_was_read() -> None:
    data = b"before" + run() + b"behind"

    decoded = decode_run(data, "p", 0, start=6, length=len(run()))

    assert (decoded.ledger_id, [*decoded.entries]) == (9, ENTRIES)
    for start, length in ((6, len(run()) - 1), (5, len(run())), (6 + 6 + len(run()) - 5, 99)):
        with pytest.raises(CorruptDataError, match="p: offset 7: "):
            decode_run(data, "p", 7, start=start, length=length)


def test_any_flipped_or_missing_byte_is_damage_with_its_place() -> None:
    data = run()
    for at in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[at] ^= 64
        with pytest.raises(CorruptDataError, match="entries/1: offset 32: "):
            decode_run(bytes(damaged), "entries/1", 32)
        with pytest.raises(CorruptDataError):
            decode_run(data[:at], "entries/1", 32)


def test_run_length_needs_header_and_lengths() -> None:
    data = b"pre" + run()

    found = run_length(data, 3)
    assert found is not None
    assert (found[0].ledger_id, found[0].first_entry_id, found[0].count) == (9, 100, 3)
    assert found[1] == len(data) - 3
    assert run_length(data[:30], 3) is None
    assert run_length(data[: 3 + 32 + 5], 3) is None
    with pytest.raises(ValueError, match="0"):
        run_length(data, 0)


def test_runs_are_cut_by_size_with_at_least_one_entry() -> None:
    entries = [b"x" * size for size in (10, 10, 10, 500, 10, 89, 1, 1)]

    assert list(cut_runs(entries, 100)) == [(0, 3), (3, 4), (4, 7), (7, 8)]
    assert list(cut_runs(entries, 10_000)) == [(0, 8)]
    assert list(cut_runs([], 100)) == []


@pytest.mark.parametrize("run_bytes", [1, 500, 5_000, 30_000, 10**9])
def test_runs_are_the_same_however_many_entries_are_measured_at_once(
    run_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(run_bytes)
    entries = [b"x" * chance.choice((0, 1, 10, 900)) for _ in range(300)]
    whole = list(cut_runs(entries, run_bytes))

    for count in (1, 2, 7, 299, 300, 301):
        monkeypatch.setattr(entry_log_format, "MEASURED_ENTRIES_COUNT", count)
        assert list(cut_runs(entries, run_bytes)) == whole

    assert [end for _, end in whole] == [*(start for start, _ in whole[1:]), len(entries)]
    assert all(
        sum(map(len, entries[start:end])) <= run_bytes or end == start + 1 for start, end in whole
    )


def test_runs_are_cut_as_they_are_asked_for() -> None:
    measured = 0

    class Measured(bytes):
        def __len__(self) -> int:
            nonlocal measured
            measured += 1
            return 100

    next(cut_runs([Measured()] * 50_000, 1_000))

    assert 0 < measured <= 5_000


def test_the_log_header_names_log_and_version() -> None:
    data = encode_log_header(5)
    check_log_header(data, 5, "p")

    with pytest.raises(CorruptDataError, match="of another log"):
        check_log_header(data, 6, "p")
    with pytest.raises(CorruptDataError, match="not an entry log"):
        check_log_header(bytes(40), 5, "p")
    with pytest.raises(CorruptDataError, match="version 9, this pulsar_py reads version 1"):
        check_log_header(data[:8] + b"\0\0\0\x09" + data[12:], 5, "p")


def test_large_entries_are_not_copied_and_small_ones_are_joined() -> None:
    large = [bytes([number]) * 3000 for number in range(3)]
    head, *body = encode_run(7, 0, large)
    assert all(buffer is entry for buffer, entry in zip(body, large, strict=True))
    run = decode_run(b"".join([head, *body]), "p", 0)
    assert [bytes(entry) for entry in run.entries] == large

    small = [b"a" * 10, b"b" * 20]
    assert encode_run(7, 0, small)[1:] == [b"a" * 10 + b"b" * 20]


@pytest.mark.parametrize("offset", [32, 476, 477, 500, 511, 512, 513])
def test_padding_is_a_run_up_to_the_next_block(offset: int) -> None:
    data = b"".join(padding(offset, 512))

    assert (offset + len(data)) % 512 == 0
    assert len(data) < 512 + 36
    if data:
        assert decode_run(data, "p", 0).ledger_id == PADDING_LEDGER_ID
        assert run_length(data, 0) is not None


def test_the_lengths_of_a_run_are_read_without_its_entries() -> None:
    location = Location(4, 1000, len(run()), 3)
    head = run()[: head_bytes(3)]

    assert [*checked_lengths(head, "p", location, 9, 100)] == [3, 0, 500]


@pytest.mark.parametrize(
    ("head", "location", "message"),
    [
        (run()[:43], Location(4, 1000, len(run()), 3), "no run of 3 entries here"),
        (b"RUN2" + run()[4:44], Location(4, 1000, len(run()), 3), "no run of 3 entries here"),
        (
            run()[:40],
            Location(4, 1000, len(run()), 2),
            r"are \(9, 100, 3\), the index has \(9, 100, 2",
        ),
        (run()[:44], Location(4, 1000, len(run()) - 1, 3), "the run's lengths don't add up"),
    ],
)
def test_lengths_of_something_else_are_damage(
    head: bytes, location: Location, message: str
) -> None:
    with pytest.raises(CorruptDataError, match=f"p: offset 1000: .*{message}"):
        checked_lengths(head, "p", location, 9, 100)


def test_the_head_of_another_run_is_damage() -> None:
    location = Location(4, 1000, len(run()), 3)
    for ledger_id, first_entry_id in ((8, 100), (9, 101)):
        with pytest.raises(CorruptDataError, match=r"are \(9, 100, 3\), the index has"):
            checked_lengths(run()[:44], "p", location, ledger_id, first_entry_id)
