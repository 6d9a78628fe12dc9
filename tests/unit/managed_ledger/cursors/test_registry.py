"""CursorRegistry: making, finding, waiting and waking."""

import asyncio
import contextlib

import pytest

from pulsar_py.common.errors import (
    CursorNotFoundError,
    ManagedLedgerError,
    ManagedLedgerFencedError,
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
)
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.managed_ledger.cursors import registry
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.log.ledger_format import cursor_path
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.at_once import AtOnce
from tests.managed_ledger_parts import MANY, World, append_all, settle, texts


async def test_a_cursor_is_made_once_and_then_found():
    ledger = await World().open()
    first, second = await asyncio.gather(ledger.open_cursor("a"), ledger.open_cursor("a"))
    assert first is second
    assert dict(ledger.cursors) == {"a": first}


async def test_new_cursors_start_at_either_end():
    ledger = await World().open(max_entries=2)
    await append_all(ledger, 3)
    earliest = await ledger.open_cursor("e", InitialPosition.EARLIEST)
    latest = await ledger.open_cursor("l", InitialPosition.LATEST)
    assert (earliest.backlog_count(), latest.backlog_count()) == (3, 0)
    assert earliest.mark_delete_position == Position(3, -1)
    assert latest.mark_delete_position == Position(4, 0)


@pytest.mark.parametrize(
    ("start", "mark_delete"),
    [
        (InitialPosition.EARLIEST, "3:-1"),
        (InitialPosition.LATEST, "4:1"),
        (EARLIEST, "3:-1"),
        (LATEST, "4:1"),
        (Position(3, 1), "3:0"),
        (Position(3, -1), "3:-1"),
        (Position(2, 7), "3:-1"),
        (Position(3, 99), "4:-1"),
        (Position(4, 2), "4:1"),
        (Position(1003, 0), "4:1"),
    ],
)
async def test_non_durable_cursors_read_the_entry_they_start_at(start, mark_delete):
    ledger = await World().open(max_entries=3)
    await append_all(ledger, 5)
    cursor = ledger.new_non_durable_cursor("reader", start)
    assert str(cursor.mark_delete_position) == mark_delete
    assert not cursor.is_durable


async def test_a_start_past_the_end_becomes_the_initial_position():
    ledger = await World().open()
    await append_all(ledger, 2)
    cursor = ledger.new_non_durable_cursor(
        "reader", Position(99, 0), initial=InitialPosition.EARLIEST
    )
    assert texts(cursor.read_cached(*MANY)) == ["m0", "m1"]


async def test_a_name_is_either_durable_or_not():
    ledger = await World().open()
    reader = ledger.new_non_durable_cursor("x", InitialPosition.LATEST)
    with pytest.raises(ManagedLedgerError, match="not durable"):
        await ledger.open_cursor("x")
    with pytest.raises(ManagedLedgerError, match="exists already"):
        ledger.new_non_durable_cursor("x", InitialPosition.LATEST)
    await reader.close()
    assert (await ledger.open_cursor("x")).is_durable


async def test_deleting_an_unknown_cursor_is_an_error():
    ledger = await World().open()
    with pytest.raises(CursorNotFoundError):
        await ledger.delete_cursor("x")


async def test_a_cursor_whose_record_could_not_be_removed_goes_on(monkeypatch):
    world = World()
    ledger = await world.open()
    cursor = await ledger.open_cursor("a", InitialPosition.EARLIEST)
    positions = await append_all(ledger, 3)

    async def refuse(path, **options):
        raise MetadataError(f"{path}: refused")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "delete", refuse)
        with pytest.raises(MetadataError, match="refused"):
            await ledger.delete_cursor("a")
    assert await ledger.open_cursor("a") is cursor
    cursor.acknowledge([positions[0]])
    assert texts(await cursor.read(*MANY)) == ["m1", "m2"]
    await asyncio.sleep(1.1)
    assert cursor.persistent_mark_delete_position == positions[0]
    await ledger.delete_cursor("a")
    assert not ledger.is_fenced
    assert not ledger.cursors


@pytest.mark.parametrize("end", ["close", "delete"])
async def test_a_cursor_that_could_not_be_removed_ends_with_its_ledger(monkeypatch, end):
    world = World()
    ledger = await world.open()
    cursor = await ledger.open_cursor("a", InitialPosition.EARLIEST)
    cursor.acknowledge([(await append_all(ledger, 3))[1]])
    delete, refused = world.metadata.delete, asyncio.get_running_loop().create_future()

    async def refuse_later(path, **options):
        if path == cursor_path(ledger.name, "a"):
            await refused
            raise MetadataError(f"{path}: refused")
        await delete(path, **options)

    monkeypatch.setattr(world.metadata, "delete", refuse_later)
    removal = asyncio.ensure_future(ledger.delete_cursor("a"))  # noqa: TID251  (a test's own)
    await settle()
    ending = asyncio.ensure_future(getattr(ledger, end)())  # noqa: TID251  (a test's own)
    await settle()
    refused.set_result(None)
    with pytest.raises(MetadataError, match="refused"):
        await removal
    with contextlib.suppress(MetadataError):
        await ending
    failures = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    await asyncio.sleep(1.1)
    assert not failures


