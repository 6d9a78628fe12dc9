"""Measures appends, tailing cursors and acks of the managed ledger, in CPU microseconds an entry.

    python -m benchmarks.micro_managed_ledger [entries]

The ledger store is one that does nothing but number entries, so the figures are the managed
ledger's own. Groups of 200 entries of 1 KB stand for what one sync confirms.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Sequence

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerListener
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.managed_ledger import InitialPosition, ManagedLedger
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.ledger_store import SimulatedLedgerStore

GROUP = 200
ENTRY_BYTES = 1024


class NullWriter:
    """The least a writer can do."""

    def __init__(self, ledger_id: int, listener: LedgerListener) -> None:
        self.ledger_id = ledger_id
        self.listener = listener
        self.last_add_pushed = -1
        self.last_add_confirmed = -1
        self.length_bytes = 0
        self.pending: list[bytes] = []

    def append(self, data: bytes) -> int:
        """Number an entry."""
        self.pending.append(data)
        self.last_add_pushed += 1
        return self.last_add_pushed

    def confirm(self) -> None:
        """End a group."""
        self.pending.clear()
        self.last_add_confirmed = self.last_add_pushed
        self.listener.on_confirmed(self.ledger_id, self.last_add_confirmed)

    def read_cached(self, first: int, last: int, max_bytes: int) -> None:
        """Nothing: tailing cursors read from the entry cache."""

    async def close(self) -> None:
        """Nothing to do."""


class NullStore(SimulatedLedgerStore):
    """Gives out NullWriters."""

    writer: NullWriter

    async def create(self, listener: LedgerListener, options: object) -> NullWriter:  # type: ignore[override]  # the least
        """A ledger."""
        del options
        self._next_ledger_id += 1
        self.writer = NullWriter(self._next_ledger_id, listener)
        return self.writer


class Listener:
    """Hears and forgets."""

    def on_appended(self, ledger_id: int, first_entry_id: int, contexts: Sequence[int]) -> None:
        """Nothing."""

    def on_append_failed(self, contexts: Sequence[int], error: Exception) -> None:
        """Nothing."""

    def on_fenced(self, error: Exception) -> None:
        """Nothing."""


def microseconds(begin: float, entries: int) -> float:
    """Per entry since `begin`."""
    return (time.process_time() - begin) * 1e6 / entries


async def measure(entries: int, cursors_count: int, *, acknowledges: str = "") -> float:
    """Append groups; let cursors read, and acknowledge what they read."""
    store = NullStore()
    clock = SystemClock()
    opener = ManagedLedgerOpener(store, MemoryMetadataStore(clock), clock, chance=random.Random(1))
    config = ManagedLedgerConfig(max_entries_per_ledger=1 << 40, minimum_rollover_seconds=0)
    ledger: ManagedLedger[int] = await opener.open("t/n/persistent/x", config)
    ledger.listener = Listener()
    cursors: list[ManagedCursor] = []
    for number in range(cursors_count):
        cursor = await ledger.open_cursor(f"s{number}", InitialPosition.LATEST)
        cursor.set_active()
        cursors.append(cursor)
    datas = [bytes(ENTRY_BYTES) for _ in range(GROUP)]
    append = ledger.append
    begin = time.process_time()
    for _ in range(entries // GROUP):
        for number, data in enumerate(datas):
            append(data, number)
        store.writer.confirm()
        for cursor in cursors:
            run = cursor.read_cached(1000, 5_000_000)
            assert run is not None
            assert len(run) == GROUP
            if acknowledges == "in order":
                cursor.acknowledge([Position(each.ledger_id, each.entry_id) for each in run])
            elif acknowledges == "one by one":
                for each in run:
                    cursor.acknowledge([Position(each.ledger_id, each.entry_id)])
            elif acknowledges == "every second":
                cursor.acknowledge([Position(each.ledger_id, each.entry_id) for each in run[::2]])
            elif acknowledges == "cumulative":
                cursor.acknowledge_cumulative(run[-1].position)
    return microseconds(begin, entries)


ROWS = (
    ("append", 0, ""),
    ("append, 1 tailing cursor", 1, ""),
    ("append, 4 tailing cursors", 4, ""),
    ("append, 1 cursor, cumulative acks", 1, "cumulative"),
    ("append, 1 cursor, acks in order", 1, "in order"),
    ("append, 1 cursor, acks one by one", 1, "one by one"),
    ("append, 1 cursor, every second acked", 1, "every second"),
)


def main() -> None:
    """Print a line a row; the best of three."""
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    for name, cursors_count, acknowledges in ROWS:
        best = min(
            asyncio.run(measure(entries, cursors_count, acknowledges=acknowledges))
            for _ in range(3)
        )
        print(f"{name:40} {best:6.2f} us/entry")


if __name__ == "__main__":
    main()
