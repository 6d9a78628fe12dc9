"""A crash or damage: flipped bits, torn transactions and leftovers in the log of real files."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.metadata.inspection import read_metadata
from pulsar_py.metadata.sqlite_file import SqliteFile
from pulsar_py.metadata.sqlite_wal import FRAME_HEADER_BYTES, HEADER_BYTES, find_damage

FRAME_BYTES = FRAME_HEADER_BYTES + 4096
NAME = "metadata.sqlite"


def commit(file: SqliteFile, name: str, size: int = 100) -> None:
    file.begin()
    file.put(name, bytes(size), None, None, 1)
    file.commit()


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Ten transactions, none of them in the file yet."""
    file = SqliteFile(tmp_path / NAME)
    for number in range(10):
        commit(file, f"/a/{number}", 6000)
    copy(tmp_path, tmp_path / "killed")
    file.close()
    return tmp_path / "killed"


def copy(source: Path, target: Path) -> None:
    target.mkdir()
    for name in (NAME, f"{NAME}-wal"):
        shutil.copy(source / name, target / name)


def log_of(directory: Path) -> bytes:
    return (directory / f"{NAME}-wal").read_bytes()


def flipped(data: bytes, offset: int, bit: int = 0) -> bytes:
    changed = bytearray(data)
    changed[offset] ^= 1 << bit
    return bytes(changed)


def frame_at(number: int) -> int:
    return HEADER_BYTES + number * FRAME_BYTES


def ends(log: bytes) -> list[int]:
    """Frames that end a transaction."""
    count = (len(log) - HEADER_BYTES) // FRAME_BYTES
    return [at for at in range(count) if any(log[frame_at(at) + 4 : frame_at(at) + 8])]


def pages(log: bytes) -> list[bytes]:
    """The page number on each frame."""
    return [log[frame_at(at) : frame_at(at) + 4] for at in range(ends(log)[-1] + 1)]


def lonely_frame(log: bytes, after: int) -> int:
    """The first frame from `after` on whose page is not written again."""
    written = pages(log)
    return next(at for at in range(after, len(written)) if written[at] not in written[at + 1 :])


def places(log: bytes) -> Iterator[int]:
    """Bytes of all kinds, up to the end of the last transaction but one."""
    chance = random.Random(3)
    end = frame_at(ends(log)[-2] + 1)
    yield from range(HEADER_BYTES)
    yield from (chance.randrange(HEADER_BYTES, end) for _ in range(60))
    for number in ends(log)[:-2]:
        yield from range(frame_at(number), frame_at(number) + FRAME_HEADER_BYTES, 3)


def test_a_whole_log_has_no_damage(killed: Path) -> None:
    assert len(ends(log_of(killed))) == 10
    assert find_damage(log_of(killed)) is None
    assert find_damage(b"") is None
    assert find_damage(bytes(40_000)) is None


def test_one_bit_before_the_last_transaction_is_damage(killed: Path) -> None:
    log = log_of(killed)
    for place in places(log):
        damage = find_damage(flipped(log, place, place % 8))
        assert damage is not None, place
        frame = (place - HEADER_BYTES) // FRAME_BYTES
        assert damage.offset == max(0, frame_at(frame)) * (place >= HEADER_BYTES)
        assert damage.is_header == (place < HEADER_BYTES)


def test_the_place_and_what_is_behind_are_named(killed: Path) -> None:
    log = log_of(killed)
    sixth = ends(log)[4] + 1
    lonely = lonely_frame(log, sixth)
    assert lonely <= ends(log)[5]
    damage = find_damage(flipped(log, frame_at(lonely) + 900))
    assert damage is not None
    assert (damage.offset, damage.repaired) == (frame_at(lonely), None)
    assert damage.lost_transactions_count == 5
    assert damage.lost_frames_count == ends(log)[-1] + 1 - sixth


def test_frames_of_the_last_transaction_in_any_order_are_a_crash(killed: Path) -> None:
    log = log_of(killed)
    last, count = ends(log)[-2] + 1, ends(log)[-1] + 1
    assert count - last >= 3
    for torn in range(1, 1 << (count - last)):
        left = bytearray(log)
        for at in range(last, count):
            if torn >> (at - last) & 1:
                left[frame_at(at) : frame_at(at + 1)] = bytes(FRAME_BYTES)
        assert find_damage(bytes(left)) is None
        for cut in (last, last + 1, count - 1):
            assert find_damage(bytes(left[: frame_at(cut) + torn * 100])) is None


def test_a_torn_transaction_that_was_written_over_in_part_is_no_damage(killed: Path) -> None:
    log = log_of(killed)
    last = ends(log)[-2] + 1
    (killed / f"{NAME}-wal").write_bytes(flipped(log, frame_at(last) + 700))
    with closing(sqlite3.connect(killed / NAME)) as connection:
        connection.execute("PRAGMA user_version = 1")  # one frame
        after = log_of(killed)
    assert (len(after), after[: frame_at(last)]) == (len(log), log[: frame_at(last)])
    assert ends(after)[-2:] == [last, ends(log)[-1]]
    assert find_damage(after) is None


