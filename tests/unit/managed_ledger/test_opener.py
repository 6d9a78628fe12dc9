"""ManagedLedgerOpener: one object a name, whatever happens at once."""

import asyncio
import random

import pytest

from pulsar_py.common.errors import (
    CorruptDataError,
    LedgerNotFoundError,
    ManagedLedgerClosedError,
    ManagedLedgerFencedError,
    MetadataError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    StorageError,
)
from pulsar_py.managed_ledger import opener as opener_module
from pulsar_py.managed_ledger.log.ledger_format import (
    LedgerList,
    cursor_path,
    decode_ledger_list,
    encode_ledger_list,
    ledger_path,
)
from pulsar_py.managed_ledger.log.ledger_list_store import LedgerListStore
from pulsar_py.managed_ledger.managed_ledger import InitialPosition, ManagedLedger
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.hostile_ledgers import HostileLedgers
from pulsar_py.testing.hostile_metadata import HostileMetadata
from pulsar_py.testing.hostile_service import HostileSettings
from tests.at_once import AtOnce
from tests.managed_ledger_parts import NAME, World, append_all, rolling, settle


async def test_two_opens_give_the_same_object():
    opener = World().opener()
    first, second = await asyncio.gather(*(opener.open(NAME, rolling()) for _ in range(2)))
    assert first is second
    assert opener.ledgers == [first]
    assert opener._locks == {}


async def test_a_missing_one_is_created_only_if_asked():
    opener = World().opener()
    with pytest.raises(MetadataNotFoundError):
        await opener.open(NAME, rolling(), create_if_missing=False)
    assert not await opener.exists(NAME)
    await opener.open(NAME, rolling())
    assert await opener.exists(NAME)


async def test_opening_while_closing_waits_for_the_end():
    world = World()
    opener = world.opener()
    ledger = await opener.open(NAME, rolling())
    await append_all(ledger, 1)
    closing = asyncio.ensure_future(ledger.close())  # noqa: TID251  (a test's own task)
    await asyncio.sleep(0)
    again = await opener.open(NAME, rolling())
    assert closing.done()
    assert again is not ledger
    assert again.entries_count == 1


async def test_a_clean_open_takes_the_list_over_as_it_is():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 1)
    await ledger.close()
    before = await world.metadata.get(ledger_path(NAME))
    await world.open()
    after = await world.metadata.get(ledger_path(NAME))
    assert decode_ledger_list(after.value).ledgers == decode_ledger_list(before.value).ledgers
    assert after.version == before.version + 1


async def test_who_opened_it_before_can_change_nothing_even_without_a_ledger_to_fence():
    world = World()
    ledger = await world.open(max_entries=2)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, 3)
    await ledger.close()
    former = await world.open(retention_seconds=0)
    newer = await world.open()
    await newer.open_cursor("other", InitialPosition.EARLIEST)
    cursor = former.cursors["sub"]
    cursor.acknowledge_cumulative(former.last_confirmed_entry)

    with pytest.raises(ManagedLedgerFencedError):
        await cursor.flush()

    assert former.is_fenced
    newer.cursors["sub"].set_properties({"a": 1})
    await newer.cursors["sub"].flush()
    assert newer.cursors["other"].backlog_count() == 3
    assert not newer.is_fenced


async def test_a_list_taken_over_as_it_is_is_not_taken_for_the_former_owners_write(monkeypatch):
    world = World()
    ledger = await world.open()
    await append_all(ledger, 1)
    await ledger.close()
    former = await world.open(opener=world.opener())

    async def lost(*arguments, **options):
        raise MetadataOutcomeUnknownError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "put", lost)
        with pytest.raises(MetadataOutcomeUnknownError):
            await former.ledger_list.write(former.ledgers.stored())
    other = ManagedLedgerOpener(world.store, world.metadata, world.clock, chance=random.Random(2))
    newer = await world.open(opener=other)

    with pytest.raises(ManagedLedgerFencedError):
        await former.ledger_list.write(former.ledgers.stored())
    await newer.ledger_list.write(newer.ledgers.stored())


