"""What tests of compaction share: entries without a topic, and a ledger that takes records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.loops.pace import Pace
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.compaction.compactor import CompactionRules, Compactor
from pulsar_py.server.compaction.record_format import CompactedRecord, decode_record
from pulsar_py.testing.clock import VirtualClock

MEMORY_BYTES = 1 << 20


class GivenInput:
    """A `CompactionInput` of entries that are given."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = list(entries)

    async def entries(self) -> AsyncIterator[Sequence[Entry]]:
        for start in range(0, len(self._entries), 10):
            yield self._entries[start : start + 10]


class GivenWriter:
    """A `CompactedWriter` that keeps the records."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    async def append(self, record: bytes) -> None:
        self.records.append(record)


async def compacted(
    entries: Iterable[Entry],
    rules: CompactionRules | None = None,
    *,
    partition_index: int = -1,
    memory_bytes: int = MEMORY_BYTES,
    disk: MemoryDisk | None = None,
) -> tuple[list[bytes], Compactor]:
    """The records that one compaction of these entries writes, and the compactor."""
    compactor = Compactor(
        GivenInput(entries),
        rules or CompactionRules(),
        lambda: disk or MemoryDisk(),
        "runs",
        memory_bytes=memory_bytes,
        pace=Pace(VirtualClock()),
    )
    writer = GivenWriter()
    await compactor.find_survivors()
    await compactor.write(writer, partition_index)
    await compactor.close()
    return writer.records, compactor


def as_entries(records: Iterable[bytes]) -> list[Entry]:
    """The entries that the next compaction reads from a compacted ledger."""
    return [Entry(*record.position, record.message) for record in map(decode_record, records)]


def decoded(records: Iterable[bytes]) -> list[CompactedRecord]:
    return [decode_record(record) for record in records]


def position(text: str) -> Position:
    return Position.parse(text)
