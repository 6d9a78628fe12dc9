"""OwnedRecord: a write is made on top of what its owner wrote, whatever answers got lost."""

import asyncio

import pytest

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataOutcomeUnknownError,
    MetadataTooLargeError,
    MetadataUnavailableError,
    SessionInDoubtError,
)
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock

PATH = "/record"


class Fickle(MemoryMetadataStore):
    """Loses answers when told to."""

    def __init__(self):
        super().__init__(VirtualClock())
        self.outcomes = []  # of the next puts and deletes: "made", "not made", an error, None
        self.is_reachable = True  # for reads
        self.delayed = []  # puts that are not made yet

    async def get(self, path):
        if not self.is_reachable:
            raise MetadataUnavailableError("not connected")
        return await super().get(path)

    async def put(self, path, value, *, expected_version=None, session=None):
        async def make():
            return await MemoryMetadataStore.put(
                self, path, value, expected_version=expected_version, session=session
            )

        return await self._maybe(make)

    async def delete(self, path, *, expected_version=None):
        async def make():
            await MemoryMetadataStore.delete(self, path, expected_version=expected_version)

        await self._maybe(make)

    async def _maybe(self, make):
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is None:
            return await make()
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome == "made":
            await make()
        if outcome == "late":
            self.delayed.append(make)
        raise MetadataOutcomeUnknownError("the answer is missing")


async def value_of(store):
    store.is_reachable = True
    found = await MemoryMetadataStore.get(store, PATH)
    return None if found is None else found.value


async def test_writes_follow_each_other():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    for number in range(3):
        await record.write(b"%d" % number)
        assert record.version == number
    assert await value_of(store) == b"2"
    assert not record.is_in_doubt


async def test_a_write_whose_answer_is_missing_is_found_to_be_made():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"0")
    store.outcomes = ["made"]
    await record.write(b"1")
    assert (record.version, record.is_in_doubt) == (1, False)


@pytest.mark.parametrize("outcome", ["made", "not made"])
async def test_the_next_write_finds_out_what_became_of_the_one_before(outcome):
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"0")
    store.outcomes, store.is_reachable = [outcome], False
    with pytest.raises(MetadataOutcomeUnknownError):
        await record.write(b"1")
    assert record.is_in_doubt
    store.is_reachable = True
    await record.write(b"2")
    assert await value_of(store) == b"2"
    assert record.version == (2 if outcome == "made" else 1)
    assert not record.is_in_doubt


async def test_a_write_that_is_made_late_is_still_our_own():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"0")
    store.outcomes = ["late", "late"]
    for value in (b"1", b"2"):
        with pytest.raises(MetadataOutcomeUnknownError):
            await record.write(value)
    await store.delayed[0]()
    await record.write(b"3")
    assert await value_of(store) == b"3"


async def test_another_owners_value_is_never_written_over():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"0")
    store.outcomes = ["not made"]
    with pytest.raises(MetadataOutcomeUnknownError):
        await record.write(b"1")
    await store.put(PATH, b"another's")
    for work in (record.write(b"2"), record.write(b"1"), record.confirm(), record.delete()):
        with pytest.raises(ManagedLedgerFencedError, match=PATH):
            await work
    assert await value_of(store) == b"another's"


async def test_of_two_who_write_the_same_one_loses():
    store = Fickle()
    one, other = OwnedRecord(store, PATH), OwnedRecord(store, PATH)
    await one.write(b"same")
    with pytest.raises(ManagedLedgerFencedError):
        await other.write(b"same")


async def test_our_own_write_is_not_taken_for_ours_once_somebody_followed():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"0")
    store.outcomes, store.is_reachable = ["made"], False
    with pytest.raises(MetadataOutcomeUnknownError):
        await record.write(b"1")
    store.is_reachable = True
    await store.put(PATH, b"1")  # version 2: somebody read ours, and wrote it again
    with pytest.raises(ManagedLedgerFencedError):
        await record.write(b"2")


@pytest.mark.parametrize("error", [MetadataUnavailableError("no"), MetadataTooLargeError("no")])
async def test_what_was_certainly_not_made_leaves_no_doubt(error):
    store = Fickle()
    record = OwnedRecord(store, PATH)
    store.outcomes = [error]
    with pytest.raises(type(error)):
        await record.write(b"0")
    assert not record.is_in_doubt


async def test_a_cancelled_write_is_in_doubt():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    store.outcomes = [asyncio.CancelledError()]
    with pytest.raises(asyncio.CancelledError):
        await record.write(b"0")
    assert record.is_in_doubt


async def test_confirming_finds_ours_or_what_is_under_way():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.confirm()
    await record.write(b"0")
    await record.confirm()
    store.outcomes, store.is_reachable = ["made"], False
    with pytest.raises(MetadataOutcomeUnknownError):
        await record.write(b"1")
    with pytest.raises(MetadataUnavailableError):
        await record.confirm()
    store.is_reachable = True
    await record.confirm()


@pytest.mark.parametrize("outcome", [None, "made"])
async def test_a_deleted_record_is_gone(outcome):
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"0")
    store.outcomes = [outcome]
    await record.delete()
    assert await value_of(store) is None
    await record.delete()


async def test_a_deletion_that_was_not_made_says_so():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"0")
    store.outcomes = ["not made"]
    with pytest.raises(MetadataOutcomeUnknownError):
        await record.delete()
    await record.delete()
    assert await value_of(store) is None


async def test_a_deletion_follows_our_own_write_of_unknown_outcome():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"0")
    store.outcomes, store.is_reachable = ["made"], False
    with pytest.raises(MetadataOutcomeUnknownError):
        await record.write(b"1")
    store.is_reachable = True
    await record.delete()
    assert await value_of(store) is None


async def test_nothing_is_changed_while_somebody_else_may_be_the_owner():
    store = Fickle()
    doubts = [SessionInDoubtError("in doubt")]

    def check_owner():
        for doubt in doubts:
            raise doubt

    record = OwnedRecord(store, PATH, check_owner=check_owner)
    with pytest.raises(SessionInDoubtError):
        await record.write(b"a")
    assert await value_of(store) is None
    assert not record.is_in_doubt
    doubt = doubts.pop()
    await record.write(b"b")
    doubts.append(doubt)
    with pytest.raises(SessionInDoubtError):
        await record.write(b"c")
    with pytest.raises(SessionInDoubtError):
        await record.delete()
    assert await value_of(store) == b"b"


async def test_a_record_whose_deletion_got_no_answer_is_made_anew_by_the_next_write():
    store = Fickle()
    record = OwnedRecord(store, PATH)
    await record.write(b"1")
    await record.write(b"2")
    store.outcomes = ["made"]
    store.is_reachable = False
    with pytest.raises(MetadataUnavailableError):
        await record.delete()
    store.is_reachable = True

    await record.write(b"3")

    assert (await store.get(PATH)).value == b"3"
    await store.delete(PATH)
    with pytest.raises(ManagedLedgerFencedError):  # this time it was somebody else
        await record.write(b"4")
