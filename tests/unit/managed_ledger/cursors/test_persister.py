"""CursorPersister: what was acknowledged is written in time, and found again."""

import asyncio
import random
from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import (
    CursorBusyError,
    ManagedLedgerFencedError,
    MetadataError,
    StorageError,
    StoreBusyError,
)
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.managed_ledger.cursors.flusher import MANY_OPENINGS, MAX_WAIT_SECONDS
from pulsar_py.managed_ledger.cursors.format import decode_cursor_record
from pulsar_py.managed_ledger.log.ledger_format import cursor_path
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults
from tests.managed_ledger_parts import MANY, NAME, World, append_all, settle, texts


async def opened(world, count=10, **options):
    ledger = await world.open(**options)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, count)
    return ledger, cursor


async def after_a_crash(world, **options):
    """The cursor as a new owner finds it, while the old one was not closed."""
    return (await world.open(**options)).cursors["sub"]


async def record_of(world, name="sub"):
    found = await world.metadata.get(cursor_path(NAME, name))
    return decode_cursor_record(found.value)


async def test_a_new_cursor_is_in_metadata_and_has_no_ledger():
    world = World()
    await opened(world)
    record = await record_of(world)
    assert record.cursor_ledger_id == -1
    assert record.snapshot.mark_delete_position == Position(3, -1)


async def test_an_acknowledgement_is_durable_within_a_second_idle_or_not():
    world = World()
    _, cursor = await opened(world)
    cursor.acknowledge([Position(3, 0), Position(3, 5)])
    await asyncio.sleep(1)
    again = await after_a_crash(world)
    assert again.mark_delete_position == Position(3, 0)
    assert again.is_acknowledged(Position(3, 5))
    assert again.backlog_count() == 8


async def test_a_steady_stream_of_acknowledgements_is_written_once_a_second():
    world = World()
    _, cursor = await opened(world, count=100)
    for entry_id in range(100):
        cursor.acknowledge([Position(3, entry_id)])
        await asyncio.sleep(0.1)
    assert 9 <= len(world.store.ledgers[cursor.cursor_ledger_id].entries) <= 11


async def test_batch_indexes_survive_a_crash_and_a_clean_close():
    world = World()
    ledger, cursor = await opened(world)
    cursor.acknowledge([Position(3, 2)], [[0b101]])
    await asyncio.sleep(1)
    again = await after_a_crash(world)
    assert again.batch_ack_set(Position(3, 2)) == [0b101]
    again.acknowledge([Position(3, 2)], [[0b100]])
    await again._watch._owner.close()
    last = await after_a_crash(world)
    assert last.batch_ack_set(Position(3, 2)) == [0b100]
    assert ledger.is_fenced is False


async def test_a_clean_close_leaves_everything_in_the_record():
    world = World()
    ledger, cursor = await opened(world)
    cursor.acknowledge([Position(3, 1)])
    await asyncio.sleep(1)
    assert cursor.cursor_ledger_id == 4
    cursor.acknowledge([Position(3, 4)])
    await ledger.close()
    record = await record_of(world)
    assert record.cursor_ledger_id == -1
    assert 4 not in world.store.ledgers
    assert str(record.snapshot.individual_deleted_messages) == "[(3:0..3:1],(3:3..3:4]]"


async def test_a_large_state_stays_in_a_cursor_ledger():
    world = World()
    limit = {"max_unacked_ranges_to_persist_in_metadata": 2}
    ledger, cursor = await opened(world, **limit)
    cursor.acknowledge([Position(3, 1), Position(3, 3), Position(3, 5)])
    await ledger.close()
    assert (await record_of(world)).cursor_ledger_id >= 0
    again = await after_a_crash(world, **limit)
    assert again.individual_ranges_count() == 3
    await again._watch._owner.close()
    third = await after_a_crash(world, **limit)
    assert third.individual_ranges_count() == 3


