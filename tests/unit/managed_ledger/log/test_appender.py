"""Appender: groups, rollover, failures and fencing, seen through a ManagedLedger."""

import asyncio

import pytest

from pulsar_py.common.errors import (
    DiskFullError,
    EntryTooBigError,
    LedgerFencedError,
    ManagedLedgerClosedError,
    ManagedLedgerFencedError,
    ManagedLedgerTerminatedError,
    MetadataUnavailableError,
    StorageError,
    StoreBusyError,
)
from pulsar_py.managed_ledger.log.ledger_format import decode_ledger_list, ledger_path
from tests.managed_ledger_parts import NAME, World, append_all, rolling, settle


def named(ledger, stored):
    return [record.ledger_id for record in decode_ledger_list(stored.value).ledgers]


async def test_a_group_is_told_once_and_in_order():
    world = World()
    ledger = await world.open()
    for number in range(5):
        ledger.append(b"x", number)
    assert ledger.listener.groups == []
    await settle()
    assert ledger.listener.groups == [(3, 0, [0, 1, 2, 3, 4])]
    assert (ledger.entries_count, ledger.size_bytes, ledger.entries_added_count) == (5, 5, 5)


async def test_a_full_ledger_rolls_and_no_ledger_has_too_many():
    world = World()
    ledger = await world.open(max_entries=4)
    for number in range(11):
        ledger.append(b"x", number)
    await settle()
    assert ledger.listener.order == list(range(11))
    assert [stats.entries_count for stats in ledger.ledgers_info()] == [4, 4, 3]
    assert list(ledger.listener.positions.values())[4] == (4, 0)


async def test_appends_wait_in_order_while_a_ledger_is_created():
    world = World()
    ledger = await world.open(max_entries=2)
    world.store.creations_may_proceed = asyncio.Event()
    for number in range(5):
        ledger.append(b"x", number)
    await settle()
    assert ledger.listener.order == [0, 1]
    assert ledger.pending_appends_count == 3
    world.store.creations_may_proceed.set()
    await settle()
    assert ledger.listener.order == [0, 1, 2, 3, 4]


async def test_the_new_ledger_is_named_before_it_takes_entries():
    world = World()
    ledger = await world.open(max_entries=1)
    seen = []

    class Watcher:
        def on_appended(self, ledger_id, first_entry_id, contexts):
            seen.append(ledger_id)

    ledger.listener = Watcher()
    puts = []
    put = world.metadata.put

    async def recording_put(path, value, **options):
        version = await put(path, value, **options)
        puts.append([record.ledger_id for record in decode_ledger_list(value).ledgers])
        return version

    world.metadata.put = recording_put
    ledger.append(b"x", 0)
    ledger.append(b"x", 1)
    await settle()
    assert seen == [3, 4]
    assert puts[0] == [3, 4]


async def test_a_young_ledger_does_not_roll_before_the_minimum():
    world = World()
    ledger = await world.open(max_entries=2, minimum_rollover_seconds=60)
    for number in range(4):
        ledger.append(b"x", number)
    await settle()
    assert len(ledger.ledgers_info()) == 1
    await asyncio.sleep(61)
    ledger.append(b"x", 4)
    await settle()
    ledger.append(b"x", 5)
    await settle()
    assert [stats.entries_count for stats in ledger.ledgers_info()] == [5, 1]


async def test_after_a_failure_queued_entries_go_to_a_new_ledger_once():
    world = World()
    ledger = await world.open()
    ledger.append(b"a", 0)
    await settle()
    world.store.is_holding = True
    ledger.append(b"b", 1)
    ledger.append(b"c", 2)
    world.store.fail_writers(StorageError("broken"), stored_count=1)
    ledger.append(b"d", 3)
    world.store.is_holding = False
    await settle()
    assert ledger.listener.order == [0, 1, 2, 3]
    assert ledger.listener.positions == {0: (3, 0), 1: (4, 0), 2: (4, 1), 3: (4, 2)}
    assert ledger.listener.failed == []
    assert world.store.ledgers[3].entries == [b"a"]


async def test_when_closing_fails_too_what_was_stored_counts_and_is_not_stored_again():
    world = World()
    ledger = await world.open()
    world.store.is_holding = True
    for number, data in enumerate((b"a", b"b", b"c")):
        ledger.append(data, number)
    world.store.close_error = StorageError("broken")
    world.store.fail_writers(StorageError("broken"), stored_count=2)
    world.store.is_holding = False
    await settle()
    assert ledger.listener.positions == {0: (3, 0), 1: (3, 1), 2: (4, 0)}
    assert [ledger_.entries for ledger_ in world.store.ledgers.values()] == [[b"a", b"b"], [b"c"]]


