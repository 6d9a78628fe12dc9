"""What the storage tests share: a listener that remembers, and an engine with small sizes."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerOptions, LedgerWriter
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.shared.settings import BookieSettings
from pulsar_py.testing.ledger_ids import CountedLedgerIds

SMALL = BookieSettings(
    write_cache_bytes=100_000,
    append_limit_bytes=1_000_000,
    journal_file_bytes=20_000,
    journal_block_bytes=512,
    journal_group_bytes=5_000,
    entry_log_bytes=10_000,
    run_bytes=1_000,
    read_ahead_bytes=3_000,
    read_cache_bytes=20_000,
    index_cache_bytes=20_000,
    minimum_free_bytes=0,
    disk_check_interval_seconds=0.001,
)


class Listener:
    """A writer's owner."""

    def __init__(self) -> None:
        self.confirmed = -1
        self.failures: list[StorageError] = []
        self._changed = asyncio.Event()

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        self.confirmed = last_add_confirmed
        self._changed.set()

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        self.failures.append(error)
        self._changed.set()

    async def until(self, entry_id: int) -> None:
        while self.confirmed < entry_id and not self.failures:
            self._changed.clear()
            await self._changed.wait()


Ids = CountedLedgerIds


async def start(disk: Disk, ids: LedgerIds | None = None, **changes: object) -> Bookie:
    settings = replace(SMALL, **changes)  # type: ignore[arg-type]
    return await Bookie.start(disk, clock=SystemClock(), ledger_ids=ids or Ids(), settings=settings)


async def write(bookie: Bookie, count: int, size: int = 100) -> tuple[LedgerWriter, Listener]:
    """A new ledger with confirmed entries."""
    listener = Listener()
    writer = await bookie.create(listener, LedgerOptions())
    for entry_id in range(count):
        writer.append(entry(entry_id, size))
    await listener.until(count - 1)
    return writer, listener


def entry(entry_id: int, size: int = 100) -> bytes:
    return entry_id.to_bytes(4, "big") * (size // 4)


def fill(writer: LedgerWriter, size: int) -> None:
    """Append until there is no room."""
    while True:
        writer.append(bytes(size))


async def turns(count: int = 50) -> None:
    """Let everything that needs no time run."""
    for _ in range(count):
        await asyncio.sleep(0)
