"""The machine of one seed: a disk, weather on it, metadata, and one process life after another.

Each life runs on a loop of its own in virtual time, from its start to a crash at a write point
drawn from the seed, to one between two calls, or to a clean end. After some of these the machine
itself goes on, with what the process had written and not synced. Metadata outlives it as far as
its changes have ended.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

from msgspec.structs import replace

from pulsar_py.common.errors import DiskFullError, MetadataError, StorageError
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.storage.bookie import Bookie
from pulsar_py.testing.clock import START_WALL_MILLIS, VirtualClock
from pulsar_py.testing.disk import SimulatedDisk
from tests.crash.managed_ledger.harness import CONFIG, SETTINGS, SteppedMetadata

ENGINE = replace(
    SETTINGS,
    once_group_bytes=100,
    once_section_bytes=60,
    once_entry_bytes=50,
    write_cache_bytes=3_000,
    journal_group_bytes=1_500,
    journal_file_bytes=4_096,
    journal_block_bytes=512,
    entry_log_bytes=3_000,
    run_bytes=400,
    read_ahead_bytes=1_000,
    fetch_ahead_bytes=600,
    read_cache_bytes=2_500,
    disk_check_interval_seconds=5.0,
    flush_interval_seconds=20.0,
    garbage_interval_seconds=60.0,
    minor_compaction_interval_seconds=100.0,
    major_compaction_interval_seconds=300.0,
)
GROUP_BYTES = (1_500, 300)
"""With small groups many are taken ahead, as with a fast publisher of large entries."""
LEDGERS = replace(
    CONFIG,
    creation_failure_backoff_seconds=1.0,
    unavailable_backoff_seconds=1.0,
    read_ahead_bytes=1_000,
)
KILLS_SHARE = 0.3
METADATA_LIMITS = (1_000, 2, 0)
"""Ranges that the metadata store takes where no cursor ledger does: what is left out was never
reported as written."""


METADATA_SLOW = "metadata slow"
METADATA_REFUSED = "metadata not changed"
METADATA_IN_DOUBT = "metadata changed, and an error"
METADATA_OTHER_OWNER = "metadata changed by another"
FENCING = (METADATA_IN_DOUBT, METADATA_OTHER_OWNER)
"""What a managed ledger may only notice with its next change, however late that is."""

METADATA_FAULTS = (METADATA_SLOW, METADATA_REFUSED, METADATA_IN_DOUBT, METADATA_OTHER_OWNER)


class LedgerIds:
    """Counts in the metadata store, so that ids go on after a crash."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata

    async def next(self) -> int:
        """The next one."""
        path = await self._metadata.create_sequential("/ledger-ids/ID-", b"")
        return paths.sequence_number(path)


class StormyMetadata:
    """A MetadataStore in front of another one, whose changes are slow, fail, or come too late."""

    def __init__(self, inner: MetadataStore, weather: Weather) -> None:
        self._inner = inner
        self._weather = weather

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._inner, name)
        if name not in ("put", "delete", "delete_recursive"):
            return work

        async def stormy(path: str, *arguments: Any, **options: Any) -> Any:
            fault = self._weather.metadata_fault()
            if fault == METADATA_SLOW:
                await asyncio.sleep(2.5)
            elif fault == METADATA_REFUSED:
                raise MetadataError(f"{path}: {fault}")
            elif fault == METADATA_OTHER_OWNER and (found := await self._inner.get(path)):
                await self._inner.put(path, found.value)
            result = await work(path, *arguments, **options)
            if fault == METADATA_IN_DOUBT:
                raise MetadataError(f"{path}: {fault}")
            return result

        return stormy