async def test_if_no_ledger_can_be_created_what_waits_fails_and_so_do_later_appends_for_a_while():
    world = World()
    ledger = await world.open()
    world.store.create_error = StorageError("no")
    world.store.is_holding = True
    ledger.append(b"a", 0)
    world.store.fail_writers(StorageError("broken"))
    await settle()
    assert ledger.listener.failed == [0]
    world.store.create_error = None
    world.store.is_holding = False
    ledger.append(b"b", 1)
    assert ledger.listener.failed == [0], "the listener is never called from inside append"
    await settle()
    assert ledger.listener.failed == [0, 1]
    await asyncio.sleep(10)
    ledger.append(b"c", 2)
    await settle()
    assert ledger.listener.positions == {2: (4, 0)}


async def test_a_creation_that_hangs_fails_after_its_deadline():
    world = World()
    ledger = await world.open(max_entries=1, ledger_creation_timeout_seconds=5)
    world.store.creations_may_proceed = asyncio.Event()
    ledger.append(b"a", 0)
    ledger.append(b"b", 1)
    await asyncio.sleep(6)
    assert ledger.listener.failed == [1]


async def test_a_run_is_taken_at_once_and_what_needs_care_is_left_to_append():
    world = World()
    ledger = await world.open(max_entries=6)
    runs = [(0, 1, 2), (3, 4), (5, 6, 7)]
    for numbers in runs:
        taken = ledger.append_run([b"x"] * len(numbers), numbers)
        assert taken == (0 if numbers == runs[-1] else len(numbers)), "the last one fills it"
        for number in numbers[taken:]:
            ledger.append(b"x", number)
    await settle()
    assert ledger.listener.order == list(range(8))
    assert [stats.entries_count for stats in ledger.ledgers_info()] == [6, 2]


async def test_a_run_never_overtakes_a_refused_entry():
    world = World()
    ledger = await world.open()
    world.store.append_error = StoreBusyError("64 MB wait already")
    assert ledger.append_run([b"a", b"b"], [0, 1]) == 0
    ledger.append(b"a", 0)
    world.store.append_error = None
    assert ledger.append_run([b"b"], [1]) == 0
    await settle()
    assert ledger.listener.failed == [0]
    assert ledger.append_run([b"a", b"b"], [2, 3]) == 2
    await settle()
    assert ledger.listener.positions == {2: (3, 0), 3: (3, 1)}


async def test_a_full_disk_fails_appends_quickly_and_recovers():
    world = World()
    ledger = await world.open()
    world.store.append_error = DiskFullError("full")
    ledger.append(b"a", 0)
    await settle()
    assert ledger.listener.failed == [0]
    world.store.append_error = None
    ledger.append(b"b", 1)
    await settle()
    assert ledger.listener.positions == {1: (3, 0)}


async def test_a_disk_that_fills_up_under_way_recovers_after_a_second():
    world = World()
    ledger = await world.open()
    world.store.is_holding = True
    world.store.create_error = DiskFullError("full")
    ledger.append(b"a", 0)
    world.store.fail_writers(DiskFullError("full"))
    await settle()
    assert ledger.listener.failed == [0]
    world.store.create_error = None
    world.store.is_holding = False
    await asyncio.sleep(1)
    ledger.append(b"b", 1)
    await settle()
    assert ledger.listener.positions == {1: (4, 0)}


async def test_what_waits_for_a_ledger_is_bounded():
    world = World()
    ledger = await world.open(max_entries=1, max_queued_bytes=10)
    world.store.creations_may_proceed = asyncio.Event()
    ledger.append(b"x", 0)
    for number in range(1, 4):
        ledger.append(b"12345", number)
    await settle()
    assert ledger.listener.failed == [3]


async def test_fenced_by_another_owner_everything_pending_fails_and_it_is_told_once():
    world = World()
    ledger = await world.open()
    ledger.append(b"a", 0)
    await settle()
    other = await world.open()
    ledger.append(b"b", 1)
    await settle()
    assert ledger.listener.failed == [1]
    assert len(ledger.listener.fenced) == 1
    assert ledger.is_fenced
    with pytest.raises(ManagedLedgerFencedError):
        ledger.append(b"c", 2)
    other.append(b"d", 3)
    await settle()
    assert other.listener.positions == {3: (4, 0)}


