"""remove_marked: all of a deleted managed ledger goes, and nothing of the one that comes next."""

import asyncio

import pytest

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataError,
    MetadataUnavailableError,
    SessionInDoubtError,
)
from pulsar_py.managed_ledger.log import list_deletion
from pulsar_py.managed_ledger.log.ledger_format import (
    LedgerList,
    encode_ledger_list,
    ledger_path,
)
from pulsar_py.managed_ledger.log.list_deletion import remove_marked
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord, nobody_else
from pulsar_py.metadata.store import MUST_NOT_EXIST
from tests.managed_ledger_parts import NAME, World, append_all, rolling

PATH = ledger_path(NAME)
CURSORS = [f"{PATH}/{name}" for name in ("one", "two")]


async def marked(world, *, owner="1"):
    """A marked list with two cursors, as a deletion leaves it that was cut short."""
    record = OwnedRecord(world.metadata, PATH)
    await record.write(encode_ledger_list(LedgerList(is_being_deleted=True, owner_mark=owner)))
    for path in CURSORS:
        await world.metadata.put(path, b"cursor", expected_version=MUST_NOT_EXIST)
    return record


async def create_again(world):
    """What the next owner does: it ends the deletion and begins anew, under the same paths."""
    opener = world.opener()
    ledger = await opener.open(NAME, rolling())
    await append_all(ledger, 1)
    for name in ("one", "two"):
        await ledger.open_cursor(name)
    return await stored(world)


async def stored(world):
    return [await world.metadata.get(path) for path in (PATH, *CURSORS)]


def once_before(monkeypatch, world, change, happens):
    """Let something happen before the first of the store's changes, or reads, of a kind."""
    work = getattr(world.metadata, change)

    async def late(*arguments, **options):
        monkeypatch.setattr(world.metadata, change, work)
        await happens()
        return await work(*arguments, **options)

    monkeypatch.setattr(world.metadata, change, late)


async def test_the_list_and_all_cursors_go():
    world = World()
    await remove_marked(world.metadata, await marked(world), nobody_else)
    assert await stored(world) == [None, None, None]
    assert await world.metadata.children(PATH) == []


@pytest.mark.parametrize("step", ["sync", "children", "get"])
async def test_what_was_created_since_stays(monkeypatch, step):
    """The process stands still before it has seen that."""
    world = World()
    record = await marked(world)
    there = []

    async def others_go_on():
        there.extend(await create_again(world))

    once_before(monkeypatch, world, step, others_go_on)
    await remove_marked(world.metadata, record, nobody_else)
    assert len(there) == 3
    assert await stored(world) == there


async def test_a_cursor_that_was_created_since_with_another_version_stays(monkeypatch):
    """The process stands still with its deletions decided, and the paths are used again."""
    world = World()
    record = await marked(world)
    for path in CURSORS:
        await world.metadata.put(path, b"cursor, written once more")  # version 1
    there = []

    async def others_go_on():
        there.extend(await create_again(world))

    once_before(monkeypatch, world, "delete", others_go_on)
    await remove_marked(world.metadata, record, nobody_else)
    assert [each.version for each in there[1:]] == [0, 0]
    assert await stored(world) == there


async def test_who_may_have_lost_it_deletes_nothing():
    world = World()
    record = await marked(world)
    there = await stored(world)
    for error in (ManagedLedgerFencedError("lost"), SessionInDoubtError("in doubt")):

        def check_owner(error=error):
            raise error

        with pytest.raises(type(error)):
            await remove_marked(world.metadata, record, check_owner)
    assert await stored(world) == there


async def test_a_cursor_that_is_written_meanwhile_goes_too(monkeypatch):
    world = World()
    record = await marked(world)

    async def write():
        await world.metadata.put(CURSORS[1], b"written late")

    once_before(monkeypatch, world, "delete", write)
    await remove_marked(world.metadata, record, nobody_else)
    assert await stored(world) == [None, None, None]


async def test_a_cursor_that_is_created_meanwhile_goes_too(monkeypatch):
    world = World()
    record = await marked(world)

    async def create():
        await world.metadata.put(f"{PATH}/three", b"made late")

    once_before(monkeypatch, world, "delete", create)
    await remove_marked(world.metadata, record, nobody_else)
    assert await stored(world) == [None, None, None]
    assert await world.metadata.children(PATH) == []


async def test_cursors_that_change_for_ever_end_it(monkeypatch):
    world = World()
    record = await marked(world)
    delete = world.metadata.delete

    async def too_late(path, **how):
        await world.metadata.put(path, b"again")
        await delete(path, **how)

    monkeypatch.setattr(world.metadata, "delete", too_late)
    with pytest.raises(MetadataUnavailableError, match=f"{list_deletion.ATTEMPTS_COUNT} times"):
        await remove_marked(world.metadata, record, nobody_else)
    assert await world.metadata.get(PATH) is not None, "the next opening removes the rest"


async def test_an_error_of_the_store_leaves_the_list_for_the_next_opening(monkeypatch):
    world = World()
    record = await marked(world)
    delete = world.metadata.delete

    async def lose_one(path, **how):
        if path == CURSORS[0]:
            raise MetadataError("connection lost")
        await delete(path, **how)

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "delete", lose_one)
        with pytest.raises(MetadataError, match="connection lost"):
            await remove_marked(world.metadata, record, nobody_else)
    found = await stored(world)
    assert [each is not None for each in found] == [True, True, False]
    ledger = await world.open()
    assert not ledger.cursors


async def test_two_who_end_a_deletion_at_once_both_succeed():
    world = World()
    await marked(world)
    found = await world.metadata.get(PATH)

    async def end():
        record = OwnedRecord(world.metadata, PATH)
        record.found(found)
        await remove_marked(world.metadata, record, nobody_else)

    await asyncio.gather(end(), end())
    assert await stored(world) == [None, None, None]


async def test_cursors_without_a_list_go_before_a_new_one_is_opened():
    """A cursor's record whose creation had no answer is made after the deletion."""
    world = World()
    await world.metadata.put(CURSORS[0], b"made late")
    ledger = await world.open()
    assert not ledger.cursors
    assert await world.metadata.children(PATH) == []