class Weather:
    """What the disk does to calls at present; changes between the calls of the workload."""

    def __init__(self, chance: random.Random, disk: SimulatedDisk) -> None:
        self._chance = chance
        self._disk = disk
        self._share = 0.0
        self._metadata_share = 0.0
        self.seen: Counter[str] = Counter()  # what may still have effects
        self.total: Counter[str] = Counter()
        disk.fault = self._fault

    def change(self) -> None:
        """Draw the next weather: fair for the most part."""
        self.clear()
        kinds = ("fair", "errors", "full", "slow", "short", "metadata")
        kind = self._chance.choices(kinds, (52, 9, 6, 9, 6, 18))
        if kind == ["metadata"]:
            self._metadata_share = self._chance.choice((0.05, 0.2, 0.6))
        elif kind == ["errors"]:
            self._share = self._chance.choice((0.05, 0.2, 0.6))
        elif kind == ["full"]:
            room = self._chance.choice((0, 1_000, 6_000))
            self._disk.capacity_bytes = self._disk._used() + room
            self.seen["full"] += 1
        elif kind == ["slow"]:
            self._disk.slow = self._slow
        elif kind == ["short"]:
            self._disk.shorten = self._shorten

    def clear(self) -> None:
        """Fair weather."""
        self._share = 0.0
        self._metadata_share = 0.0
        self._disk.capacity_bytes = None
        self._disk.slow = None
        self._disk.shorten = None

    def forget(self) -> None:
        """Nothing of what was seen may have effects any more, but what fences."""
        fencing = {each: self.seen.pop(each) for each in FENCING if each in self.seen}
        self.total += self.seen
        self.seen = Counter(fencing)

    def _fault(self, kind: str, path: str) -> StorageError | None:
        if not self._share or "metadata" in kind or self._chance.random() >= self._share:
            return None
        self.seen[f"failed {kind}"] += 1
        if self._chance.random() < 0.5:
            return StorageError(f"{path}: Input/output error")
        return DiskFullError(f"{path}: No space left on device")

    @property
    def may_fence(self) -> bool:
        """Whether changes of the metadata may look as if there was another owner."""
        return bool(self._metadata_share) or any(each in self.seen for each in FENCING)

    def metadata_fault(self) -> str | None:
        """What happens to a change of the metadata: a name of `METADATA_FAULTS`, or nothing."""
        if self._chance.random() >= self._metadata_share:
            return None
        fault = self._chance.choice(METADATA_FAULTS)
        (self.total if fault == METADATA_SLOW else self.seen)[fault] += 1
        return fault

    def _slow(self, path: str) -> float:
        self.total["slow sync"] += 1
        return self._chance.choice((0.0, 0.001, 0.5, 4.0))

    def _shorten(self, path: str, length: int) -> int:
        if self._chance.random() < 0.7:
            return length
        self.seen["short read"] += 1
        return self._chance.randint(0, length)


class Machine:
    """What stays when a process dies."""

    def __init__(self, seed: object) -> None:
        self.chance = random.Random(f"machine {seed}")
        self.disk = SimulatedDisk(random.Random(f"disk {seed}"))
        self.metadata = MemoryMetadataStore(VirtualClock())
        self.weather = Weather(self.chance, self.disk)
        self._wall_millis = START_WALL_MILLIS
        self._kills = random.Random(f"kills {seed}")
        limit = random.Random(f"limits {seed}").choice(METADATA_LIMITS)
        self.ledgers_config = replace(LEDGERS, max_unacked_ranges_to_persist_in_metadata=limit)
        group_bytes = random.Random(f"groups {seed}").choice(GROUP_BYTES)
        self.engine_settings = replace(ENGINE, journal_group_bytes=group_bytes)

    def reboot(self) -> None:
        """Go on with what the crash left; at times only the process has died."""
        self.disk.bury()
        ignored = self.disk.ignored_syncs
        is_kill = self._kills.random() < KILLS_SHARE
        self.disk = self.disk.after_kill() if is_kill else self.disk.after_crash()
        self.disk.ignored_syncs = ignored
        self.disk.capacity_bytes = None
        self.weather = Weather(self.chance, self.disk)
        self._wall_millis += 1_000_000

    async def start(self) -> tuple[Bookie, ManagedLedgerOpener]:
        """A process: an engine and an opener. Tries again in fair weather if the disk fails it."""
        clock = VirtualClock(start_wall_millis=self._wall_millis)
        try:
            bookie = await self._start_engine(clock)
        except StorageError:
            if not self.weather.seen or self.disk.is_crashed:
                raise
            self.weather.clear()
            bookie = await self._start_engine(clock)
        turns = self.chance.choice((0, 0, 12))
        metadata = StormyMetadata(SteppedMetadata(self.metadata, self.disk, turns), self.weather)
        return bookie, ManagedLedgerOpener(bookie, metadata, clock, chance=self.chance)

    async def _start_engine(self, clock: VirtualClock) -> Bookie:
        ids = LedgerIds(self.metadata)
        settings = self.engine_settings
        return await Bookie.start(self.disk, clock=clock, ledger_ids=ids, settings=settings)

    def damage(self) -> set[str]:
        """Flip bits at rest; returns the directories of the files hit."""
        hit = set()
        for _ in range(self.chance.randint(1, 3)):
            sizes = {path: len(self.disk._names[path].data) for path in self.disk.paths()}
            paths = [path for path, size in sizes.items() if size]
            if paths:
                path = self.chance.choice(paths)
                self.disk.flip_bit(
                    path, self.chance.randrange(sizes[path]), self.chance.randrange(8)
                )
                hit.add(path.split("/")[0])
        return hit


async def until_crash(machine: Machine, work: asyncio.Task[None], crashed: asyncio.Event) -> None:
    """Wait for the work's end or the crash, whichever is first; raises what the work raised."""
    waiting = asyncio.get_running_loop().create_task(crashed.wait())
    await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
    if work.done() and not machine.disk.is_crashed:
        work.result()
