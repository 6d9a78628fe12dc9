"""Settings of managed ledgers, cursors and the bookie underneath."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.server.settings import Settings, setting

LEDGERS: Final = "Managed ledger"
CURSORS: Final = "Cursors"
CACHE: Final = "Entry cache"
BOOKIE: Final = "Bookie"


class StorageSettings(Settings):
    """How entries are cut into ledgers, cached, and written to disk."""

    managedLedgerDefaultEnsembleSize: int = setting(
        1, minimum=1, category=LEDGERS, doc="Bookies of a ledger; there is one here."
    )
    managedLedgerDefaultWriteQuorum: int = setting(
        1, minimum=1, category=LEDGERS, doc="Bookies that each entry is written to."
    )
    managedLedgerDefaultAckQuorum: int = setting(
        1, minimum=1, category=LEDGERS, doc="Bookies whose confirmation a write waits for."
    )
    managedLedgerMaxEntriesPerLedger: int = setting(
        50_000,
        minimum=1,
        category=LEDGERS,
        doc="Entries after which a ledger is closed and the next one is opened.",
    )
    managedLedgerMaxSizePerLedgerMbytes: int = setting(
        2048, minimum=1, category=LEDGERS, doc="Megabytes after which it is, too."
    )
    managedLedgerMinLedgerRolloverTimeMinutes: int = setting(
        10, minimum=0, category=LEDGERS, doc="Minutes a ledger stays open although it is full."
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = setting(
        240, minimum=1, category=LEDGERS, doc="Minutes after which it is closed although it is not."
    )
    managedLedgerInactiveLedgerRolloverTimeSeconds: int = setting(
        0,
        minimum=0,
        dynamic=True,
        category=LEDGERS,
        doc="Seconds without a write after which it is; 0 is never.",
    )
    autoSkipNonRecoverableData: bool = setting(
        False,
        dynamic=True,
        category=LEDGERS,
        doc="Whether ledgers that are lost are skipped instead of failing their readers.",
    )

    managedLedgerDefaultMarkDeleteRateLimit: float = setting(
        1.0, minimum=0.0, category=CURSORS, doc="Times a second a cursor may be written."
    )
    managedLedgerCursorMaxEntriesPerLedger: int = setting(
        50_000, minimum=1, category=CURSORS, doc="Writes after which its ledger is replaced."
    )
    managedLedgerCursorRolloverTimeInSeconds: int = setting(
        14_400, minimum=0, category=CURSORS, doc="Seconds after which it is, too."
    )
    managedLedgerMaxUnackedRangesToPersist: int = setting(
        200_000, minimum=0, category=CURSORS, doc="Ranges of acknowledgements stored with a cursor."
    )
    managedLedgerMaxBatchDeletedIndexToPersist: int = setting(
        200_000, minimum=0, category=CURSORS, doc="Half acknowledged batches stored with it."
    )
    managedLedgerMaxUnackedRangesToPersistInMetadataStore: int = setting(
        1000, minimum=0, category=CURSORS, doc="Ranges stored with it in metadata when it closes."
    )

    managedLedgerCacheSizeMB: int = setting(
        64, minimum=0, dynamic=True, category=CACHE, doc="Megabytes of recent entries in memory."
    )
    managedLedgerCacheEvictionWatermark: float = setting(
        0.9,
        minimum=0.0,
        maximum=1.0,
        dynamic=True,
        category=CACHE,
        doc="Share of the cache that is left when it has been full.",
    )
    managedLedgerCacheEvictionIntervalMs: int = setting(
        10, minimum=1, category=CACHE, doc="Milliseconds between looks for entries to drop."
    )
    managedLedgerCacheEvictionTimeThresholdMillis: int = setting(
        1000, minimum=0, dynamic=True, category=CACHE, doc="Milliseconds an entry stays in it."
    )
    managedLedgerCursorBackloggedThreshold: int = setting(
        1000,
        minimum=0,
        category=CACHE,
        doc="Entries of backlog beyond which nothing is cached for a cursor.",
    )

    dbStorage_writeCacheMaxSizeMb: int = setting(
        64, minimum=1, category=BOOKIE, doc="Megabytes of entries not yet in an entry log."
    )
    dbStorage_readAheadCacheMaxSizeMb: int = setting(
        32, minimum=0, category=BOOKIE, doc="Megabytes of entries read from entry logs."
    )
    journalMaxSizeMB: int = setting(
        256, minimum=1, category=BOOKIE, doc="Megabytes after which the next journal is opened."
    )
    flushInterval: int = setting(
        60_000, minimum=1, category=BOOKIE, doc="Milliseconds until entries are in an entry log."
    )
    logSizeLimit: int = setting(
        1024 * 1024 * 1024,
        minimum=1024,
        category=BOOKIE,
        doc="Bytes after which the next entry log is opened.",
    )
    gcWaitTime: int = setting(
        900_000, minimum=1, category=BOOKIE, doc="Milliseconds between looks for deleted ledgers."
    )
    minorCompactionThreshold: float = setting(
        0.2,
        minimum=0.0,
        maximum=1.0,
        category=BOOKIE,
        doc="Share of live data in an entry log below which the minor compaction rewrites it.",
    )
    minorCompactionInterval: int = setting(
        3600, minimum=0, category=BOOKIE, doc="Seconds between minor compactions; 0 is never."
    )
    majorCompactionThreshold: float = setting(
        0.8, minimum=0.0, maximum=1.0, category=BOOKIE, doc="The same of the major compaction."
    )
    majorCompactionInterval: int = setting(
        86_400, minimum=0, category=BOOKIE, doc="Seconds between major compactions; 0 is never."
    )