async def test_fencing_news_fail_what_is_in_flight():
    world = World()
    ledger = await world.open()
    world.store.is_holding = True
    ledger.append(b"a", 0)
    ledger.append(b"b", 1)
    await world.open()
    ledger._appender.on_failed(3, LedgerFencedError("fenced"))
    await settle()
    assert ledger.listener.failed == [0, 1]
    assert isinstance(ledger.listener.errors[0], ManagedLedgerFencedError)
    assert len(ledger.listener.fenced) == 1


async def test_a_repairer_that_fences_costs_a_delay_only():
    world = World()
    ledger = await world.open()
    world.store.is_holding = True
    ledger.append(b"a", 0)
    ledger.append(b"b", 1)
    await world.store.recover(3)
    world.store.is_holding = False
    ledger.append(b"c", 2)
    await settle()
    ledger.append(b"d", 3)
    await settle()
    assert not ledger.is_fenced
    assert not ledger.listener.failed
    assert ledger.listener.order == [0, 1, 2, 3]
    assert ledger.listener.positions == {0: (3, 0), 1: (3, 1), 2: (4, 0), 3: (4, 1)}
    assert ledger.ledgers.ledgers[3].entries_count == 2


async def test_a_fence_ends_it_where_somebody_else_owns_the_topic():
    world = World()
    owned = True

    async def owns(name):
        assert name == NAME
        return owned

    ledger = await world.open(opener=world.opener(owns=owns))
    await world.store.recover(3)
    owned = False
    ledger.append(b"a", 0)
    await settle()
    assert ledger.listener.failed == [0]
    assert ledger.is_fenced
    assert sorted(world.store.ledgers) == [3], "no ledger is made, nothing is written"


async def test_a_fence_waits_where_ownership_is_not_known():
    world = World()
    doubts = [MetadataUnavailableError("not connected")]

    async def owns(_):
        if doubts:
            raise doubts[0]
        return True

    ledger = await world.open(opener=world.opener(owns=owns))
    await world.store.recover(3)
    ledger.append(b"a", 0)
    await settle()
    assert ledger.listener.failed == [0]
    assert not ledger.is_fenced
    doubts.clear()
    await asyncio.sleep(ledger.config.unavailable_backoff_seconds)
    ledger.append(b"b", 1)
    await settle()
    assert ledger.listener.positions == {1: (4, 0)}


async def test_a_store_that_is_busy_refuses_one_entry_and_the_ledger_goes_on():
    world = World()
    ledger = await world.open()
    world.store.append_error = StoreBusyError("64 MB wait already")
    ledger.append(b"a", 0)
    world.store.append_error = EntryTooBigError("6 MB, more than 5 MB")
    ledger.append(b"b", 1)
    world.store.append_error = None
    await settle()
    ledger.append(b"c", 2)
    await settle()
    assert sorted(ledger.listener.failed) == [0, 1]
    assert ledger.listener.positions == {2: (3, 0)}
    assert sorted(world.store.ledgers) == [3], "no rollover"


async def test_nothing_overtakes_a_refused_entry_before_its_refusal_is_told():
    world = World()
    ledger = await world.open()
    ledger.append(b"a", 0)
    world.store.append_error = StoreBusyError("64 MB wait already")
    ledger.append(b"b", 1)
    world.store.append_error = None
    ledger.append(b"c", 2)  # of the same write of a client's, perhaps
    await settle()
    assert ledger.listener.failed == [1, 2]
    ledger.append(b"b", 3)
    ledger.append(b"c", 4)
    await settle()
    assert ledger.listener.positions == {0: (3, 0), 3: (3, 1), 4: (3, 2)}


async def test_a_ledger_that_does_not_answer_is_given_up_and_recovered():
    world = World()
    ledger = await world.open()
    world.store.is_holding = True
    ledger.append(b"a", 0)
    began = world.clock.monotonic_seconds()
    await ledger.terminate()
    waited = world.clock.monotonic_seconds() - began
    assert 1 <= waited / world.store.limits.answer_timeout_seconds < 2
    assert ledger.listener.failed == [0]
    assert ledger.terminated_position == (3, -1)


async def test_a_lost_compare_and_set_fences():
    world = World()
    ledger = await world.open(max_entries=1)
    found = await world.metadata.get(ledger_path(NAME))
    await world.metadata.put(ledger_path(NAME), found.value)
    ledger.append(b"a", 0)
    ledger.append(b"b", 1)
    await settle()
    assert ledger.listener.order == [0]
    assert ledger.listener.failed == [1]
    assert len(ledger.listener.fenced) == 1
    assert sorted(world.store.ledgers) == [3], "the ledger that nobody names is deleted"


