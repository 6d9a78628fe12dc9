"""Memory that is used again."""

from __future__ import annotations

from pulsar_py.common.disks.reused_memory import ReusedMemory

LIMIT_BYTES = 8 << 20


def test_memory_that_nobody_holds_is_used_again() -> None:
    buffers = ReusedMemory(LIMIT_BYTES)
    for size in (100_000, 90_000, 100_001):
        buffers.take(size)
    assert buffers.kept_bytes == 131_072

    slice_of_it = buffers.take(100_000)[10:20]
    other = buffers.take(100_000)
    assert buffers.kept_bytes == 2 * 131_072
    other[:20] = b"x" * 20
    assert bytes(slice_of_it) != b"x" * 10


def test_what_is_too_small_makes_room() -> None:
    buffers = ReusedMemory(LIMIT_BYTES)
    buffers.take(100_000)
    buffers.take(1_000_000)
    assert buffers.kept_bytes == 16 * 65_536


def test_what_is_kept_has_a_limit() -> None:
    buffers = ReusedMemory(LIMIT_BYTES)
    held = [buffers.take(3_000_000) for _ in range(4)]
    assert buffers.kept_bytes <= LIMIT_BYTES
    assert all(len(each) == 3_000_000 for each in held)


def test_one_that_fits_is_found_among_those_in_use_and_those_too_small() -> None:
    buffers = ReusedMemory(LIMIT_BYTES)
    pieces = [buffers.take(size) for size in (100_000, 1_000_000, 1_000_000)]
    fitting = pieces.pop(1)
    fitting[:3] = b"it!"
    del fitting, pieces[0]

    assert bytes(buffers.take(900_000)[:3]) == b"it!"


def test_nothing_can_be_taken_too() -> None:
    buffers = ReusedMemory(LIMIT_BYTES)

    assert len(buffers.take(0)) == 0
    assert len(buffers.take(5)) == 5
