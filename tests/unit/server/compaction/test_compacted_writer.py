"""A new compacted ledger: its labels and digest."""

from __future__ import annotations

from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.unit.server.compaction.stored import new_writer


async def test_the_ledger_has_the_labels_and_the_digest_of_pulsar() -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store)
    options = store.ledgers[writer.ledger_id].options
    assert (options.digest_type, options.password) == (DigestType.CRC32, b"")
    assert options.custom_metadata == labels.compacted_ledger("here", "topic", b"to")