@pytest.mark.parametrize("has_ledger", [False, True])
async def test_what_was_written_is_not_pushed_out_of_a_record_that_takes_no_more(has_ledger):
    world = World()
    limit = {"max_unacked_ranges_to_persist_in_metadata": 2}
    ledger, cursor = await opened(world, **limit)
    if has_ledger:
        cursor.acknowledge([Position(3, 2)])
        await cursor.flush()
    world.store.append_error = world.store.create_error = StorageError("full")
    cursor.acknowledge([Position(3, 9)])
    cursor.acknowledge([Position(3, 8)], [[0b01]])
    await cursor.flush()
    cursor.acknowledge([Position(3, 5)])
    cursor.acknowledge([Position(3, 1), Position(3, 6)], [[0b01], [0b01]])
    with pytest.raises(StorageError, match="full"):
        await cursor.flush()

    # Pages that changed are taken as a whole: entry 2 takes room, too.
    assert cursor.stats().ranges_not_persisted_count == 1 + has_ledger
    again = await after_a_crash(world, **limit)
    assert again.is_acknowledged(Position(3, 9))
    assert again.batch_ack_set(Position(3, 8)) == [0b01]
    assert again.is_acknowledged(Position(3, 5)) != has_ledger
    assert again.batch_ack_set(Position(3, 1)) == [0b01]
    assert again.batch_ack_set(Position(3, 6)) is None
    assert again.is_acknowledged(Position(3, 2)) == has_ledger
    assert ledger.is_fenced is False


async def test_what_a_record_adds_to_segments_is_still_there_after_the_next_addition():
    world = World()
    options = {
        "max_entries": 20,
        "max_ranges_in_cursor_entry": 4,
        "max_unacked_ranges_to_persist_in_metadata": 2,
    }
    ledger = await world.open(**options)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    positions = await append_all(ledger, 60)
    cursor.acknowledge(positions[1:20:2])
    await cursor.flush()
    world.store.append_error = world.store.create_error = StorageError("full")
    cursor.acknowledge([positions[30]], [[0b01]])
    await cursor.flush()

    again = await after_a_crash(world, **options)
    assert again.batch_ack_set(positions[30]) == [0b01]
    again.acknowledge([positions[50]], [[0b10]])
    await again.flush()

    third = await after_a_crash(world, **options)
    assert third.batch_ack_set(positions[30]) == [0b01]
    assert third.batch_ack_set(positions[50]) == [0b10]
    world.store.append_error = world.store.create_error = None
    third.acknowledge([positions[35]])
    await third.flush()

    assert not (await record_of(world)).adds_to_ledger
    last = await after_a_crash(world, **options)
    assert last.individual_ranges_count() == 11
    assert last.batch_ack_set(positions[30]) == [0b01]
    assert last.batch_ack_set(positions[50]) == [0b10]


async def test_a_clean_cursor_costs_nothing_to_close():
    world = World()
    ledger, _ = await opened(world)
    before = await world.metadata.get(cursor_path(NAME, "sub"))
    await ledger.close()
    assert await world.metadata.get(cursor_path(NAME, "sub")) == before


async def test_the_cursor_ledger_rolls_and_the_old_one_goes():
    world = World()
    _, cursor = await opened(world, cursor_max_entries_per_ledger=2)
    seen = set()
    for entry_id in range(5):
        cursor.acknowledge([Position(3, entry_id)])
        await asyncio.sleep(1.1)
        seen.add(cursor.cursor_ledger_id)
    assert len(seen) == 3
    assert len([each for each in world.store.ledgers if each in seen]) == 1
    assert (await after_a_crash(world)).mark_delete_position == Position(3, 4)


async def test_an_old_cursor_ledger_rolls():
    world = World()
    _, cursor = await opened(world, cursor_rollover_seconds=100)
    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(1)
    first = cursor.cursor_ledger_id
    await asyncio.sleep(100)
    cursor.acknowledge([Position(3, 1)])
    await asyncio.sleep(1)
    assert cursor.cursor_ledger_id != first


