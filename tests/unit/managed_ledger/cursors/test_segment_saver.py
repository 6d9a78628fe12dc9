"""Large cursors: only what changed is written, all of it comes back, cold ledgers return."""

import asyncio
import random

import pytest

from pulsar_py.common.ack_set import MAX_WORDS
from pulsar_py.common.errors import StorageError
from pulsar_py.managed_ledger.cursors.segments import Marker, StoredSegment, decode_entry
from pulsar_py.managed_ledger.log.ledger_format import cursor_path, ledger_path
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.proto.MLDataFormats_pb2 import PositionInfo
from tests.managed_ledger_parts import MANY, World, append_all, settle, texts

LARGE = {"max_ranges_in_cursor_entry": 2, "max_unacked_ranges_to_persist_in_metadata": 2}
ENTRIES_PER_LEDGER = 10


async def opened(world, *, entries_count=40, memory=1 << 20, **options):
    """A cursor over ledgers of ten entries each."""
    opener = world.opener(cursor_memory_bytes=memory)
    ledger = await world.open(opener=opener, max_entries=ENTRIES_PER_LEDGER, **{**LARGE, **options})
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    positions = await append_all(ledger, entries_count)
    return ledger, cursor, positions


async def again(world, *, memory=1 << 20, **options):
    """The cursor as another process finds it."""
    opener = world.opener(cursor_memory_bytes=memory)
    ledger = await world.open(opener=opener, max_entries=ENTRIES_PER_LEDGER, **{**LARGE, **options})
    return ledger, ledger.cursors["sub"]


def entries_of(world, cursor):
    return [decode_entry(data) for data in world.store.ledgers[cursor.cursor_ledger_id].entries]


def acknowledged(cursor, positions):
    return [place for place, each in enumerate(positions) if cursor.is_acknowledged(each)]


async def test_a_large_state_is_segments_and_a_marker():
    world = World()
    _, cursor, positions = await opened(world)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    kinds = [type(each) for each in entries_of(world, cursor)]
    assert kinds == [StoredSegment] * 4 + [Marker]
    _, found = await again(world)
    assert acknowledged(found, positions) == list(range(1, 40, 2))
    assert found.backlog_count() == 20


async def test_after_one_acknowledgement_one_segment_and_the_marker_are_written():
    world = World()
    _, cursor, positions = await opened(world)
    cursor.acknowledge(positions[1::2])
    await asyncio.sleep(1.1)
    before = len(entries_of(world, cursor))
    cursor.acknowledge([positions[20]])
    await asyncio.sleep(1.1)
    new = entries_of(world, cursor)[before:]
    assert [type(each) for each in new] == [StoredSegment, Marker]
    assert new[0].key.ledger_id == positions[20].ledger_id
    _, found = await again(world)
    assert acknowledged(found, positions) == sorted([*range(1, 40, 2), 20])


async def test_partly_acknowledged_batches_are_segments_too():
    world = World()
    _, cursor, positions = await opened(world)
    for position in positions[1::2]:
        cursor.acknowledge([position], [[0b0110]])
    await cursor.flush()
    cursor.acknowledge([positions[5]], [[0b0100]])
    cursor.acknowledge([positions[7]])
    await cursor.flush()
    _, found = await again(world)
    assert found.batch_ack_set(positions[5]) == [0b0100]
    assert found.batch_ack_set(positions[9]) == [0b0110]
    assert found.batch_ack_set(positions[7]) is None
    assert acknowledged(found, positions) == [7]
    found.state.check()


async def test_a_state_that_has_become_small_is_one_entry_again():
    world = World()
    _, cursor, positions = await opened(world)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    cursor.acknowledge_cumulative(positions[38])
    await cursor.flush()
    assert not isinstance(entries_of(world, cursor)[-1], Marker)
    assert not cursor.state.pages.is_tracking
    cursor.acknowledge([])
    _, found = await again(world)
    assert found.mark_delete_position == positions[39]


