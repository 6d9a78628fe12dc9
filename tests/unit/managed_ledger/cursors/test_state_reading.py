"""state_reading: the newest whole state of a cursor ledger, whatever lies around it."""

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot, encode_position_info
from pulsar_py.managed_ledger.cursors.segments import SegmentKey, SegmentKind, SegmentRef
from pulsar_py.managed_ledger.cursors.state_reading import (
    join_states,
    last_whole_state,
    read_stored_segments,
)

BROKEN = b"\xff\xff"


class Ledger:
    """A reader of entries that counts its reads."""

    ledger_id = 9

    def __init__(self, *entries: bytes) -> None:
        self.entries = entries
        self.last_add_confirmed = len(entries) - 1
        self.reads_count = 0

    async def read(self, first: int, last: int, max_bytes: int) -> tuple[bytes, ...]:
        assert max_bytes > 0
        self.reads_count += 1
        return self.entries[first : last + 1]


def state(entry_id: int) -> bytes:
    content = CursorSnapshot(Position(3, entry_id))
    encoded = encode_position_info(content, max_ranges=9, max_batches=9, as_long_arrays=True)
    return encoded.data


async def position_in(ledger: Ledger) -> Position | None:
    found = await last_whole_state(ledger, room_bytes=1 << 20)
    return None if found is None else found[0].mark_delete_position


async def test_the_last_entry_is_the_state() -> None:
    assert await position_in(Ledger(state(1), state(2))) == Position(3, 2)


async def test_damaged_entries_are_passed_over() -> None:
    assert await position_in(Ledger(state(1), BROKEN, BROKEN)) == Position(3, 1)


async def test_nothing_readable_is_no_state() -> None:
    assert await position_in(Ledger()) is None
    assert await position_in(Ledger(BROKEN, BROKEN)) is None


async def test_the_way_back_has_an_end() -> None:
    assert await position_in(Ledger(state(1), *[BROKEN] * 99)) == Position(3, 1)
    assert await position_in(Ledger(state(1), *[BROKEN] * 100)) is None


async def test_entries_are_read_many_at_a_time() -> None:
    ledger = Ledger(state(1), *[BROKEN] * 60)
    await position_in(ledger)
    assert ledger.reads_count == 3  # 16, 32 and the rest


def test_joined_states_have_the_acknowledgements_of_both() -> None:
    stored, newer = CursorSnapshot(Position(3, 1)), CursorSnapshot(Position(3, 2))
    stored.individual_deleted_messages.add(Position(3, 5))
    newer.individual_deleted_messages.add(Position(3, 7))
    join_states(stored, newer)
    assert stored.mark_delete_position == Position(3, 2)
    assert list(stored.individual_deleted_messages.ranges()) == [(3, 5, 5), (3, 7, 7)]


async def test_an_entry_that_is_not_the_segment_listed_is_damage() -> None:
    key = SegmentKey(SegmentKind.HOLES, 3, 0)
    ref = SegmentRef(entry_id=0, size_bytes=1, entries_count=1, ranges_count=1)
    with pytest.raises(CorruptDataError, match="entry 0 is not the segment"):
        await read_stored_segments(Ledger(state(1)), {key: ref})