def test_what_is_left_from_before_a_checkpoint_is_no_damage(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / NAME)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
        for _ in range(5):
            connection.execute("INSERT INTO t VALUES (randomblob(9000))")
            connection.commit()
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        log = log_of(tmp_path)
        assert len(ends(log)) > 2
        assert find_damage(log) is None
        connection.execute("INSERT INTO t VALUES (2)")
        connection.commit()
        damage = find_damage(flipped(log_of(tmp_path), HEADER_BYTES + 500))
        assert damage is not None
        assert damage.repaired
        assert damage.lost_transactions_count == 0


def test_words_of_the_other_byte_order() -> None:
    """As a machine with big-endian words writes it: one made by hand, of 512 bytes a page."""

    def checksum(data: bytes, first: int, second: int) -> tuple[int, int]:
        for at in range(0, len(data), 8):
            first = first + int.from_bytes(data[at : at + 4], "big") + second & 0xFFFFFFFF
            second = second + int.from_bytes(data[at + 4 : at + 8], "big") + first & 0xFFFFFFFF
        return first, second

    def words(*values: int) -> bytes:
        return b"".join(value.to_bytes(4, "big") for value in values)

    log = words(0x377F0683, 3007000, 512, 0, 11, 12)
    state = checksum(log, 0, 0)
    log += words(*state)
    for number in range(1, 4):
        page = bytes([number, 7]) * 256
        state = checksum(words(number, number) + page, *state)
        log += words(number, number, 11, 12, *state) + page
    assert find_damage(log) is None
    damage = find_damage(flipped(log, 100))
    assert damage is not None
    assert (damage.offset, damage.lost_transactions_count) == (HEADER_BYTES, 3)
    assert find_damage(flipped(log, 3)) is not None


def test_a_log_of_usual_size_takes_little_time(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / NAME)
    commit(file, "/a", 3_900_000)
    log = log_of(tmp_path)
    file.close()
    assert len(log) > 3_900_000
    seconds = []
    for _ in range(3):
        start = time.thread_time()
        assert find_damage(log) is None
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 0.3  # of CPU time; 0.04 where nothing else runs


def test_pages_that_were_written_again_behind_the_damage_are_not_missed(
    killed: Path, tmp_path: Path
) -> None:
    """Whatever is damaged: either all is read, or just what is before."""
    log = log_of(killed)
    (tmp_path / "scratch").mkdir()
    complete, seen = {f"/a/{number}": bytes(6000) for number in range(10)}, set()
    for place in places(log):
        (killed / f"{NAME}-wal").write_bytes(flipped(log, place))
        found = read_metadata(killed / NAME, tmp_path / "scratch")
        frame = (place - HEADER_BYTES) // FRAME_BYTES
        whole = sum(end < frame for end in ends(log)) if place >= HEADER_BYTES else 0
        (finding,) = found.findings
        is_everything = found.keys == complete
        seen.add((is_everything, place < HEADER_BYTES))
        assert is_everything or list(found.keys) == list(complete)[:whole]
        assert ("nothing is lost" in finding.problem) == is_everything, place
    assert {(True, True), (True, False), (False, False)} <= seen


def test_a_second_damage_ends_what_is_made_up_for(killed: Path, tmp_path: Path) -> None:
    log = log_of(killed)
    again = next(
        at for at, page in enumerate(pages(log)) if page in pages(log)[at + 1 : ends(log)[4]]
    )
    lonely = lonely_frame(log, ends(log)[6] + 1)
    twice = flipped(flipped(log, frame_at(again) + 900), frame_at(lonely) + 900)
    damage = find_damage(twice)
    assert damage is not None
    assert damage.offset == frame_at(again)
    assert damage.lost_transactions_count == sum(end > ends(log)[6] for end in ends(log))
    (killed / f"{NAME}-wal").write_bytes(twice)
    (tmp_path / "scratch").mkdir()
    found = read_metadata(killed / NAME, tmp_path / "scratch")
    assert list(found.keys) == [f"/a/{number}" for number in range(7)]
    assert "3 transactions in" in found.findings[0].problem


def test_a_damaged_log_is_not_opened_and_stays_as_it_was(killed: Path) -> None:
    log = log_of(killed)
    frame = lonely_frame(log, ends(log)[4] + 1)
    damaged = flipped(log, frame_at(frame) + 900)
    (killed / f"{NAME}-wal").write_bytes(damaged)
    place = f"{NAME}-wal: offset {frame_at(frame)}: a frame is damaged; 5 transactions"
    with pytest.raises(CorruptDataError, match=place) as refused:
        SqliteFile(killed / NAME)
    assert f"pulsar-py storage recover {killed}" in str(refused.value)
    assert log_of(killed) == damaged


def test_a_damaged_log_is_reported_and_read_up_to_the_damage(killed: Path, tmp_path: Path) -> None:
    log = log_of(killed)
    frame = lonely_frame(log, ends(log)[4] + 1)
    (killed / f"{NAME}-wal").write_bytes(flipped(log, frame_at(frame) + 900))
    (tmp_path / "scratch").mkdir()
    found = read_metadata(killed / NAME, tmp_path / "scratch")
    assert [(each.path, each.offset) for each in found.findings] == [
        (f"{NAME}-wal", frame_at(frame))
    ]
    assert list(found.keys) == [f"/a/{number}" for number in range(5)]