async def test_apache_pulsar_sees_a_position_in_every_entry():
    world = World()
    _, cursor, positions = await opened(world)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    stored = world.store.ledgers[cursor.cursor_ledger_id].entries
    infos = [PositionInfo.FromString(data) for data in stored]
    assert {(each.ledgerId, each.entryId) for each in infos} == {cursor.mark_delete_position}
    assert len(infos[-1].individualDeletedMessages) == 20
    assert not infos[0].individualDeletedMessages


async def test_segments_without_a_marker_do_not_count():
    world = World()
    _, cursor, positions = await opened(world)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    cursor.acknowledge([positions[20], positions[30]])
    await cursor.flush()
    for torn in (0, 1, 2):
        ledger = world.store.ledgers[cursor.cursor_ledger_id]
        assert type(decode_entry(ledger.entries[-1])) is (Marker if not torn else StoredSegment)
        del ledger.entries[-1]
        ledger.last_confirmed = len(ledger.entries) - 1
    _, found = await again(world)
    assert acknowledged(found, positions) == list(range(1, 40, 2))


async def test_a_marker_whose_segment_is_broken_does_not_count():
    world = World()
    _, cursor, positions = await opened(world)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    cursor.acknowledge([positions[20]])
    await cursor.flush()
    entries = world.store.ledgers[cursor.cursor_ledger_id].entries
    entries[-2] = entries[0]
    _, found = await again(world)
    assert acknowledged(found, positions) == list(range(1, 40, 2))


async def test_the_ledger_rolls_with_all_segments_and_the_old_one_goes():
    world = World()
    _, cursor, positions = await opened(world, cursor_max_entries_per_ledger=6)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    first = cursor.cursor_ledger_id
    for position in (positions[20], positions[30]):
        cursor.acknowledge([position])
        await cursor.flush()
    assert cursor.cursor_ledger_id != first
    assert first not in world.store.ledgers
    assert len(entries_of(world, cursor)) == 5
    _, found = await again(world)
    assert acknowledged(found, positions) == sorted([*range(1, 40, 2), 20, 30])


async def test_a_failed_write_is_written_again_as_a_whole():
    world = World()
    _, cursor, positions = await opened(world)
    cursor.acknowledge(positions[1::2])
    await asyncio.sleep(1.1)
    first = cursor.cursor_ledger_id
    world.store.is_holding = True
    cursor.acknowledge([positions[20]])
    await asyncio.sleep(1.1)
    world.store.fail_writers(StorageError("broken"))
    world.store.is_holding = False
    await asyncio.sleep(2.5)
    assert cursor.cursor_ledger_id != first
    assert not cursor.state.is_dirty
    _, found = await again(world)
    assert acknowledged(found, positions) == sorted([*range(1, 40, 2), 20])


async def test_without_a_cursor_ledger_the_record_adds_what_it_can_to_the_old_one():
    world = World()
    _, cursor, positions = await opened(world, cursor_max_entries_per_ledger=1)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    world.store.create_error = StorageError("no")
    cursor.acknowledge([positions[20], positions[28]])
    with pytest.raises(StorageError):
        await cursor.flush()
    assert cursor.stats().ranges_not_persisted_count
    assert cursor.state.is_dirty
    _, found = await again(world)
    assert acknowledged(found, positions) == sorted([*range(1, 40, 2), 20])


async def test_what_a_record_adds_holds_until_a_new_ledger_has_it():
    options = {"max_unacked_ranges_to_persist_in_metadata": 9, "cursor_max_entries_per_ledger": 1}
    world = World()
    _, cursor, positions = await opened(world, **options)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    first = cursor.cursor_ledger_id
    world.store.create_error = StorageError("no")
    cursor.acknowledge([positions[20]])
    await cursor.flush()
    await cursor.set_cursor_properties({"a": "b"})
    assert cursor.cursor_ledger_id == first
    _, found = await again(world, memory=0, **options)
    assert found.is_acknowledged(positions[20])
    await asyncio.sleep(1)
    assert found.backlog_count() == 19
    world.store.create_error = None
    found.acknowledge([positions[22]])
    await found.flush()
    assert found.cursor_ledger_id != first
    _, found = await again(world, **options)
    assert acknowledged(found, positions) == sorted([*range(1, 40, 2), 20, 22])
    assert found.cursor_properties == {"a": "b"}


