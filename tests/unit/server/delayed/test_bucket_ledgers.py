from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError, LedgerNotFoundError, StorageError
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType, LedgerOptions
from pulsar_py.server.delayed.bucket_format import BucketBuilder, NewBucket, pack
from pulsar_py.server.delayed.bucket_ledgers import BucketLedgers, BucketPlace
from pulsar_py.server.delayed.bucket_names import BucketName
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.managed_ledger_parts import Recorder

INDEXES = [pack(1000 * n, 1, n) for n in range(7)]


def bucket() -> NewBucket:
    builder = BucketBuilder(max_segment_indexes=3, max_step_millis=10_000, max_metadata_bytes=999)
    for index in INDEXES:
        builder.add(index)
    return builder.finish()[0]


def ledgers(store: SimulatedLedgerStore) -> BucketLedgers:
    place = BucketPlace("here", "persistent://a/b/c", "sub")
    return BucketLedgers(store, VirtualClock(), LedgerOptions(ensemble_size=2), place)


async def test_a_bucket_is_a_closed_ledger_with_labels() -> None:
    store = SimulatedLedgerStore()
    name = BucketName(1, 1)
    ledger_id = await ledgers(store).write(name, bucket())
    ledger = store.ledgers[ledger_id]
    assert ledger.is_closed
    assert (ledger.options.digest_type, ledger.options.password) == (DigestType.CRC32C, b"")
    assert ledger.options.ensemble_size == 2
    assert ledger.options.custom_metadata == labels.delayed_index_bucket(
        "here", "persistent://a/b/c", "sub", name.key
    )


async def test_segments_are_read_by_number() -> None:
    store = SimulatedLedgerStore()
    place = ledgers(store)
    ledger_id = await place.write(BucketName(1, 1), bucket())
    assert await place.read_metadata(ledger_id) == bucket().metadata
    assert [await place.read_segment(ledger_id, n) for n in range(3)] == [
        INDEXES[:3],
        INDEXES[3:6],
        INDEXES[6:],
    ]


async def test_a_ledger_without_entries_is_corrupt_and_a_missing_one_gone() -> None:
    store = SimulatedLedgerStore()
    writer = await store.create(Recorder(), LedgerOptions())
    with pytest.raises(CorruptDataError):
        await ledgers(store).read_metadata(writer.ledger_id)
    with pytest.raises(LedgerNotFoundError):
        await ledgers(store).read_metadata(12345)
    assert await ledgers(store).try_delete(12345)


async def test_what_can_not_be_finished_is_deleted() -> None:
    store = SimulatedLedgerStore()
    store.append_error = StorageError("full")
    with pytest.raises(StorageError, match="full"):
        await ledgers(store).write(BucketName(1, 1), bucket())
    assert not store.ledgers
