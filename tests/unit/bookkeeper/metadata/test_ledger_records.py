from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random

import pytest
from msgspec import structs

from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata, encode
from pulsar_py.bookkeeper.metadata.ledger_paths import LONG_HIERARCHICAL, ledger_path
from pulsar_py.bookkeeper.metadata.ledger_records import MAX_ATTEMPTS, LedgerRecords, RecordedLedger
from pulsar_py.common.errors import (
    CorruptDataError,
    LedgerFencedError,
    LedgerNotFoundError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    StorageError,
    StoreUnavailableError,
)
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import Session, Versioned
from pulsar_py.testing.clock import VirtualClock, run_virtual

NEW = LedgerMetadata.new(LedgerOptions(), ["a:1"])
PATH = ledger_path("/ledgers", 5)


class FaultyMetadata(MemoryMetadataStore):
    """Reads lag until a sync, and answers to changes get lost, when it is told so."""

    def __init__(self) -> None:
        super().__init__(VirtualClock())
        self.lagging: dict[str, Versioned | None] = {}
        self.lost_answers = 0
        self.is_away = False

    async def get(self, path: str) -> Versioned | None:
        if self.is_away:
            raise MetadataUnavailableError("away")
        return self.lagging[path] if path in self.lagging else await super().get(path)

    async def sync(self, path: str) -> None:
        self.lagging.clear()

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        version = await super().put(path, value, expected_version=expected_version, session=session)
        if self.lost_answers:
            self.lost_answers -= 1
            raise MetadataOutcomeUnknownError("no answer")
        return version


def with_records(test: Callable[[FaultyMetadata, LedgerRecords], Awaitable[None]]) -> None:
    async def work() -> None:
        metadata = FaultyMetadata()
        await test(metadata, LedgerRecords(metadata, "/ledgers"))

    run_virtual(work())


def test_a_record_is_made_once() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        assert await records.create(5, NEW) == RecordedLedger(NEW, 0)
        assert await records.create(5, NEW) is None
        assert await records.read(5) == RecordedLedger(NEW, 0)

    with_records(test)


def test_a_lost_answer_is_read_back() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        metadata.lost_answers = 1
        created = await records.create(5, NEW)
        assert created == RecordedLedger(NEW, 0)
        metadata.lost_answers = 1
        changed = await records.change(5, created, lambda each: each.closed(3, 30))
        assert changed == RecordedLedger(NEW.closed(3, 30), 1)

    with_records(test)


def test_a_missing_record_is_believed_after_a_sync() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        await records.create(5, NEW)
        metadata.lagging[PATH] = None
        assert (await records.read(5)).metadata == NEW
        with pytest.raises(LedgerNotFoundError, match="ledger 6"):
            await records.read(6)

    with_records(test)


def test_a_change_is_decided_anew_where_somebody_was_faster() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        created = await records.create(5, NEW)
        assert created is not None
        labelled = replace(NEW, custom_metadata={"a": b"1"})
        await metadata.put(PATH, encode(labelled))
        found = await metadata.get(PATH)
        assert found is not None
        metadata.lagging[PATH] = structs.replace(found, value=encode(NEW), version=0)

        changed = await records.change(5, created, lambda each: each.closed(3, 30))

        assert changed == RecordedLedger(labelled.closed(3, 30), 2)
        assert await records.change(5, changed, lambda _: None) == changed

    with_records(test)


def test_what_the_decision_raises_is_raised_and_nothing_written() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        created = await records.create(5, NEW)
        assert created is not None

        def decide(_: LedgerMetadata) -> LedgerMetadata:
            raise LedgerFencedError("no")

        with pytest.raises(LedgerFencedError):
            await records.change(5, created, decide)
        assert await records.read(5) == created
        await records.delete(5)
        await records.delete(5)
        with pytest.raises(LedgerNotFoundError):
            await records.change(5, created, lambda each: each.closed(3, 30))

    with_records(test)


def test_a_change_that_others_always_beat_ends() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        created = await records.create(5, NEW)
        assert created is not None
        asked: list[LedgerMetadata] = []
        for _ in range(3):
            await metadata.put(PATH, encode(NEW))

        class Racing(LedgerRecords):
            async def read(self, ledger_id: int, *, is_synced: bool = False) -> RecordedLedger:
                found = await super().read(ledger_id, is_synced=is_synced)
                await metadata.put(PATH, encode(NEW))
                return found

        def decide(each: LedgerMetadata) -> LedgerMetadata:
            asked.append(each)
            return each.closed(3, 30)

        with pytest.raises(StoreUnavailableError, match=f"{MAX_ATTEMPTS} times"):
            await Racing(metadata, "/ledgers").change(5, created, decide)
        assert len(asked) == MAX_ATTEMPTS

    with_records(test)


def test_errors_of_the_metadata_are_those_of_a_ledger_store() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        metadata.is_away = True
        with pytest.raises(StoreUnavailableError, match="ledger 5: away"):
            await records.read(5)
        metadata.is_away = False
        await metadata.put(PATH, b"nothing of ours")
        with pytest.raises(CorruptDataError, match=PATH):
            await records.read(5)

    with_records(test)


def test_changes_of_one_record_are_told() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        told: list[str] = []
        stop = records.watch(5, lambda event: told.append(event.path))
        await records.create(5, NEW)
        await records.create(6, NEW)
        stop()
        await records.delete(5)
        assert told == [PATH]

    with_records(test)


def test_ids_are_listed_in_pages_below_their_paths() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        ids = [*sorted(Random(1).sample(range(200_000), 50)), 2**33, 2**33 + 1]
        for ledger_id in ids:
            await records.create(ledger_id, NEW)
        await metadata.put("/ledgers/00/LAST", b"")
        pages = [list(page) async for page in records.ids()]
        assert [ledger_id for page in pages for ledger_id in page] == ids
        assert len(pages) > 5

    with_records(test)


def test_an_unformatted_root_is_refused() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        with pytest.raises(StorageError, match="LAYOUT"):
            await records.check_layout()

    with_records(test)


def test_in_the_long_layout_records_are_made_and_listed_below_long_paths() -> None:
    async def test(metadata: FaultyMetadata, records: LedgerRecords) -> None:
        await metadata.put("/ledgers/LAYOUT", f"2\n{LONG_HIERARCHICAL}".encode())
        await records.check_layout()
        await records.create(5, NEW)
        assert await metadata.get("/ledgers/000/0000/0000/0000/L0005") is not None
        assert (await records.read(5)).metadata == NEW
        assert [page async for page in records.ids()] == [[5]]

    with_records(test)