async def test_a_topic_made_anew_is_not_written_over_by_an_owner_of_the_deleted_one():
    world = World()
    former = await world.open()
    await append_all(former, 1)
    newer = await world.open(opener=world.opener())
    await newer.delete()
    again = await world.open(opener=world.opener())
    await again.append_and_wait(b"1")
    stored = await world.metadata.get(ledger_path(NAME))
    former.ledger_list._record.version = stored.version  # as happens where both wrote as often

    with pytest.raises(ManagedLedgerFencedError):
        await former.ledger_list.write(former.ledgers.stored())

    assert await world.metadata.get(ledger_path(NAME)) == stored


async def test_a_topic_is_opened_from_what_was_written_last_however_late_reads_are():
    settings = HostileSettings(lag_seconds=60.0)
    service = HostileMetadata(random.Random(3), VirtualClock(), settings)
    store = HostileLedgers(random.Random(3)).connect("both")
    one, other = (
        ManagedLedgerOpener(
            store, service.connect(name, VirtualClock()), VirtualClock(), chance=random.Random(1)
        )
        for name in ("one", "other")
    )
    ledger = await one.open(NAME, rolling())
    await ledger.append_and_wait(b"1")
    await ledger.open_cursor("sub")
    await ledger.close()

    again = await other.open(NAME, rolling(), create_if_missing=False)

    assert again.entries_count == 1
    assert list(again.cursors) == ["sub"]


async def listed(world):
    """The ledgers in the stored list: entries, and whether that is all."""
    stored = decode_ledger_list((await world.metadata.get(ledger_path(NAME))).value)
    return [(each.entries_count, each.is_closed) for each in stored.ledgers]


@pytest.mark.parametrize("appends_count", [0, 1])
async def test_after_a_crash_the_old_owner_is_fenced_and_the_end_written_with_what_follows(
    appends_count,
):
    world = World()
    ledger = await world.open()
    await append_all(ledger, 3)
    again = await world.open()
    assert world.store.ledgers[3].is_fenced
    assert again.entries_count == 3
    assert await listed(world) == [(0, False)]
    await append_all(again, appends_count)
    await again.close()
    assert await listed(world) == [(3, True), (1, True)][: 1 + appends_count]
    opened = await world.open()
    assert opened.entries_count == 3 + appends_count


async def test_cursors_are_read_after_the_former_owner_has_lost_the_list(monkeypatch):
    world = World()
    ledger = await world.open()
    await append_all(ledger, 1)
    await ledger.open_cursor("c", InitialPosition.EARLIEST)
    order = []
    monkeypatch.setattr(LedgerListStore, "write", noting(order, "list", LedgerListStore.write))
    monkeypatch.setattr(
        ManagedLedger, "read_cursor", noting(order, "cursor", ManagedLedger.read_cursor)
    )
    await world.open()
    assert order == ["list", "list done", "cursor", "cursor done"]


def noting(order, what, original):
    async def noted(*arguments):
        order.append(what)
        result = await original(*arguments)
        order.append(f"{what} done")
        return result

    return noted


async def test_cursors_are_read_while_the_last_ledger_is_recovered(monkeypatch):
    world = World()
    ledger = await world.open()
    await append_all(ledger, 1)
    await ledger.open_cursor("c", InitialPosition.EARLIEST)
    is_read = asyncio.Event()
    recover, read = world.store.recover, ManagedLedger.read_cursor

    async def recover_late(ledger_id, **options):
        await is_read.wait()
        return await recover(ledger_id, **options)

    async def note_read(self, name):
        try:
            return await read(self, name)
        finally:
            is_read.set()

    monkeypatch.setattr(world.store, "recover", recover_late)
    monkeypatch.setattr(ManagedLedger, "read_cursor", note_read)
    again = await world.open()
    assert again.cursors["c"].mark_delete_position == again.first_position._replace(entry_id=-1)


