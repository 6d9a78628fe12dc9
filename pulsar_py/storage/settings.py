"""BookieSettings: every size, interval and threshold of the storage engine.

A value without behaviour; `bookie` and its parts read it, the composition root makes it. Units
stand in the names. `check` refuses combinations that can't work.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_py.common.errors import ConfigurationError

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class BookieSettings:
    """Limits of memory, disk and time for one Bookie."""

    is_volatile: bool = False
    """Keep all entries in memory and write nothing: no journal, no entry logs, nothing survives
    `close`. For in-memory brokers, on a `MemoryDisk`; deleting a ledger frees its bytes at once."""

    volatile_limit_bytes: int = 4096 * MIB
    """The most that a volatile engine holds; beyond it appends get `DiskFullError`."""

    write_cache_bytes: int = 24 * MIB
    """One of the two write cache generations; when it is full it is flushed to an entry log."""

    append_limit_bytes: int = 192 * MIB
    """Entries queued or not yet flushed, and the memory they keep; beyond it appends get
    `StoreBusyError` until there is room. At least two generations, or a flush would stop all
    writes."""

    max_entry_bytes: int = 6 * MIB
    """The largest entry; a larger one gets `EntryTooBigError`."""

    answer_timeout_seconds: float = 60.0
    """After so long without an answer of the disk, appends fail and calls raise."""

    flush_interval_seconds: float = 60.0
    """A generation is flushed at this age even if it is small."""

    journal_group_bytes: int = 4 * MIB
    """Entries of one journal write; more wait for the next one."""

    journal_file_bytes: int = 64 * MIB
    """Space reserved for a journal file; when it is used up the next file begins."""

    entry_log_bytes: int = 256 * MIB
    """Size at which the next entry log begins."""

    run_bytes: int = 256 * KIB
    """Neighbouring entries of one ledger under one checksum and one index record."""

    read_ahead_bytes: int = MIB
    """Bytes that a sequential reader's miss loads at once."""

    fetch_ahead_bytes: int = 8 * MIB
    """Bytes that are fetched ahead of a sequential reader while it is busy."""

    read_cache_bytes: int = 16 * MIB
    """Runs read from entry logs, kept decoded."""

    index_cache_bytes: int = 8 * MIB
    """Pages of the index, kept as they are on disk."""

    open_files_count: int = 64
    """Entry logs held open for reading."""

    minimum_free_bytes: int = 128 * MIB
    """Below this appends get `DiskFullError`; what is left lets flushes and deletions go on. 0 lets
    the engine write until there is nothing."""

    reserve_bytes: int = 0
    """Space taken while there is plenty, and given up when a quarter of that is not free any more:
    on a disk that others have filled, it lets records through that recovery and reading need."""

    disk_check_interval_seconds: float = 1.0
    """Interval of looks at the free space, and of further attempts at a failed flush."""

    garbage_interval_seconds: float = 900.0
    """Interval of searches for entry logs without live bytes, the one in use included. (Each flush
    removes others, too; without this an idle engine would keep its last one.)"""

    minor_compaction_threshold: float = 0.2
    """Entry logs with a smaller share of live bytes are rewritten, once in the minor interval."""

    minor_compaction_interval_seconds: float = 3600.0
    """Interval at which entry logs below the minor threshold are rewritten."""

    major_compaction_threshold: float = 0.5
    """The same, once in the major interval."""

    major_compaction_interval_seconds: float = 86400.0
    """Interval at which entry logs below the major threshold are rewritten."""

    @property
    def kept_bytes(self) -> int:
        """Of the minimum, what is left when all that waits is flushed.

        It is for records of deletions, tables of the index, and the reserve that flushes spare.
        """
        return min(self.reserve_bytes + self.minimum_free_bytes // 4, self.minimum_free_bytes)

    def check(self) -> None:
        """Refuse what can't work.

        Raises:
            ConfigurationError: Two sizes contradict one another.
        """
        if self.append_limit_bytes < 2 * self.write_cache_bytes:
            raise ConfigurationError(
                f"append limit of {self.append_limit_bytes} bytes is less than two write cache "
                f"generations of {self.write_cache_bytes}"
            )
        if self.run_bytes > self.entry_log_bytes:
            raise ConfigurationError(
                f"a run of {self.run_bytes} bytes exceeds an entry log of {self.entry_log_bytes}"
            )