async def test_cold_ledgers_leave_memory_and_the_backlog_stays_exact():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[1::2])
    await asyncio.sleep(1.1)
    state = cursor.state
    assert sorted(state.pages.cold) == sorted({each.ledger_id for each in positions[10:]})
    assert len(state.individual_deleted_messages) == 5
    assert cursor.backlog_count() == 20
    assert cursor.individual_ranges_count() == 20
    assert texts(await read_all(cursor)) == [f"m{each}" for each in range(0, 40, 2)]
    state.check()


async def read_all(cursor):
    found = []
    while entries := await cursor.read(*MANY):
        found += entries
    return found


async def test_acknowledgements_in_a_cold_ledger_join_what_is_stored():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[1::2])
    cursor.acknowledge([positions[30], positions[32]], [[0b011], [0b011]])
    await asyncio.sleep(1.1)
    cursor.acknowledge([positions[20], positions[21]])
    cursor.acknowledge([positions[30], positions[32]], [[0b110], [0b100]])
    assert cursor.is_acknowledged(positions[20])
    await asyncio.sleep(2.2)
    assert cursor.backlog_count() == 18
    cursor.state.check()
    _, found = await again(world)
    assert acknowledged(found, positions) == sorted([*range(1, 40, 2), 20, 32])
    assert found.batch_ack_set(positions[30]) == [0b010]


async def test_the_backlog_is_exact_before_and_after_a_cold_ledger_is_back():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[1::2])
    await asyncio.sleep(1.1)
    assert cursor.backlog_count() == 20

    cursor.acknowledge([positions[21]])  # once more
    assert (cursor.backlog_count(), bool(cursor.state.pages.wanted)) == (20, True)
    await settle()
    assert (cursor.backlog_count(), bool(cursor.state.pages.wanted)) == (20, False)
    cursor.acknowledge([positions[30], positions[31]])
    assert cursor.backlog_count() == 20
    await settle()
    assert cursor.backlog_count() == 19


async def test_the_backlog_is_exact_around_a_cumulative_acknowledgement_in_a_cold_ledger():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[1::2])
    await asyncio.sleep(1.1)
    assert positions[24].ledger_id in cursor.state.pages.cold

    cursor.acknowledge_cumulative(positions[24])
    assert cursor.backlog_count() == 5 + 5  # of the third ledger as it was, and of the fourth
    await settle()
    assert cursor.mark_delete_position == positions[25]
    assert cursor.backlog_count() == 2 + 5
    assert positions[39].ledger_id in cursor.state.pages.cold
    await cursor.clear_backlog()
    assert cursor.backlog_count() == 0
    assert not cursor.state.pages.cold
    cursor.state.check()


async def test_who_held_a_batch_hears_when_its_ledger_shows_that_it_is_done():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[1::2])
    cursor.acknowledge([positions[30], positions[32]], [[0b011], [0b011]])
    await asyncio.sleep(1.1)
    told, moved = [], []
    cursor.on_acknowledged_late = told.extend
    cursor.on_mark_delete_moved = lambda: moved.append(cursor.mark_delete_position)
    assert positions[30].ledger_id in cursor.state.pages.cold

    cursor.acknowledge([positions[30], positions[32]], [[0b110], [0b100]])
    await settle()

    assert told == [positions[32]]
    assert cursor.is_acknowledged(positions[32])
    cursor.acknowledge_cumulative(positions[34])
    await settle()
    assert moved[-1] == positions[35]


