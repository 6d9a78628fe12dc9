"""Settings of managed ledgers, cursors and the bookie underneath."""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.managed_ledger.log.record_values import RecordCodec
from pulsar_py.server.settings.declaring import Settings, setting

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
        default=2048,
        minimum=1,
        category=LEDGERS,
        doc="Megabytes after which a ledger is closed and the next one is opened.",
    )
    managedLedgerMinLedgerRolloverTimeMinutes: int = setting(
        default=10,
        minimum=0,
        category=LEDGERS,
        doc="Minutes for which a ledger stays open at least, although it has its most entries or "
        "megabytes.",
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = setting(
        default=240,
        minimum=1,
        category=LEDGERS,
        doc="Minutes after which a ledger is closed, however small it is.",
    )
    managedLedgerInactiveLedgerRolloverTimeSeconds: int = setting(
        default=0,
        minimum=0,
        dynamic=True,
        category=LEDGERS,
        doc="Seconds without a write after which a ledger is closed; 0 is never.",
    )
    autoSkipNonRecoverableData: bool = setting(
        default=False,
        dynamic=True,
        category=LEDGERS,
        doc="Whether lost ledgers and entries are skipped; if not, reading them fails.",
    )

    managedLedgerDefaultMarkDeleteRateLimit: float = setting(
        default=1.0,
        minimum=0.0,
        category=CURSORS,
        doc="How often a second a cursor may be written.",
    )
    managedLedgerCursorMaxEntriesPerLedger: int = setting(
        default=50_000,
        minimum=1,
        category=CURSORS,
        doc="Writes after which a cursor gets a new cursor ledger.",
    )
    managedLedgerCursorRolloverTimeInSeconds: int = setting(
        default=14_400,
        minimum=0,
        category=CURSORS,
        doc="Seconds after which a cursor gets a new cursor ledger.",
    )
    managedLedgerMaxUnackedRangesToPersist: int = setting(
        default=200_000,
        minimum=0,
        category=CURSORS,
        doc="Ranges of acknowledgements of a cursor beyond which the broker logs a warning and "
        "the metric `pulsar_py_cursor_ranges_over_limit` counts them; all are stored.",
    )
    managedLedgerMaxBatchDeletedIndexToPersist: int = setting(
        default=200_000,
        minimum=0,
        category=CURSORS,
        doc="Partly acknowledged batches of a cursor beyond which the broker logs a warning, too;"
        " all are stored.",
    )
    managedLedgerMaxUnackedRangesToPersistInMetadataStore: int = setting(
        default=1000,
        minimum=0,
        category=CURSORS,
        doc="The most ranges of a cursor that are stored in its metadata record, when it closes "
        "or has no cursor ledger.",
    )

    managedLedgerInfoCompressionType: RecordCodec = setting(
        default=RecordCodec.NONE,
        category=LEDGERS,
        doc="How the list of a topic's ledgers is compressed in the metadata store, whose records "
        "have a largest size. Every kind is read, whatever this says.",
    )
    managedLedgerInfoCompressionThresholdInBytes: int = setting(
        default=16384,
        minimum=0,
        category=LEDGERS,
        doc="Bytes up to which such a list is written plain.",
    )
    managedCursorInfoCompressionType: RecordCodec = setting(
        default=RecordCodec.NONE,
        category=CURSORS,
        doc="How the record of a cursor is compressed in the metadata store.",
    )
    managedCursorInfoCompressionThresholdInBytes: int = setting(
        default=16384,
        minimum=0,
        category=CURSORS,
        doc="Bytes up to which such a record is written plain.",
    )

    managedLedgerMaxRangesInCursorEntry: int = setting(
        default=2000,
        minimum=0,
        category=CURSORS,
        doc="Ranges and partly acknowledged batches of a cursor up to which its state is stored "
        "as one entry; a larger one is stored in segments, of which only changed ones are "
        "written. Pulsar has no such setting.",
    )
    managedLedgerCursorMemorySizeMB: int = setting(
        default=64,
        minimum=0,
        category=CURSORS,
        doc="Megabytes of memory for the acknowledgements of all cursors that are stored in "
        "segments; beyond it the least recently used ones are dropped and read again when "
        "needed. Pulsar has no such setting.",
    )

    managedLedgerCacheSizeMB: int = setting(
        default=32,
        minimum=0,
        dynamic=True,
        category=CACHE,
        doc="Megabytes of recent entries that are kept in memory.",
    )
    managedLedgerCacheEvictionWatermark: float = setting(
        default=0.9,
        minimum=0.0,
        maximum=1.0,
        dynamic=True,
        category=CACHE,
        doc="Share of the cache to which it shrinks when it is full.",
    )
    managedLedgerCacheEvictionIntervalMs: int = setting(
        default=10,
        minimum=1,
        category=CACHE,
        doc="Milliseconds between two checks for entries to drop from the cache.",
    )
    managedLedgerCacheEvictionTimeThresholdMillis: int = setting(
        default=1000,
        minimum=0,
        dynamic=True,
        category=CACHE,
        doc="Milliseconds for which an entry stays in the cache.",
    )
    managedLedgerCursorBackloggedThreshold: int = setting(
        default=1000,
        minimum=0,
        category=CACHE,
        doc="Entries of backlog beyond which no entries are cached for a cursor.",
    )

    dbStorage_writeCacheMaxSizeMb: int = setting(
        default=64,
        minimum=1,
        category=BOOKIE,
        doc="Megabytes of memory for entries that are not in an entry log yet.",
    )
    dbStorage_readAheadCacheMaxSizeMb: int = setting(
        default=16,
        minimum=0,
        category=BOOKIE,
        doc="Megabytes of memory for entries read from entry logs.",
    )
    dbStorage_directIOEntryLogger: bool = setting(
        default=False,
        category=BOOKIE,
        doc="Whether entry logs are written past the system's page cache, where the file system "
        "has such writes. What was written then has to be read from the disk.",
    )
    journalMaxSizeMB: int = setting(
        default=256,
        minimum=1,
        maximum=1024 * 1024,
        category=BOOKIE,
        doc="Megabytes after which the next journal file is begun.",
    )
    journalReuseFiles: bool = setting(
        default=True,
        category=BOOKIE,
        doc="Whether journal files are used again once their entries are in entry logs.",
    )
    journalMaxBackups: int = setting(
        default=1,
        minimum=0,
        maximum=1024,
        category=BOOKIE,
        doc="The most old journal files that are kept to be used again.",
    )
    journalDirectIO: bool = setting(
        default=True,
        category=BOOKIE,
        doc="Whether journal files that are used again, and large entries that are written once, "
        "are written past the system's page cache, where the file system has such writes.",
    )
    flushInterval: int = setting(
        default=60_000,
        minimum=1,
        category=BOOKIE,
        doc="Milliseconds after which entries are written to an entry log at the latest.",
    )
    logSizeLimit: int = setting(
        default=1024 * 1024 * 1024,
        minimum=256 * 1024,
        category=BOOKIE,
        doc="Bytes after which the next entry log is begun.",
    )
    gcWaitTime: int = setting(
        default=900_000,
        minimum=1,
        category=BOOKIE,
        doc="Milliseconds between two checks for entry logs without live data.",
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
        doc="Share of live data in an entry log below which the major compaction rewrites it.",
    )
    majorCompactionInterval: int = setting(
        default=86_400,
        minimum=0,
        category=BOOKIE,
        doc="Seconds between major compactions; 0 is never.",
    )
    shortCircuitSocketPath: str = setting(
        default="",
        category=BOOKIE,
        doc="Path of a Unix socket over which programs of the broker's own user on the same "
        "machine are lent its files, to read stored entries themselves: the Spark connector can. "
        "Empty opens none. It needs embedded storage on Linux. Pulsar has no such setting.",
    )