async def test_without_a_cursor_ledger_the_record_takes_the_state():
    world = World()
    _, cursor = await opened(world)
    world.store.create_error = StorageError("no")
    cursor.acknowledge([Position(3, 2)])
    await asyncio.sleep(1)
    record = await record_of(world)
    assert record.cursor_ledger_id == -1
    assert Position(3, 2) in record.snapshot.individual_deleted_messages


async def test_a_failed_cursor_ledger_is_replaced():
    world = World()
    _, cursor = await opened(world)
    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(1)
    first = cursor.cursor_ledger_id
    world.store.is_holding = True
    cursor.acknowledge([Position(3, 1)])
    await asyncio.sleep(1)
    world.store.fail_writers(StorageError("broken"))
    world.store.is_holding = False
    await asyncio.sleep(2)
    assert cursor.cursor_ledger_id not in (first, -1)
    assert (await after_a_crash(world)).mark_delete_position == Position(3, 1)


async def test_what_cannot_be_written_anywhere_is_tried_again():
    world = World()
    _, cursor = await opened(world)
    world.store.create_error = StorageError("no")
    put = world.metadata.put

    async def failing_put(path, value, **options):
        raise MetadataError("no")

    world.metadata.put = failing_put
    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(3)
    assert cursor.state.is_dirty
    world.metadata.put = put
    world.store.create_error = None
    await asyncio.sleep(2)
    assert not cursor.state.is_dirty
    assert (await after_a_crash(world)).mark_delete_position == Position(3, 0)


async def test_another_owner_of_the_record_fences():
    world = World()
    ledger, cursor = await opened(world)
    found = await world.metadata.get(cursor_path(NAME, "sub"))
    await world.metadata.put(cursor_path(NAME, "sub"), found.value)
    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(1)
    assert ledger.is_fenced
    assert len(ledger.listener.fenced) == 1


async def test_limits_are_counted_and_never_silent(caplog):
    world = World()
    _, cursor = await opened(world, max_unacked_ranges_to_persist=2)
    cursor.acknowledge([Position(3, each) for each in (1, 3, 5, 7)])
    await asyncio.sleep(1)
    assert cursor.stats().ranges_over_limit_count == 2
    assert cursor.stats().ranges_not_persisted_count == 0
    assert "exceed the limits" in caplog.text
    again = await after_a_crash(world)
    assert [again.is_acknowledged(Position(3, each)) for each in (1, 3, 5, 7)] == [True] * 4


async def test_a_reset_is_durable_when_it_returns():
    world = World()
    _, cursor = await opened(world)
    cursor.acknowledge_cumulative(Position(3, 7))
    await asyncio.sleep(1)
    await cursor.reset(Position(3, 2))
    again = await after_a_crash(world)
    assert again.mark_delete_position == Position(3, 1)
    assert texts(await again.read(1, 1)) == ["m2"]


async def test_a_reset_that_cannot_be_written_changes_nothing():
    world = World()
    _, cursor = await opened(world)
    cursor.acknowledge_cumulative(Position(3, 7))
    world.store.create_error = StorageError("no")

    async def failing_put(path, value, **options):
        raise MetadataError("no")

    world.metadata.put = failing_put
    with pytest.raises(MetadataError):
        await cursor.reset(EARLIEST)
    assert cursor.mark_delete_position == Position(3, 7)


async def test_during_a_reset_others_are_busy():
    world = World()
    _, cursor = await opened(world)
    world.store.creations_may_proceed = asyncio.Event()
    first = asyncio.ensure_future(cursor.reset(Position(3, 2)))  # noqa: TID251  (a test's own)
    await settle()
    with pytest.raises(CursorBusyError):
        await cursor.reset(Position(3, 3))
    with pytest.raises(CursorBusyError):
        cursor.acknowledge_cumulative(Position(3, 9))
    cursor.acknowledge([Position(3, 9)])
    world.store.creations_may_proceed.set()
    await first
    assert cursor.mark_delete_position == Position(3, 1)
    assert cursor.backlog_count() == 8