async def test_the_position_moves_on_through_cold_ledgers():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[3:])
    cursor.acknowledge([positions[1]])
    # Holes that are too many for one entry, so that it stays in segments.
    await asyncio.sleep(1.1)
    assert cursor.state.pages.cold
    cursor.acknowledge([positions[0], positions[2]])
    await asyncio.sleep(3)
    assert cursor.mark_delete_position == positions[39]
    assert cursor.backlog_count() == 0
    _, found = await again(world)
    assert found.mark_delete_position == positions[39]


async def test_skipping_loads_what_is_cold():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[1::2])
    await asyncio.sleep(1.1)
    await cursor.skip(15)
    assert cursor.backlog_count() == 5
    assert not cursor.is_acknowledged(positions[30])
    assert cursor.is_acknowledged(positions[29])


async def test_a_reset_forgets_what_is_cold():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[1::2])
    await asyncio.sleep(1.1)
    await cursor.reset(positions[5])
    assert cursor.backlog_count() == 35
    cursor.acknowledge(positions[6::2])
    await cursor.flush()
    _, found = await again(world, memory=0)
    assert found.backlog_count() == 18
    assert texts(await read_all(found)) == [f"m{each}" for each in range(5, 40, 2)]


async def test_what_is_cold_after_a_restart_is_copied_when_the_ledger_rolls():
    world = World()
    _, cursor, positions = await opened(world)
    cursor.acknowledge(positions[1::2])
    await cursor.flush()
    ledger, found = await again(world, memory=0)
    assert len(found.state.pages.cold) == 3
    assert found.backlog_count() == 20
    found.acknowledge([positions[0]])
    await found.flush()
    await ledger.close()
    _, third = await again(world)
    assert acknowledged(third, positions) == sorted([0, *range(1, 40, 2)])


async def test_while_cold_ledgers_cannot_be_read_nothing_is_lost():
    world = World()
    _, cursor, positions = await opened(world, memory=0)
    cursor.acknowledge(positions[1::2])
    await asyncio.sleep(1.1)
    stored = world.store.ledgers.pop(cursor.cursor_ledger_id)
    cursor.acknowledge([positions[20]])
    await asyncio.sleep(2)
    with pytest.raises(StorageError):
        await read_all(cursor)
    assert cursor.state.pages.dirty
    world.store.ledgers[stored.ledger_id] = stored
    cursor.acknowledge([positions[22]])
    await asyncio.sleep(2)
    assert not cursor.state.pages.dirty
    _, found = await again(world)
    assert acknowledged(found, positions) == sorted([*range(1, 40, 2), 20, 22])


@pytest.mark.parametrize("seed", range(6))
async def test_random_lives_against_a_model(seed):
    chance = random.Random(seed)
    world = World()
    memory = chance.choice((0, 60, 1 << 20))
    options = {"cursor_max_entries_per_ledger": chance.choice((7, 60, 50_000))}
    ledger, cursor, positions = await opened(world, entries_count=80, memory=memory, **options)
    model: set[int] = set()
    for _ in range(60):
        await step(chance, cursor, positions, model)
        if chance.random() < 0.1:
            await (ledger.close() if chance.random() < 0.5 else cursor.flush())
            ledger, cursor = await again(world, memory=memory, **options)
        cursor.state.check()
    await asyncio.sleep(3)
    assert cursor.backlog_count() == 80 - len(model)
    ledger, cursor = await again(world, memory=memory, **options)
    assert cursor.backlog_count() == 80 - len(model)
    cursor.rewind()
    waiting = [f"m{each}" for each in range(80) if each not in model]
    assert texts(await read_all(cursor)) == waiting