async def test_a_failed_open_can_be_tried_again():
    world = World()
    world.store.create_error = StorageError("no")
    opener = world.opener()
    with pytest.raises(StorageError):
        await opener.open(NAME, rolling())
    world.store.create_error = None
    await opener.open(NAME, rolling())


async def test_cursors_of_a_deletion_cut_short_do_not_come_back():
    world = World()
    await world.metadata.put(cursor_path(NAME, "old"), b"")
    ledger = await world.open()
    assert dict(ledger.cursors) == {}


async def test_a_list_without_ledgers_gets_one():
    world = World()
    await world.metadata.put(ledger_path(NAME), encode_ledger_list(LedgerList()))
    ledger = await world.open()
    assert await append_all(ledger, 1)


async def test_a_lost_last_ledger_fails_the_open_or_is_skipped():
    world = World()
    ledger = await world.open(max_entries=2)
    await append_all(ledger, 3)
    del world.store.ledgers[4]
    with pytest.raises(LedgerNotFoundError):
        await world.open(max_entries=2)
    again = await world.open(max_entries=2, skips_non_recoverable_data=True)
    assert again.entries_count == 2


async def test_names_are_listed_by_namespace():
    world = World()
    opener = world.opener()
    for name in ("t/n/persistent/b", "t/n/persistent/a", "t/m/persistent/c"):
        await opener.open(name, rolling())
    await opener.ledgers[0].open_cursor("sub")
    assert await opener.list_names("t/n/persistent") == ["t/n/persistent/a", "t/n/persistent/b"]
    assert await opener.list_names("x/y/persistent") == []


async def test_all_named_ledgers_are_found():
    world = World()
    opener = world.opener()
    ledger = await world.open(max_entries=2, opener=opener)
    cursor = await ledger.open_cursor("sub")
    await append_all(ledger, 3)
    cursor.set_properties({"a": 1})
    await cursor.flush()
    assert await opener.named_ledgers() == set(world.store.ledgers) == {3, 4, 5}


async def test_what_is_being_deleted_names_no_ledgers_and_is_not_listed():
    world = World()
    opener = world.opener()
    ledger = await world.open(opener=opener)
    await append_all(ledger, 1)
    cursor = await ledger.open_cursor("sub")
    cursor.set_properties({"a": 1})
    await cursor.flush()
    await opener.close()
    path = ledger_path(NAME)
    found = await world.metadata.get(path)
    stored = decode_ledger_list(found.value)
    stored.is_being_deleted = True
    await world.metadata.put(path, encode_ledger_list(stored))
    opener = world.opener()
    assert await opener.named_ledgers() == set()
    prefix = NAME.rpartition("/")[0]
    assert await opener.list_names(prefix) == []
    await world.open(opener=opener)
    assert await opener.list_names(prefix) == [NAME]


async def test_deleting_works_open_or_not():
    world = World()
    opener = world.opener()
    for _ in range(2):
        ledger = await world.open(opener=opener)
        await append_all(ledger, 1)
        await opener.delete(NAME, rolling())
        assert world.store.ledgers == {}
    ledger = await world.open(opener=opener)
    await ledger.close()
    await opener.delete(NAME, rolling())
    assert world.store.ledgers == {}
    with pytest.raises(MetadataNotFoundError):
        await opener.delete(NAME, rolling())


async def test_closing_closes_all_and_refuses_more():
    world = World()
    opener = world.opener()
    ledgers = [await opener.open(f"t/n/persistent/{each}", rolling()) for each in range(5)]
    ledgers[2].fence(StorageError("seen another"))
    await opener.close()
    await settle()
    assert all(ledger.is_closed for ledger in ledgers)
    assert opener.ledgers == []
    with pytest.raises(ManagedLedgerClosedError):
        await opener.open(NAME, rolling())


