"""Entries are read from logs and journal alike; nothing is written."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    CorruptDataError,
    EntryNotFoundError,
    LedgerNotFoundError,
    StorageError,
)
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.inspection.reading import SurveyedStore
from pulsar_py.storage.inspection.survey import survey_storage
from tests.ledger_parts import all_ledgers
from tests.unit.storage.inspection.damaged_disk import ENTRIES, LAST, filled_disk, flip, oldest
from tests.unit.storage.support import Listener, entry


@pytest.mark.parametrize("ledger_id", [1, 4])
async def test_entries_come_in_order_and_within_the_limit(ledger_id: int) -> None:
    disk = await filled_disk()
    store = SurveyedStore(disk, await survey_storage(disk))
    reader = await store.recover(ledger_id)
    assert reader.last_add_confirmed == LAST
    assert (reader.length_bytes, reader.is_closed) == (100 * ENTRIES, True)
    assert reader.read_cached(0, 1, 1) is None
    found: list[bytes] = []
    while len(found) < ENTRIES:
        found += await reader.read(len(found), LAST, 250)
    assert found == [entry(number) for number in range(ENTRIES)]
    assert len(await reader.read(0, LAST, 1)) == 1
    with pytest.raises(EntryNotFoundError):
        await reader.read(ENTRIES, ENTRIES, 1)
    await reader.close()


async def test_what_is_lost_says_so() -> None:
    disk = await filled_disk()
    await flip(disk, await oldest(disk, "entries"), 100)
    store = SurveyedStore(disk, await survey_storage(disk))
    with pytest.raises(CorruptDataError, match="entry 0 is lost"):
        await (await store.open(1)).read(0, 0, 1)


async def test_it_changes_nothing() -> None:
    disk = await filled_disk()
    store = SurveyedStore(disk, await survey_storage(disk))
    assert list(await all_ledgers(store)) == [1, 2, 3, 4]
    assert (await store.open(4)).last_add_confirmed == LAST
    with pytest.raises(LedgerNotFoundError):
        await store.open(9)
    for refused in (store.create(Listener(), LedgerOptions()), store.delete(1)):
        with pytest.raises(StorageError, match="a surveyed storage is read-only"):
            await refused
    await store.close()
