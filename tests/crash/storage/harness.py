"""One engine under a random load on a simulated disk, a crash, and what must hold afterwards.

The load is drawn from a seed, so a run without a crash tells how many write points there are, and
each of them can then be crashed at. `Model` remembers what the engine has promised; `check`
opens the disk again and compares. Invariants are counted by name.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from pulsar_py.common.errors import DiskFullError, LedgerNotFoundError, StorageError
from pulsar_py.ledgers.store import LedgerOptions, LedgerWriter
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.disk import SimulatedDisk
from tests.ledger_parts import all_ledgers

SETTINGS = BookieSettings(
    write_cache_bytes=6_000,
    append_limit_bytes=1_000_000,
    journal_group_bytes=2_000,
    journal_file_bytes=4_096,
    journal_block_bytes=512,
    once_group_bytes=900,
    once_section_bytes=300,
    once_entry_bytes=150,
    entry_log_bytes=4_000,
    flush_sync_bytes=1_000,
    are_entry_logs_direct=True,
    run_bytes=600,
    read_ahead_bytes=1_500,
    read_cache_bytes=4_000,
    index_cache_bytes=8_192,
    minimum_free_bytes=0,
    disk_check_interval_seconds=3600.0,
)
STEPS_COUNT = 40


class InvariantError(AssertionError):
    """Something that was promised does not hold."""


@dataclass
class PromisedLedger:
    """What is known about one ledger outside the engine."""

    pushed: int = -1
    confirmed: int = -1
    is_created: bool = False
    is_deletion_asked: bool = False
    is_deleted: bool = False
    end: int | None = None


@dataclass
class Model:
    """Everything the engine has promised; also every writer's listener."""

    ledgers: dict[int, PromisedLedger] = field(default_factory=dict)
    next_id: int = 1
    failed: set[int] = field(default_factory=set)

    async def next(self) -> int:
        """An id for a new ledger."""
        self.next_id += 1
        self.ledgers[self.next_id - 1] = PromisedLedger()
        return self.next_id - 1

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        promised = self.ledgers[ledger_id]
        if last_add_confirmed <= promised.confirmed:
            raise InvariantError(f"ledger {ledger_id}: confirmation does not grow")
        promised.confirmed = last_add_confirmed

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        if ledger_id in self.failed:
            raise InvariantError(f"ledger {ledger_id}: failed twice")
        self.failed.add(ledger_id)