async def test_acknowledgements_while_a_ledger_is_made_are_written_after_it():
    world = World()
    _, cursor = await opened(world)
    world.store.creations_may_proceed = asyncio.Event()
    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(0.5)
    cursor.acknowledge([Position(3, 1)])
    await asyncio.sleep(5)
    assert cursor.persistent_mark_delete_position == Position(3, -1)
    world.store.creations_may_proceed.set()
    await asyncio.sleep(1)
    assert cursor.persistent_mark_delete_position == Position(3, 1)


async def test_a_state_that_outgrows_one_entry_while_a_ledger_is_made_is_written_afterwards():
    world = World()
    _, cursor = await opened(world, max_ranges_in_cursor_entry=1)
    world.store.creations_may_proceed = asyncio.Event()
    cursor.acknowledge([Position(3, 2)])
    flushing = asyncio.ensure_future(cursor.flush())  # noqa: TID251  (a test's own task)
    await asyncio.sleep(0.01)
    cursor.acknowledge([Position(3, 4), Position(3, 6)])
    world.store.creations_may_proceed.set()
    await flushing
    await cursor.flush()
    again = await after_a_crash(world)
    assert [again.is_acknowledged(Position(3, each)) for each in (2, 3, 4, 5, 6)] == [
        True,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("takes_ledgers", [True, False])
async def test_a_write_under_way_is_answered_when_another_ledger_or_the_record_overtakes_it(
    monkeypatch, takes_ledgers
):
    service = HostileLedgers(random.Random(2))
    world = World(store=service.connect("broker"))
    ledger = await world.open()
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    positions = [await ledger.append_and_wait(b"m") for _ in range(5)]
    cursor.acknowledge(positions[:1])
    await cursor.flush()
    service.faults = LedgerFaults(silent_share=1.0)
    cursor.acknowledge(positions[1:2])
    await asyncio.sleep(1.1)
    assert cursor.state.is_write_in_flight

    def refuse(data):
        raise StoreBusyError("busy")

    monkeypatch.setattr(cursor._persister.store._writer, "append", refuse)
    service.faults = LedgerFaults(no_room_share=0.0 if takes_ledgers else 1.0)
    await cursor.flush()
    service.faults = LedgerFaults()

    assert not cursor.state.is_write_in_flight
    cursor.acknowledge(positions[2:3])
    await asyncio.sleep(1.1)
    assert cursor.persistent_mark_delete_position == positions[2]


async def test_cursor_properties_are_stored_and_internal_ones_protected():
    world = World()
    _, cursor = await opened(world)
    await cursor.set_internal_property("bucket", "1")
    await cursor.set_cursor_properties({"a": "b"})
    with pytest.raises(ValueError, match="internal"):
        await cursor.set_cursor_properties({"#pulsar.internal.x": "y"})
    assert cursor.cursor_properties == {"a": "b", "#pulsar.internal.bucket": "1"}
    again = await after_a_crash(world)
    assert again.cursor_properties == cursor.cursor_properties
    await again.set_internal_property("bucket", None)
    assert again.cursor_properties == {"a": "b"}


async def test_numbers_are_stored_with_the_position():
    world = World()
    _, cursor = await opened(world)
    cursor.acknowledge_cumulative(Position(3, 1), properties={"seq.p": 17})
    await asyncio.sleep(1)
    again = await after_a_crash(world)
    assert again.properties == {"seq.p": 17}
    again.set_properties({"seq.p": 18})
    await again.flush()
    assert (await after_a_crash(world)).properties == {"seq.p": 18}


async def test_flushing_writes_at_once():
    world = World()
    _, cursor = await opened(world)
    cursor.acknowledge([Position(3, 0)])
    await cursor.flush()
    await cursor.flush()
    assert (await after_a_crash(world)).mark_delete_position == Position(3, 0)


async def test_a_fenced_owner_cannot_change_a_cursor():
    world = World()
    _, cursor = await opened(world)
    other = await after_a_crash(world)
    other.acknowledge([Position(3, 0)])
    await asyncio.sleep(1)
    with pytest.raises(ManagedLedgerFencedError):
        await cursor.set_cursor_properties({"a": "b"})


async def test_deleting_removes_record_and_ledger():
    world = World()
    ledger, cursor = await opened(world)
    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(1)
    await ledger.delete_cursor("sub")
    assert await world.metadata.get(cursor_path(NAME, "sub")) is None
    assert sorted(world.store.ledgers) == [3]
    new = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    assert texts(await new.read(*MANY)) == [f"m{each}" for each in range(10)]


async def test_a_record_that_is_too_small_does_not_replace_a_cursor_ledger():
    options = {"max_unacked_ranges_to_persist_in_metadata": 2, "cursor_max_entries_per_ledger": 1}
    world = World()
    _, cursor = await opened(world, **options)
    for entry_id in (1, 3, 5):
        cursor.acknowledge([Position(3, entry_id)])
    await cursor.flush()
    cursor.acknowledge([Position(3, 7)])
    world.store.create_error = StorageError("no")
    with pytest.raises(StorageError):
        await cursor.flush()
    found = await after_a_crash(world, **options)
    assert all(found.is_acknowledged(Position(3, entry_id)) for entry_id in (1, 3, 5))


async def test_a_cursor_is_written_as_often_as_the_settings_say_now():
    world = World()
    ledger, cursor = await opened(world, cursor_persist_interval_seconds=3600.0)

    def set_interval(seconds):
        ledger.set_config(replace(ledger.config, cursor_persist_interval_seconds=seconds))

    cursor.acknowledge([Position(3, 0)])
    await asyncio.sleep(3600)
    cursor.acknowledge([Position(3, 1)])
    set_interval(2.0)
    await asyncio.sleep(1)
    assert cursor.persistent_mark_delete_position == Position(3, 1)
    cursor.acknowledge([Position(3, 2)])
    set_interval(30.0)
    await asyncio.sleep(20)
    assert cursor.persistent_mark_delete_position == Position(3, 1)
    await asyncio.sleep(11)
    assert cursor.persistent_mark_delete_position == Position(3, 2)


def many_openings(ledger):
    """As if so many managed ledgers were being opened that new cursor ledgers wait."""
    many = ExitStack()
    for _ in range(MANY_OPENINGS):
        many.enter_context(ledger.flusher.opening())
    return many


@pytest.mark.parametrize("ends", ["openings", "time"])
async def test_a_first_cursor_ledger_waits_for_many_openings_and_its_receipt_for_it(ends):
    world = World()
    ledger, cursor = await opened(world)
    durable = []
    with many_openings(ledger) as many:
        cursor.acknowledge([Position(3, 0)])
        cursor.when_durable(lambda numbers, error: durable.append((numbers, error)), 7)
        await asyncio.sleep(MAX_WAIT_SECONDS - 1)
        assert not durable
        assert cursor.cursor_ledger_id == -1
        if ends == "openings":
            many.close()
        await asyncio.sleep(1.1)
        assert durable == [([7], None)]
        cursor.acknowledge([Position(3, 1)])
        cursor.when_durable(lambda numbers, error: durable.append((numbers, error)), 8)
        await asyncio.sleep(0.1)
        assert len(durable) == 2, "what goes to a cursor ledger that is there waits for nothing"
    assert (await after_a_crash(world)).mark_delete_position == Position(3, 1)


async def test_what_waits_for_many_openings_is_written_by_a_close():
    world = World()
    ledger, cursor = await opened(world)
    durable = []
    with many_openings(ledger):
        cursor.acknowledge([Position(3, 0)])
        cursor.when_durable(lambda numbers, error: durable.append((numbers, error)), 7)
        await asyncio.sleep(1)
        await ledger.close()
        assert durable == [([7], None)]
    await asyncio.sleep(MAX_WAIT_SECONDS)
    assert (await record_of(world)).snapshot.mark_delete_position == Position(3, 0)