async def test_a_cursor_that_cant_be_read_is_an_error_of_ours():
    world = World()
    await world.open()
    await world.metadata.put(cursor_path(NAME, "sub"), b"\xff")
    with pytest.raises(CorruptDataError):
        await world.open()


async def test_a_deletion_cut_short_is_finished_by_who_opens_it_next(monkeypatch):
    world = World()
    ledger = await world.open()
    await append_all(ledger, 3)
    await ledger.open_cursor("sub")

    async def stop(*_, **__):
        raise MetadataError("connection lost")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "delete", stop)
        with pytest.raises(MetadataError):
            await ledger.delete()
    opener = world.opener()
    assert not await opener.exists(NAME)
    with pytest.raises(MetadataNotFoundError):
        await opener.open(NAME, rolling(), create_if_missing=False)
    assert await world.metadata.get(ledger_path(NAME)) is None
    fresh = await world.open(opener=opener)
    assert not fresh.cursors
    assert not fresh.entries_count


class Late(MemoryMetadataStore):
    """Makes changes whose answers got lost late: at the next `sync` at the latest."""

    def __init__(self, clock):
        super().__init__(clock)
        self.is_losing = False
        self.is_cut_off = False
        self.late = []

    async def put(self, path, value, **how):
        if self.is_losing:
            self.is_cut_off = True
            self.late.append((path, value, how))
            raise MetadataOutcomeUnknownError("no answer")
        return await super().put(path, value, **how)

    async def sync(self, path):
        if self.is_cut_off:
            raise MetadataUnavailableError("not connected")
        late, self.late = self.late, []
        for each, value, how in late:
            await super().put(each, value, **how)
        await super().sync(path)


async def test_a_write_of_unknown_outcome_is_decided_before_it_is_opened_again():
    world = World()
    world.metadata = Late(world.clock)
    opener = world.opener()
    ledger = await world.open(opener=opener)
    cursor = await ledger.open_cursor("c")
    await append_all(ledger, 3)
    cursor.acknowledge([ledger.last_confirmed_entry])
    world.metadata.is_losing = True
    with pytest.raises(MetadataOutcomeUnknownError):
        await ledger.close()
    world.metadata.is_losing = world.metadata.is_cut_off = False
    again = await world.open(opener=opener)
    await world.metadata.sync("/")
    again.cursors["c"].acknowledge([again.first_position])
    await again.close()
    assert not again.is_fenced
    assert not again.listener.fenced


async def test_cursors_are_recovered_beside_each_other_a_number_at_a_time(monkeypatch):
    world = World()
    ledger = await world.opener().open(NAME, rolling())
    for number in range(8):
        await ledger.open_cursor(f"sub-{number}", InitialPosition.EARLIEST)
    await ledger.close()
    monkeypatch.setattr(opener_module, "RECOVERIES_AT_ONCE", 3)
    recoveries = AtOnce(monkeypatch)
    recoveries.watch(ManagedLedger, "read_cursor")
    again = await world.opener().open(NAME, rolling())
    assert len(again.cursors) == 8
    assert recoveries.most == 3


async def test_ledgers_are_checked_and_names_read_beside_each_other_a_number_at_a_time(monkeypatch):
    opener = World().opener()
    for number in range(8):
        await opener.open(f"{NAME}-{number}", rolling())
    monkeypatch.setattr(opener_module, "CHECKS_AT_ONCE", 3)
    monkeypatch.setattr(opener_module, "NAMES_AT_ONCE", 4)
    checks, reads = AtOnce(monkeypatch), AtOnce(monkeypatch)
    checks.watch(opener_module, "_check")
    reads.watch(opener, "_named_by_list")
    await opener.check_ledgers()
    assert len(await opener.named_ledgers()) == 8
    assert (checks.most, reads.most) == (3, 4)