async def step(chance, cursor, positions, model):
    kind = chance.random()
    if kind < 0.6:
        chosen = chance.sample(range(80), chance.randint(1, 8))
        sets = [chance.choice((None, [0b01], [0b10])) for _ in chosen]
        for place, words in zip(chosen, sets, strict=True):
            cursor.acknowledge([positions[place]], None if words is None else [words])
        model |= {place for place, words in zip(chosen, sets, strict=True) if words is None}
        cursor.acknowledge([positions[place] for place in chosen])
        model |= set(chosen)
    elif kind < 0.65:
        place = chance.randrange(40)
        if positions[place] >= cursor.mark_delete_position:
            cursor.acknowledge_cumulative(positions[place])
            model |= set(range(place + 1))
    elif kind < 0.7:
        place = chance.randrange(80)
        await cursor.reset(positions[place])
        model.clear()
        model |= set(range(place))
    elif kind < 0.8:
        cursor.rewind()
        await cursor.read(5, 1000)
    else:
        await asyncio.sleep(chance.choice((0.2, 1.1, 2.3)))


HUGE = [(1 << 64) - 1] * MAX_WORDS
"""The ack set of the largest batch, of which one index is acknowledged."""
HUGE[0] = (1 << 64) - 2
MAX_ENTRY_BYTES = 5 << 20


def largest_entry(world, cursor):
    return max(len(data) for data in world.store.ledgers[cursor.cursor_ledger_id].entries)


async def test_few_batches_with_huge_ack_sets_are_not_written_as_one_entry():
    """Forty are few, and take more than a mebibyte."""
    world = World()
    options = {"max_ranges_in_cursor_entry": 2000}
    _, cursor, positions = await opened(world, **options)
    cursor.acknowledge(positions[1:], [HUGE] * 39)
    await cursor.flush()
    assert type(entries_of(world, cursor)[-1]) is Marker
    assert largest_entry(world, cursor) < MAX_ENTRY_BYTES
    assert cursor.ranges_not_persisted_count == 0
    _, found = await again(world, memory=64 << 20, **options)
    assert [each for each in positions if found.batch_ack_set(each)] == positions[1:]


async def test_they_are_not_written_into_the_record_of_a_closed_cursor():
    world = World()
    options = {"max_unacked_ranges_to_persist_in_metadata": 1000}
    ledger, cursor, positions = await opened(world, **options)
    cursor.acknowledge(positions[1:], [HUGE] * 39)
    await ledger.close()
    for path in (ledger_path(ledger.name), cursor_path(ledger.name, "sub")):
        assert len((await world.metadata.get(path)).value) < 1 << 20
    _, found = await again(world, memory=64 << 20, **options)
    assert [each for each in positions if found.batch_ack_set(each)] == positions[1:]


async def test_batches_beyond_what_an_entry_takes_are_left_out_and_counted(caplog):
    world = World()
    opener = world.opener(cursor_memory_bytes=1)
    config = {**LARGE, "max_entries": 1000}
    ledger = await world.open(opener=opener, **config)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    positions = await append_all(ledger, 200)
    cursor.acknowledge(positions[1:], [HUGE] * 199)
    await cursor.flush()
    left_out = cursor.ranges_not_persisted_count
    assert 0 < left_out < 100
    assert "acknowledgements exceed what can be stored" in caplog.text
    assert largest_entry(world, cursor) < MAX_ENTRY_BYTES
    assert all(cursor.batch_ack_set(each) for each in positions[1:]), "they stay in memory"
    ledger_after = await world.open(opener=world.opener(cursor_memory_bytes=64 << 20), **config)
    found = ledger_after.cursors["sub"]
    kept = [each for each in positions if found.batch_ack_set(each)]
    assert kept == positions[1 : 200 - left_out], "the highest come again as a whole"


async def test_batches_that_were_left_out_are_written_once_there_is_room():
    world = World()
    opener = world.opener(cursor_memory_bytes=1)
    ledger = await world.open(opener=opener, max_entries=1000, **LARGE)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    positions = await append_all(ledger, 200)
    cursor.acknowledge(positions[1:], [HUGE] * 199)
    await cursor.flush()
    assert cursor.ranges_not_persisted_count
    cursor.acknowledge(positions[1:101])
    await cursor.flush()
    assert cursor.ranges_not_persisted_count == 0
    await ledger.close()
