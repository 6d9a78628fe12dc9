"""What tests of the managed ledger share: an opener on stores in memory, and a recording listener."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore

NAME = "public/default/persistent/topic"


class Recorder:
    """A listener that writes down what it hears."""

    def __init__(self):
        self.groups = []
        self.failed = []
        self.errors = []
        self.fenced = []

    def on_appended(self, ledger_id, first_entry_id, contexts):
        self.groups.append((ledger_id, first_entry_id, list(contexts)))

    def on_append_failed(self, contexts, error):
        self.failed += contexts
        self.errors.append(error)

    def on_fenced(self, error):
        self.fenced.append(error)

    @property
    def positions(self):
        return {
            context: (ledger_id, entry_id)
            for ledger_id, first, contexts in self.groups
            for entry_id, context in enumerate(contexts, first)
        }

    @property
    def order(self):
        return [context for _, _, contexts in self.groups for context in contexts]


@dataclass
class World:
    """Stores that outlive openers."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    store: SimulatedLedgerStore = field(default_factory=SimulatedLedgerStore)

    def __post_init__(self):
        self.metadata = MemoryMetadataStore(self.clock)

    def opener(self, **options):
        return ManagedLedgerOpener(
            self.store, self.metadata, self.clock, chance=random.Random(1), **options
        )

    async def open(self, config=None, *, name=NAME, opener=None, **options):
        """A managed ledger on a new opener, with a recorder listening."""
        opener = opener or self.opener()
        ledger = await opener.open(name, config or rolling(**options))
        ledger.listener = Recorder()
        return ledger


def rolling(max_entries=1000, **options):
    """Settings in which ledgers roll by entries alone, and nothing is trimmed."""
    defaults = {
        "max_entries_per_ledger": max_entries,
        "minimum_rollover_seconds": 0.0,
        "retention_seconds": -1,
        "retention_size_bytes": -1,
    }
    return ManagedLedgerConfig(**{**defaults, **options})


TRIMMING = {"retention_seconds": 0, "retention_size_bytes": 0}
"""Acknowledged data goes at once, as by default."""


async def settle():
    """Let everything that is ready run."""
    for _ in range(100):
        await asyncio.sleep(0)


async def append_all(ledger, count, *, prefix="m"):
    """Append entries `m0`, `m1` ...; returns their positions when all are durable."""
    return [await ledger.append_and_wait(f"{prefix}{number}".encode()) for number in range(count)]


def texts(entries):
    return [entry.data.decode() for entry in entries]


MANY = (1000, 1_000_000)
"""For reads without a limit that matters: entries and bytes."""
