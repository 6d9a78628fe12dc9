"""`CompactedWriter`: writes the records of a new compacted ledger (edge).

Source: AbstractTwoPhaseCompactor.addToCompactedLedger in Pulsar's broker.
"""

from __future__ import annotations

from msgspec.structs import replace

from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType, LedgerOptions, LedgerStore
from pulsar_py.managed_ledger.log.whole_ledger import BESIDE_OTHERS_BYTES, WholeLedgerWriter


class CompactedWriter(WholeLedgerWriter):
    """The new ledger of one compaction, written beside what producers publish."""

    def __init__(self, ledger_store: LedgerStore, clock: Clock) -> None:
        """Take the store, and the clock of pauses while it is busy."""
        super().__init__(ledger_store, clock, max_unconfirmed_bytes=BESIDE_OTHERS_BYTES)

    async def create(
        self, options: LedgerOptions, *, cluster: str, topic: str, compacted_to: bytes
    ) -> int:
        """Create the ledger; returns its id. The digest and password are those of Apache Pulsar.

        Raises:
            StorageError, MetadataError: There is none, or one that no metadata names.
        """
        own = labels.compacted_ledger(cluster, topic, compacted_to)
        return await self.create_with(
            replace(
                options,
                digest_type=DigestType.CRC32,
                password=b"",
                custom_metadata={**options.custom_metadata, **own},
            )
        )