async def test_a_closed_or_terminated_one_takes_nothing():
    world = World()
    ledger = await world.open()
    await ledger.terminate()
    with pytest.raises(ManagedLedgerTerminatedError):
        ledger.append(b"a", 0)
    await ledger.close()
    with pytest.raises(ManagedLedgerClosedError):
        ledger.append(b"a", 0)


async def test_closing_waits_for_what_has_a_ledger_and_fails_what_has_none():
    world = World()
    ledger = await world.open(max_entries=2)
    world.store.is_holding = True
    for number in range(3):
        ledger.append(b"x", number)
    closing = asyncio.ensure_future(ledger.close())  # noqa: TID251  (a test's own task)
    await settle()
    assert ledger.listener.failed == [2]
    world.store.release()
    await closing
    assert ledger.listener.order == [0, 1]
    again = await world.open(max_entries=2)
    assert again.entries_count == 2


async def test_a_ledger_created_while_closing_is_closed_too():
    world = World()
    ledger = await world.open(max_entries=1)
    world.store.creations_may_proceed = asyncio.Event()
    ledger.append(b"a", 0)
    ledger.append(b"b", 1)
    await settle()
    closing = asyncio.ensure_future(ledger.close())  # noqa: TID251  (a test's own task)
    await settle()
    world.store.creations_may_proceed.set()
    await closing
    assert ledger.listener.failed == [1]
    assert all(each.is_closed for each in world.store.ledgers.values())
    again = await world.open(rolling())
    again.append(b"c", 2)
    await settle()
    assert again.listener.order == [2]


@pytest.mark.parametrize("end", ["close", "terminate"])
async def test_a_ledger_that_fails_while_its_end_waits_its_turn_is_ended_there(end):
    world = World()
    ledger = await world.open()
    world.store.is_holding = True
    ledger.append(b"a", 0)
    await ledger.change_lock.acquire()  # as another change has it
    ending = asyncio.ensure_future(getattr(ledger, end)())  # noqa: TID251  (a test's own task)
    await settle()
    ledger._appender.on_failed(3, LedgerFencedError("fenced"))
    ledger.change_lock.release()
    await ending
    assert world.store.ledgers[3].is_closed


async def test_its_own_recovery_of_a_ledger_is_not_taken_for_another_owner():
    world = World()
    ledger = await world.open()
    ledger.append(b"a", 0)
    await settle()
    recover = world.store.recover

    async def recover_and_tell(ledger_id, *, password=b""):
        world.store.fail_writers(LedgerFencedError("recovered"))
        return await recover(ledger_id, password=password)

    world.store.recover = recover_and_tell  # As the Bookie does.
    world.store.close_error = DiskFullError("full")
    await ledger.roll_ledger()
    world.store.close_error = None
    ledger.append(b"b", 1)
    await settle()
    assert not ledger.is_fenced
    assert ledger.listener.positions == {0: (3, 0), 1: (4, 0)}


@pytest.mark.parametrize("minimum_rollover_seconds", [0, 1])
async def test_a_full_ledger_grows_on_while_metadata_is_away(minimum_rollover_seconds):
    world = World()
    is_there = True
    ledger = await world.open(
        opener=world.opener(may_change=lambda: is_there),
        max_entries=4,
        minimum_rollover_seconds=minimum_rollover_seconds,
    )
    is_there = False
    await asyncio.sleep(2)
    for number in range(11):
        ledger.append(b"x", number)
        await settle()
    await ledger.roll_if_due()
    assert ledger.listener.order == list(range(11))
    assert [stats.entries_count for stats in ledger.ledgers_info()] == [11]
    is_there = True
    ledger.append(b"x", 11)
    await settle()
    ledger.append(b"x", 12)
    await settle()
    assert [stats.entries_count for stats in ledger.ledgers_info()] == [12, 1]


async def test_entries_that_waited_for_a_ledger_took_longer_than_the_ledger(virtual_clock):
    world = World(clock=virtual_clock)
    ledger = await world.open(max_entries=2)
    world.store.creations_may_proceed = asyncio.Event()
    for number in range(3):
        ledger.append(b"xyz", number)
    await virtual_clock.sleep(0.3)
    world.store.creations_may_proceed.set()
    await settle()
    window = ledger.roll_write_figures()
    assert window.sizes[-2:] == (3, 9)
    assert (window.latencies[0], window.latencies[8]) == (2, 1)
    assert window.latencies[-1] == 300_000
    assert window.ledger_latencies[0] == 3
    assert window.ledger_latencies[-1] == 0
    await append_all(ledger, 1)
    assert ledger.roll_write_figures().sizes[-2] == 1
