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
    """The settings of broker.conf and bookkeeper.conf for ledgers, caches, cursors and bookie."""

    managedLedgerMaxEntriesPerLedger: int = setting(
        default=50_000,
        minimum=1,
        category=LEDGERS,
        doc="Entries after which a ledger is closed and the next one is opened.",
    )
    managedLedgerMaxSizePerLedgerMbytes: int = setting(
        default=2048, minimum=1, category=LEDGERS, doc="Megabytes after which it is, too."
    )
    managedLedgerMinLedgerRolloverTimeMinutes: int = setting(
        default=10,
        minimum=0,
        category=LEDGERS,
        doc="Minutes a ledger stays open although it is full.",
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = setting(
        default=240,
        minimum=1,
        category=LEDGERS,
        doc="Minutes after which it is closed although it is not.",
    )
    managedLedgerInactiveLedgerRolloverTimeSeconds: int = setting(
        default=0,
        minimum=0,
        dynamic=True,
        category=LEDGERS,
        doc="Seconds without a write after which it is; 0 is never.",
    )
    autoSkipNonRecoverableData: bool = setting(
        default=False,
        dynamic=True,
        category=LEDGERS,
        doc="Whether ledgers that are lost are skipped instead of failing their readers.",
    )

    managedLedgerDefaultMarkDeleteRateLimit: float = setting(
        default=1.0, minimum=0.0, category=CURSORS, doc="Times a second a cursor may be written."
    )
    managedLedgerCursorMaxEntriesPerLedger: int = setting(
        default=50_000,
        minimum=1,
        category=CURSORS,
        doc="Writes after which its ledger is replaced.",
    )
    managedLedgerCursorRolloverTimeInSeconds: int = setting(
        default=14_400, minimum=0, category=CURSORS, doc="Seconds after which it is, too."
    )
    managedLedgerMaxUnackedRangesToPersist: int = setting(
        default=200_000,
        minimum=0,
        category=CURSORS,
        doc="Ranges of acknowledgements of a cursor beyond which it warns and the metric"
        " `pulsar_py_cursor_ranges_over_limit` shows it; all are stored.",
    )
    managedLedgerMaxBatchDeletedIndexToPersist: int = setting(
        default=200_000,
        minimum=0,
        category=CURSORS,
        doc="Half acknowledged batches of it beyond which it warns, too.",
    )
    managedLedgerMaxUnackedRangesToPersistInMetadataStore: int = setting(
        default=1000,
        minimum=0,
        category=CURSORS,
        doc="Ranges stored with it in metadata when it closes.",
    )

    managedLedgerMaxRangesInCursorEntry: int = setting(
        default=2000,
        minimum=0,
        category=CURSORS,
        doc="Ranges and half acknowledged batches of a cursor up to which all are one record; with"
        " more it is stored in segments, of which only changed ones are written. Pulsar has no such"
        " setting.",
    )
    managedLedgerCursorMemorySizeMB: int = setting(
        default=64,
        minimum=0,
        category=CURSORS,
        doc="Megabytes of acknowledgements that cursors stored in segments keep in memory together;"
        " what was not used for longest is read again when it is wanted. Pulsar has no such"
        " setting.",
    )

    managedLedgerCacheSizeMB: int = setting(
        default=32,
        minimum=0,
        dynamic=True,
        category=CACHE,
        doc="Megabytes of recent entries in memory.",
    )
    managedLedgerCacheEvictionWatermark: float = setting(
        default=0.9,
        minimum=0.0,
        maximum=1.0,
        dynamic=True,
        category=CACHE,
        doc="Share of the cache that is left when it has been full.",
    )
    managedLedgerCacheEvictionIntervalMs: int = setting(
        default=10, minimum=1, category=CACHE, doc="Milliseconds between looks for entries to drop."
    )
    managedLedgerCacheEvictionTimeThresholdMillis: int = setting(
        default=1000,
        minimum=0,
        dynamic=True,
        category=CACHE,
        doc="Milliseconds an entry stays in it.",
    )
    managedLedgerCursorBackloggedThreshold: int = setting(
        default=1000,
        minimum=0,
        category=CACHE,
        doc="Entries of backlog beyond which nothing is cached for a cursor.",
    )

    dbStorage_writeCacheMaxSizeMb: int = setting(
        default=24, minimum=1, category=BOOKIE, doc="Megabytes of entries not yet in an entry log."
    )
    dbStorage_readAheadCacheMaxSizeMb: int = setting(
        default=16, minimum=0, category=BOOKIE, doc="Megabytes of entries read from entry logs."
    )
    journalMaxSizeMB: int = setting(
        default=256,
        minimum=1,
        maximum=1024 * 1024,
        category=BOOKIE,
        doc="Megabytes after which the next journal is opened.",
    )
    flushInterval: int = setting(
        default=60_000,
        minimum=1,
        category=BOOKIE,
        doc="Milliseconds until entries are in an entry log.",
    )
    logSizeLimit: int = setting(
        default=1024 * 1024 * 1024,
        minimum=256 * 1024,
        category=BOOKIE,
        doc="Bytes after which the next entry log is opened.",
    )
    gcWaitTime: int = setting(
        default=900_000,
        minimum=1,
        category=BOOKIE,
        doc="Milliseconds between looks for entry logs of which nothing is left.",
    )
    minorCompactionThreshold: float = setting(
        default=0.2,
        minimum=0.0,
        maximum=1.0,
        category=BOOKIE,
        doc="Share of live data in an entry log below which the minor compaction rewrites it.",
    )
    minorCompactionInterval: int = setting(
        default=3600,
        minimum=0,
        category=BOOKIE,
        doc="Seconds between minor compactions; 0 is never.",
    )
    majorCompactionThreshold: float = setting(
        default=0.8,
        minimum=0.0,
        maximum=1.0,
        category=BOOKIE,
        doc="The same of the major compaction.",
    )
    majorCompactionInterval: int = setting(
        default=86_400,
        minimum=0,
        category=BOOKIE,
        doc="Seconds between major compactions; 0 is never.",
    )
