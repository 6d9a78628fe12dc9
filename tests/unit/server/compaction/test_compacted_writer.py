"""A new compacted ledger: its labels and digest."""

from __future__ import annotations

import asyncio

from pulsar_py.common.errors import StorageError
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType
from pulsar_py.managed_ledger.log.whole_ledger import BESIDE_OTHERS_BYTES
from pulsar_py.server.compaction.compacted_writer import FLUSHED_BYTES
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.managed_ledger_parts import settle
from tests.unit.server.compaction.stored import new_writer


async def test_the_ledger_has_the_labels_and_the_digest_of_pulsar() -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store)
    options = store.ledgers[writer.ledger_id].options
    assert (options.digest_type, options.password) == (DigestType.CRC32, b"")
    assert options.custom_metadata == labels.compacted_ledger("here", "topic", b"to")


async def test_what_producers_publish_waits_for_a_few_records_only() -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store)
    store.is_holding = True
    half = bytes(BESIDE_OTHERS_BYTES // 2)
    writing = [asyncio.get_running_loop().create_task(writer.append(half)) for _ in range(5)]
    await settle()
    assert len(store.ledgers[writer.ledger_id].entries) == 2
    store.release()
    await asyncio.gather(*writing)


class _FlushedStore(SimulatedLedgerStore):
    """Counts flushes, which fail."""

    flushes_count = 0

    async def flush(self) -> None:
        self.flushes_count += 1
        raise StorageError("not now")


async def test_what_was_written_leaves_the_memory_of_the_store_every_few_megabytes() -> None:
    store = _FlushedStore()
    writer = await new_writer(store)
    for _ in range(5 * FLUSHED_BYTES // (1 << 20) // 2):
        await writer.append(bytes(1 << 20))
    await writer.close()
    assert store.flushes_count == 2
    assert len(store.ledgers[writer.ledger_id].entries) == 20