def content(ledger_id: int, entry_id: int) -> bytes:
    """What entry `entry_id` of a ledger has to be."""
    size = 1 + (ledger_id * 7919 + entry_id * 104729) % 400
    return (b"%d:%d|" % (ledger_id, entry_id) * (size // 4 + 1))[:size]


async def start(disk: SimulatedDisk, model: Model, settings: BookieSettings = SETTINGS) -> Bookie:
    return await Bookie.start(disk, clock=VirtualClock(), ledger_ids=model, settings=settings)


class Load:
    """Random calls; what depends on chance depends on the seed alone."""

    def __init__(
        self, disk: SimulatedDisk, model: Model, seed: int, *, is_tolerant: bool = False
    ) -> None:
        # Whether calls may fail, because the disk does.
        self._is_tolerant = is_tolerant
        self._disk = disk
        self._model = model
        self._chance = random.Random(seed)
        self._writers: dict[int, LedgerWriter] = {}

    async def run(self) -> None:
        bookie = await start(self._disk, self._model)
        for _ in range(STEPS_COUNT):
            step = self._chance.choices(
                (self._create, self._append, self._end, self._delete, self._flush, self._collect),
                (3, 16, 2, 2, 2, 1),
            )[0]
            await self._do(bookie, step)
        self._disk.fault = None
        await self._do(bookie, self._append)
        await bookie.close()

    async def _do(self, bookie: Bookie, step: Callable[[Bookie], Awaitable[None]]) -> None:
        try:
            await step(bookie)
        except StorageError:
            if not self._is_tolerant or self._disk.is_crashed:
                raise
            # What the timer would do next: look whether there is room again.
            await bookie._housekeeper.check_room()

    async def _create(self, bookie: Bookie) -> None:
        writer = await bookie.create(self._model, LedgerOptions(custom_metadata={"k": b"v"}))
        self._model.ledgers[writer.ledger_id].is_created = True
        self._writers[writer.ledger_id] = writer

    async def _append(self, bookie: Bookie) -> None:
        for ledger_id, writer in list(self._writers.items()):
            if ledger_id in self._model.failed:
                del self._writers[ledger_id]
                continue
            for _ in range(self._chance.randint(0, 6)):
                writer.append(content(ledger_id, writer.last_add_pushed + 1))
                self._model.ledgers[ledger_id].pushed = writer.last_add_pushed
        for _ in range(self._chance.randint(0, 6)):
            await asyncio.sleep(0)

    async def _end(self, bookie: Bookie) -> None:
        if not self._writers:
            return
        ledger_id, writer = self._writers.popitem()
        promised = self._model.ledgers[ledger_id]
        if self._chance.random() < 0.5:
            await writer.close()
            promised.end = writer.last_add_confirmed
        else:
            reader = await bookie.recover(ledger_id)
            promised.end = reader.last_add_confirmed

    async def _delete(self, bookie: Bookie) -> None:
        living = [key for key, value in self._model.ledgers.items() if value.is_created]
        if not living:
            return
        ledger_id = self._chance.choice(living)
        promised = self._model.ledgers[ledger_id]
        self._writers.pop(ledger_id, None)
        promised.is_deletion_asked = True
        await bookie.delete(ledger_id)
        promised.is_deleted = True

    async def _flush(self, bookie: Bookie) -> None:
        await bookie.flush()

    async def _collect(self, bookie: Bookie) -> None:
        await bookie.collect_garbage(threshold=0.8)


class Faults:
    """Lets a share of all calls fail, once the engine has started."""

    def __init__(self, chance: random.Random, share: float) -> None:
        self._chance = chance
        self._share = share
        self.raised: Counter[str] = Counter()

    def __call__(self, kind: str, path: str) -> StorageError | None:
        # An engine that can't begin at all has promised nothing.
        if not path or kind == "make_directory":
            return None
        if self._chance.random() >= self._share:
            return None
        self.raised[kind] += 1
        if self._chance.random() < 0.5:
            return StorageError(f"{path}: Input/output error")
        return DiskFullError(f"{path}: No space left on device")


async def crash_run(
    seed: int,
    crash_at: int | None,
    ignored_syncs: Collection[str] = (),
    *,
    faults_share: float = 0.0,
) -> tuple[SimulatedDisk, Model]:
    """Run the load of a seed until its end or the crash; that share of disk calls fails."""
    chance = random.Random(f"{seed} {crash_at}")
    disk = SimulatedDisk(chance, crash_at=crash_at, ignored_syncs=ignored_syncs)
    model = Model()
    if faults_share:
        disk.fault = Faults(random.Random(seed), faults_share)
    crashed = asyncio.Event()
    disk.on_crash = crashed.set
    before = asyncio.all_tasks()
    load = asyncio.get_running_loop().create_task(
        Load(disk, model, seed, is_tolerant=faults_share > 0).run()
    )
    waiting = asyncio.get_running_loop().create_task(crashed.wait())
    await asyncio.wait((load, waiting), return_when=asyncio.FIRST_COMPLETED)
    if not disk.is_crashed:
        load.result()
    disk.bury()
    await end_tasks(before)
    return disk, model


async def end_tasks(before: set[asyncio.Task[object]]) -> None:
    """The dead process's tasks go with it."""
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def killed_and_then_crashed(
    disk: SimulatedDisk, model: Model, ignored_syncs: Collection[str] = ()
) -> SimulatedDisk:
    """What a crash leaves of a machine on which a killed process was followed by another one.

    That one finds what the first did not sync, makes a ledger, and so begins a journal file.
    """
    heir = disk.after_kill()
    heir.ignored_syncs = frozenset(ignored_syncs)
    before = asyncio.all_tasks()
    bookie = await start(heir, model)
    writer = await bookie.create(model, LedgerOptions())
    model.ledgers[writer.ledger_id].is_created = True
    heir.bury()
    await end_tasks(before)
    disk.syncs_seen |= heir.syncs_seen
    return heir.after_crash()


async def check(disk: SimulatedDisk, model: Model) -> Counter[str]:
    """Open what a crash left; twice, since the second start must find the same."""
    held: Counter[str] = Counter()
    ends: dict[int, int] = {}
    for attempt in range(2):
        bookie = await start(disk, model)
        await _check_ledgers(bookie, model, held, ends)
        if attempt:
            await _check_accounts(bookie)
            await bookie.close()
        else:
            before = asyncio.all_tasks()
            disk.bury()
            await end_tasks(before)
            disk = disk.after_crash()
    return held


async def _check_ledgers(
    bookie: Bookie, model: Model, held: Counter[str], ends: dict[int, int]
) -> None:
    listed = await all_ledgers(bookie)
    for ledger_id, promised in model.ledgers.items():
        try:
            info = await bookie.info(ledger_id)
        except LedgerNotFoundError:
            if promised.is_created and not promised.is_deletion_asked:
                raise InvariantError(f"created implies recovered: ledger {ledger_id}") from None
            if ledger_id in listed:
                raise InvariantError(f"ledger {ledger_id} is listed and missing") from None
            held["deleted stays deleted"] += promised.is_deleted
            continue
        if promised.is_deleted:
            raise InvariantError(f"deleted stays deleted: ledger {ledger_id}")
        if ledger_id not in listed:
            raise InvariantError(f"ledger {ledger_id} is there and not listed")
        last_entry_id = (await bookie.open(ledger_id)).last_add_confirmed
        if info.is_closed and info.last_entry_id != last_entry_id:
            raise InvariantError(f"ledger {ledger_id}: its record says {info.last_entry_id}")
        if last_entry_id < promised.confirmed:
            raise InvariantError(
                f"confirmed implies recovered: ledger {ledger_id} ends at "
                f"{last_entry_id}, confirmed was {promised.confirmed}"
            )
        if last_entry_id > promised.pushed:
            raise InvariantError(f"ledger {ledger_id}: entries nobody wrote")
        held["confirmed implies recovered"] += promised.confirmed + 1
        await _check_end(bookie, ledger_id, promised, ends)
        held["ends stay"] += promised.end is not None


async def _check_end(
    bookie: Bookie, ledger_id: int, promised: PromisedLedger, ends: dict[int, int]
) -> None:
    if promised.end is not None:
        info = await bookie.info(ledger_id)
        if not info.is_closed or info.last_entry_id != promised.end:
            raise InvariantError(f"ends stay: ledger {ledger_id} was ended at {promised.end}")
    reader = await bookie.recover(ledger_id)
    last = reader.last_add_confirmed
    if ends.setdefault(ledger_id, last) != last:
        raise InvariantError(f"positions are never reused: ledger {ledger_id} ended twice")
    length_bytes = entry_id = 0
    while entry_id <= last:
        for entry in await reader.read(entry_id, last, 2_000):
            if entry != content(ledger_id, entry_id):
                raise InvariantError(f"all or nothing: ledger {ledger_id} entry {entry_id}")
            entry_id += 1
            length_bytes += len(entry)
    if length_bytes != reader.length_bytes:
        raise InvariantError(f"ledger {ledger_id}: length {reader.length_bytes}")


async def _check_accounts(bookie: Bookie) -> None:
    """What the manifest says of each log is what the index refers to."""
    await bookie.flush()
    live: Counter[int] = Counter()
    for ledger_id in await all_ledgers(bookie):
        for location in (await bookie.storage.index.ledger_runs(ledger_id)).values():
            live[location.log_id] += location.length
    stated = {log_id: log.live_bytes for log_id, log in bookie.storage.manifest.logs.items()}
    if {log_id: size for log_id, size in stated.items() if size} != dict(live):
        raise InvariantError(f"live bytes are {dict(live)}, the manifest says {stated}")
