"""`BookieSettings`: every size, interval and threshold of the storage engine (a value).

The composition root makes it, `bookie` and its parts read it. The names have the units. `check`
refuses combinations that can't work.
"""

from __future__ import annotations

from msgspec import Struct

from pulsar_py.common.errors import ConfigurationError

KIB = 1024
MIB = 1024 * KIB
SECTOR_BYTES = 512
"""What disks write as a whole or not at all."""


class BookieSettings(Struct, frozen=True):
    """Limits of memory, disk and time for one Bookie."""

    is_volatile: bool = False
    """Keep all entries in memory and write nothing: no journal, no entry logs, nothing survives
    `close`. For in-memory brokers, on a `MemoryDisk`; deleting a ledger frees its bytes at once."""

    volatile_limit_bytes: int = 4096 * MIB
    """The most that a volatile engine holds; beyond it appends get `DiskFullError`."""

    write_cache_bytes: int = 64 * MIB
    """One of the two write cache generations; when it is full it is flushed to an entry log. Small
    ones are flushed more often, which delays groups of the journal (ADR 32); an idle engine has
    none of this memory."""

    append_limit_bytes: int = 256 * MIB
    """Entries queued or not yet flushed, and the memory that they keep alive; beyond it appends get
    `StoreBusyError` until there is room. At least the size of two generations, or a flush would
    stop all writes."""

    max_entry_bytes: int = 6 * MIB
    """The largest entry; a larger one gets `EntryTooBigError`."""

    answer_timeout_seconds: float = 60.0
    """The time without an answer of the disk after which appends fail and calls raise."""

    flush_interval_seconds: float = 60.0
    """A generation is flushed at this age even if it is small."""

    journal_group_bytes: int = 4 * MIB
    """The most bytes of entries in one journal write; more wait for the next one."""

    once_group_bytes: int = MIB
    """Large entries that have this many bytes in one group are written once: to an entry log, with
    a sync of its own, and the journal says where they are. In smaller groups that second sync costs
    more than a second copy. 0 writes all entries to the journal."""

    once_section_bytes: int = 64 * KIB
    """The fewest bytes of one ledger in a group that are written once: each gets a run of its own,
    so this bounds the index."""

    once_entry_bytes: int = 8 * KIB
    """The mean size from which entries of one ledger in a group are large."""

    journal_file_bytes: int = 64 * MIB
    """Space reserved for a journal file; when it is used up the next file begins."""

    journal_block_bytes: int = 4096
    """Blocks of a journal file that is used again begin at multiples of this, a power of two from
    512 to 64 KiB: the device's block, so that a write never touches what was confirmed before. In
    the first life of a file they begin at multiples of a sector."""

    is_journal_direct: bool = True
    """Write journal files that are used again past the system's cache of files, where it can be
    done. (A file's first life is not: reserved space that is written for the first time costs more
    that way.)"""

    journal_spare_files_count: int = 2
    """The most journal files that are kept to be used again when their entries are in entry logs;
    0 removes them at once."""

    journal_files_count: int = 4
    """A generation is flushed when the journal since the checkpoint has this many files, even if it
    is small: many small groups take more space in the journal than in memory."""

    entry_log_bytes: int = 256 * MIB
    """Size at which the next entry log begins."""

    are_entry_logs_direct: bool = False
    """Write entry logs past the system's cache of files, where it can be done."""

    flush_sync_bytes: int = 2 * MIB
    """Bytes of an entry log that are written without a sync between them: more of them would go to
    the disk in one burst, behind which groups of the journal wait (ADR 35)."""

    run_bytes: int = 256 * KIB
    """The largest run: neighbouring entries of one ledger with one checksum and one index key."""

    read_ahead_bytes: int = MIB
    """Bytes that a sequential reader's miss loads at once."""

    fetch_ahead_bytes: int = 8 * MIB
    """Bytes that are fetched ahead of a sequential reader while it is busy."""

    read_cache_bytes: int = 16 * MIB
    """The memory for runs that were read from entry logs and decoded."""

    index_cache_bytes: int = 8 * MIB
    """The memory for pages of the index, in the form that they have on disk."""

    open_files_count: int = 64
    """The most entry logs that are kept open for reading."""

    minimum_free_bytes: int = 128 * MIB
    """Free space below which appends get `DiskFullError`; the rest lets flushes and deletions go
    on. 0 lets the engine fill the disk."""

    reserve_bytes: int = 0
    """Size of a file that is created while there is plenty of space, and deleted when less than a
    quarter of it is free: on a disk that other programs have filled, this leaves room for the
    records that recovery and reading need. 0 keeps no such file."""

    disk_check_interval_seconds: float = 1.0
    """Interval of checks of the free space, and of further attempts at a failed flush."""

    garbage_interval_seconds: float = 900.0
    """Interval of searches for entry logs without live bytes, the one in use included. (Each flush
    removes others, too; without this an idle engine would keep its last one.)"""

    minor_compaction_threshold: float = 0.2
    """Entry logs with a smaller share of live bytes are rewritten, once in the minor interval."""

    minor_compaction_interval_seconds: float = 3600.0
    """Interval at which entry logs below the minor threshold are rewritten."""

    major_compaction_threshold: float = 0.5
    """Entry logs with a smaller share of live bytes are rewritten, once in the major interval."""

    major_compaction_interval_seconds: float = 86400.0
    """Interval at which entry logs below the major threshold are rewritten."""

    @property
    def kept_bytes(self) -> int:
        """The part of the minimum that has to be left when all waiting entries are flushed.

        It is for records of deletions, tables of the index, and the reserve, which flushes leave.
        """
        return min(self.reserve_bytes + self.minimum_free_bytes // 4, self.minimum_free_bytes)

    def check(self) -> None:
        """Refuse sizes that can't work together.

        Raises:
            ConfigurationError: Two sizes contradict one another.
        """
        if self.append_limit_bytes < 2 * self.write_cache_bytes:
            raise ConfigurationError(
                f"append limit of {self.append_limit_bytes} bytes: expected at least two "
                f"write cache generations of {self.write_cache_bytes} bytes"
            )
        block_bytes = self.journal_block_bytes
        if not SECTOR_BYTES <= block_bytes <= 64 * KIB or block_bytes & (block_bytes - 1):
            raise ConfigurationError(
                f"journal blocks of {block_bytes} bytes: expected a power of two from 512 to 65536"
            )
        if self.run_bytes > self.entry_log_bytes:
            raise ConfigurationError(
                f"runs of {self.run_bytes} bytes: expected at most the size of an entry log, "
                f"{self.entry_log_bytes} bytes"
            )