async def test_a_cursor_whose_making_got_no_answer_is_found_to_be_ours(monkeypatch):
    world = World()
    ledger = await world.open()
    put = world.metadata.put

    async def no_answer(path):
        raise MetadataUnavailableError(path)

    async def lost_answer(*arguments, **options):
        await put(*arguments, **options)
        patched.setattr(world.metadata, "get", no_answer)
        raise MetadataOutcomeUnknownError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "put", lost_answer)
        with pytest.raises(MetadataOutcomeUnknownError):
            await ledger.open_cursor("sub")
    await append_all(ledger, 2)

    cursor = await ledger.open_cursor("sub")

    assert not ledger.is_fenced
    assert cursor.backlog_count() == 0
    cursor.acknowledge_cumulative(ledger.last_confirmed_entry)
    await cursor.flush()


async def test_a_record_that_an_earlier_attempt_made_is_ours_after_another_failure(monkeypatch):
    world = World()
    ledger = await world.open()
    put = world.metadata.put

    async def no_answer(path):
        raise MetadataUnavailableError(path)

    async def lost_answer(*arguments, **options):
        await put(*arguments, **options)
        patched.setattr(world.metadata, "get", no_answer)
        raise MetadataOutcomeUnknownError("no answer")

    async def lost_request(*arguments, **options):
        raise MetadataOutcomeUnknownError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "put", lost_answer)
        with pytest.raises(MetadataOutcomeUnknownError):
            await ledger.open_cursor("sub")
    await append_all(ledger, 2)
    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "put", lost_request)
        with pytest.raises(MetadataOutcomeUnknownError):
            await ledger.open_cursor("sub")

    cursor = await ledger.open_cursor("sub")

    assert not ledger.is_fenced
    assert cursor.backlog_count() == 0


async def test_nothing_is_written_of_a_cursor_that_was_deleted_meanwhile():
    world = World()
    ledger = await world.open()
    cursor = await ledger.open_cursor("a", InitialPosition.EARLIEST)
    positions = await append_all(ledger, 3)
    cursor.acknowledge([positions[0]])
    await asyncio.gather(
        ledger.delete_cursor("a"), cursor.flush(), cursor.close(), return_exceptions=True
    )
    await asyncio.sleep(1.1)
    assert await world.metadata.get(cursor_path(ledger.name, "a")) is None
    assert not ledger.is_fenced
    with pytest.raises(ManagedLedgerError):
        await cursor.reset(positions[1])


async def test_a_fenced_cursor_does_not_try_to_write_again_and_again(monkeypatch):
    world = World()
    ledger = await world.open()
    cursor = await ledger.open_cursor("a", InitialPosition.EARLIEST)
    positions = await append_all(ledger, 3)
    path = cursor_path(ledger.name, "a")
    await world.metadata.put(path, (await world.metadata.get(path)).value)
    puts = []
    put = world.metadata.put

    async def counted(path, *arguments, **options):
        puts.append(path)
        return await put(path, *arguments, **options)

    monkeypatch.setattr(world.metadata, "put", counted)
    cursor.acknowledge([positions[1]])
    await asyncio.sleep(60)
    assert ledger.is_fenced
    assert puts.count(path) <= 2


async def test_a_waiting_cursor_is_woken_once_a_group():
    ledger = await World().open()
    cursor = await ledger.open_cursor("a")
    woken = []
    cursor.wait_for_entries(lambda: woken.append(1))
    assert ledger.internal_stats().waiting_cursors_count == 1
    await append_all(ledger, 3)
    assert woken == [1]


async def test_waiting_for_what_is_there_already_is_answered_soon():
    ledger = await World().open()
    cursor = await ledger.open_cursor("a")
    await append_all(ledger, 1)
    woken = []
    cursor.wait_for_entries(lambda: woken.append(1))
    assert woken == []
    await settle()
    assert woken == [1]


async def test_a_new_wait_replaces_the_old_one_and_can_be_cancelled():
    ledger = await World().open()
    cursor = await ledger.open_cursor("a")
    woken = []
    cursor.wait_for_entries(lambda: woken.append("old"))
    cursor.wait_for_entries(lambda: woken.append("new"))
    await append_all(ledger, 1)
    assert woken == ["new"]
    cursor.read_cached(*MANY)
    cursor.wait_for_entries(lambda: woken.append("cancelled"))
    cursor.cancel_wait()
    await append_all(ledger, 1)
    assert woken == ["new"]


async def test_a_cursor_that_someone_else_made_fences():
    world = World()
    ledger = await world.open()
    other = await world.open()
    await other.open_cursor("a")
    with pytest.raises(ManagedLedgerFencedError):
        await ledger.open_cursor("a")
    assert ledger.is_fenced


async def test_cursors_are_flushed_beside_each_other_a_number_at_a_time(monkeypatch):
    monkeypatch.setattr(registry, "FLUSHES_AT_ONCE", 3)
    flushes = AtOnce(monkeypatch)
    flushes.watch(ManagedCursor, "flush")
    ledger = await World().open()
    for number in range(8):
        await ledger.open_cursor(f"sub-{number}", InitialPosition.EARLIEST)
    await ledger.trim()  # which has them flushed first
    assert flushes.most == 3
