"""Managed ledgers on a real engine over a simulated disk, a crash, and what must hold afterwards.

Metadata outlives the crash as far as its puts have ended; before and after each of them stands a
crash point too, so that a run stops between every step of metadata and of ledgers. The load comes
from a seed. `Promises` remembers what was told to producers and consumers; `check` opens everything
again and compares. Invariants are counted by name.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

from pulsar_py.common.errors import InvalidCursorPositionError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata import paths
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.disk import SimulatedDisk
from tests.ledger_parts import all_ledgers

SETTINGS = BookieSettings(
    write_cache_bytes=20_000,
    append_limit_bytes=1_000_000,
    journal_file_bytes=16_384,
    journal_block_bytes=512,
    entry_log_bytes=16_000,
    are_entry_logs_direct=True,
    run_bytes=600,
    read_cache_bytes=4_000,
    index_cache_bytes=8_192,
    minimum_free_bytes=0,
    disk_check_interval_seconds=3600.0,
)
CONFIG = ManagedLedgerConfig(
    max_entries_per_ledger=5,
    minimum_rollover_seconds=0.0,
    cursor_persist_interval_seconds=0.02,
    cursor_max_entries_per_ledger=8,
    max_unacked_ranges_to_persist_in_metadata=2,
    max_ranges_in_cursor_entry=1,  # more are segments
)
CURSOR_MEMORY_BYTES = 30  # while it lives, hardly a segment stays in memory
NAMES = ("t/n/persistent/a", "t/n/persistent/b")
STEPS_COUNT = 30
SLOW_METADATA_TURNS = 12  # of the loop: long enough for a journal write to end meanwhile
BATCH = 3


class InvariantError(AssertionError):
    """Something that was promised does not hold."""


class SteppedMetadata:
    """A MetadataStore in front of another one, in which changes are crash points of the disk."""

    def __init__(self, inner, disk, turns):
        self._inner = inner
        self._turns = turns
        self._disk = disk

    def __getattr__(self, name):
        work = getattr(self._inner, name)
        if name not in ("put", "delete", "delete_recursive"):
            return work

        async def stepped(*arguments, **options):
            await self._disk.write_point("before metadata", name)
            for _ in range(self._turns):
                await asyncio.sleep(0)
            result = await work(*arguments, **options)
            await self._disk.write_point("after metadata", name)
            return result

        return stepped


@dataclass
class Acks:
    """What consumers of one subscription have acknowledged, as (position, index)."""

    known: set = field(default_factory=set)  # in memory, durable or not
    durable: set = field(default_factory=set)  # what a finished flush or reset covered
    mark_delete: Position = EARLIEST  # durable
    is_resetting: bool = False  # whether a reset was cut off
    resets: int = 0  # a receipt from before a reset promises nothing
    receipts: int = 0  # acknowledgements that a receipt said to be durable


@dataclass
class Promises:
    """What the managed ledgers have promised; it outlives the crash."""

    sent: dict[str, list[bytes]] = field(default_factory=dict)  # in order of appending
    confirmed: dict[str, dict[Position, bytes]] = field(default_factory=dict)
    acks: dict[tuple[str, str], Acks] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    deletion_asked: set[str] = field(default_factory=set)
    is_over: bool = False  # the process is dead: what its objects still say counts no more


class Listener:
    """One topic's producer side; contexts are the entries' bytes."""

    def __init__(self, name, promises):
        self.name = name
        self.promises = promises

    def on_appended(self, ledger_id, first_entry_id, contexts):
        if self.promises.is_over:
            return
        confirmed = self.promises.confirmed[self.name]
        for entry_id, data in enumerate(contexts, first_entry_id):
            position = Position(ledger_id, entry_id)
            if position in confirmed:
                raise InvariantError(f"{position} was given out twice")
            confirmed[position] = data

    def on_append_failed(self, contexts, error):
        if self.promises.is_over:
            return
        for data in contexts:
            self.promises.sent[self.name].remove(data)

    def on_fenced(self, error):
        raise InvariantError("nobody else is there")


class Load:
    """Random life of two topics; what depends on chance depends on the seed alone."""

    def __init__(self, opener, promises, seed):
        self.opener = opener
        self.promises = promises
        self.chance = random.Random(seed)
        self.number = 0

    async def run(self):
        steps = (self.append, self.acknowledge, self.flush, self.reset, self.reopen, self.delete)
        for _ in range(STEPS_COUNT):
            name = self.chance.choice(NAMES)
            ledger = await self.opened(name)
            step = self.chance.choices(steps, (10, 8, 3, 2, 2, 1))[0]
            await step(name, ledger)
        await self.opener.close()

    async def opened(self, name):
        promises = self.promises
        promises.sent.setdefault(name, [])
        promises.confirmed.setdefault(name, {})
        ledger = await self.opener.open(name, CONFIG)
        promises.created.add(name)
        ledger.listener = Listener(name, promises)
        if "sub" not in ledger.cursors:
            cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
            promises.acks[name, "sub"] = Acks(mark_delete=cursor.mark_delete_position)
        return ledger

    async def append(self, name, ledger):
        for _ in range(self.chance.randint(1, 7)):
            self.number += 1
            data = b"%s %d " % (name.encode(), self.number) * self.chance.randint(1, 9)
            self.promises.sent[name].append(data)
            ledger.append(data, data)
        for _ in range(self.chance.randint(0, 40)):
            await asyncio.sleep(0)

    async def acknowledge(self, name, ledger):
        acks = self.promises.acks[name, "sub"]
        cursor = ledger.cursors["sub"]
        there = [each for each in self.promises.confirmed[name] if ledger.contains(each)]
        if not there:
            return
        if self.chance.random() < 0.3:
            target = self.chance.choice(there[: 1 + len(there) // 3])
            try:
                cursor.acknowledge_cumulative(target)
            except InvalidCursorPositionError:
                return
            covered = [each for each in self.promises.confirmed[name] if each <= target]
            acks.known |= {(each, index) for each in covered for index in range(BATCH)}
            self.ask_for_receipt(acks, cursor)
            return
        for position in self.chance.sample(there, min(len(there), 4)):
            waiting = self.chance.choice([None, 0b110, 0b101, 0b001])
            cursor.acknowledge([position], [None if waiting is None else [waiting]])
            done = [each for each in range(BATCH) if not (waiting or 0) >> each & 1]
            acks.known |= {(position, each) for each in done}
        self.ask_for_receipt(acks, cursor)

    def ask_for_receipt(self, acks, cursor):
        """What is acknowledged is durable from the moment of the answer."""
        if self.chance.random() < 0.3:
            return
        known, mark_delete, resets = set(acks.known), cursor.mark_delete_position, acks.resets

        def on_durable(_, error):
            if error is None and resets == acks.resets and not self.promises.is_over:
                acks.receipts += len(known - acks.durable)
                acks.durable |= known
                acks.mark_delete = max(acks.mark_delete, mark_delete)

        cursor.when_durable(on_durable)

    async def flush(self, name, ledger):
        if self.chance.random() < 0.5:
            await asyncio.sleep(CONFIG.cursor_persist_interval_seconds * 1.5)
            return
        await self.write(name, ledger.cursors["sub"].flush(), ledger.cursors["sub"])

    async def write(self, name, work, cursor):
        acks = self.promises.acks[name, "sub"]
        known, mark_delete = set(acks.known), cursor.mark_delete_position
        await work
        acks.durable |= known
        acks.mark_delete = max(acks.mark_delete, mark_delete)

    async def reset(self, name, ledger):
        acks = self.promises.acks[name, "sub"]
        there = [each for each in self.promises.confirmed[name] if ledger.contains(each)]
        if not there:
            return
        target = self.chance.choice(there)
        acks.is_resetting = True
        acks.resets += 1
        cursor = ledger.cursors["sub"]
        await cursor.reset(target)
        before = [each for each in self.promises.confirmed[name] if each < target]
        acks.known = {(each, index) for each in before for index in range(BATCH)}
        acks.durable = set(acks.known)
        acks.mark_delete = cursor.mark_delete_position
        acks.is_resetting = False

    async def reopen(self, name, ledger):
        if self.chance.random() < 0.5:
            await ledger.roll_ledger()
            return
        await self.write(name, ledger.close(), ledger.cursors["sub"])

    async def delete(self, name, ledger):
        self.promises.deletion_asked.add(name)
        await ledger.delete()
        self.promises.deletion_asked.discard(name)
        self.promises.created.discard(name)
        for per_topic in (self.promises.sent, self.promises.confirmed):
            per_topic.pop(name)
        self.promises.acks.pop((name, "sub"))


class LedgerIds:
    """Counts in the metadata store, so that ids go on after a crash."""

    def __init__(self, metadata):
        self._metadata = metadata

    async def next(self):
        """The next one."""
        path = await self._metadata.create_sequential("/ledger-ids/ID-", b"")
        return paths.sequence_number(path)


async def started(disk, metadata, clock: Clock, *, turns: int = 0, **options):
    """An engine and an opener, as a process has them."""
    ids = LedgerIds(metadata)
    bookie = await Bookie.start(disk, clock=clock, ledger_ids=ids, settings=SETTINGS)
    stepped = SteppedMetadata(metadata, disk, turns)
    return bookie, ManagedLedgerOpener(bookie, stepped, clock, chance=random.Random(1), **options)


async def crash_run(seed, crash_at, metadata, clock):
    """Run the load of a seed until its end or the crash."""
    disk = SimulatedDisk(random.Random(f"{seed} {crash_at}"), crash_at=crash_at)
    promises = Promises()
    crashed = asyncio.Event()

    def on_crash():
        promises.is_over = True
        crashed.set()

    disk.on_crash = on_crash
    before = asyncio.all_tasks()

    async def life():
        turns = SLOW_METADATA_TURNS if seed % 2 else 0
        bookie, opener = await started(
            disk, metadata, clock, turns=turns, cursor_memory_bytes=CURSOR_MEMORY_BYTES
        )
        await Load(opener, promises, seed).run()
        await bookie.close()

    loop = asyncio.get_running_loop()
    load, waiting = loop.create_task(life()), loop.create_task(crashed.wait())
    await asyncio.wait((load, waiting), return_when=asyncio.FIRST_COMPLETED)
    if load.done():
        load.result()
    promises.is_over = True
    disk.bury()
    await end_tasks(before)
    return disk, promises


async def end_tasks(before):
    """The dead process's tasks go with it."""
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def check(disk, metadata, clock, promises) -> Counter[str]:
    """Open what a crash left, and compare with what was promised."""
    held: Counter[str] = Counter()
    bookie, opener = await started(disk.after_crash(), metadata, clock)
    for name in NAMES:
        if name in promises.deletion_asked or name not in promises.sent:
            # Cut off inside creation or deletion: it is there as a whole, or can be made anew.
            ledger = await opener.open(name, CONFIG)
            await ledger.append_and_wait(b"works")
            held["cut off and usable"] += 1
            continue
        if name in promises.created and not await opener.exists(name):
            raise InvariantError(f"{name} is gone")
        ledger = await opener.open(name, CONFIG)
        await check_entries(name, ledger, promises, held)
        check_cursor(name, ledger, promises, held)
        await check_new_positions(name, ledger, promises, held)
    await check_ledgers(bookie, opener, held)
    await opener.close()
    await bookie.close()
    return held


async def check_entries(name, ledger, promises, held):
    confirmed = promises.confirmed[name]
    first = ledger.first_position
    for position, data in confirmed.items():
        if position < first:
            check_trimmed(name, position, promises)
            continue
        if (await ledger.read_entry(position)).data != data:
            raise InvariantError(f"confirmed implies recovered: {name} {position}")
        held["confirmed implies recovered"] += 1
    unconfirmed = [data for data in promises.sent[name] if data not in confirmed.values()]
    await check_unconfirmed(name, ledger, unconfirmed, confirmed, held)
    everything = len(confirmed) + len(unconfirmed)
    if ledger.entries_count > everything:
        raise InvariantError(f"{name} has {ledger.entries_count} entries of {everything}")


def check_trimmed(name, position, promises):
    acks = promises.acks.get((name, "sub"))
    if acks and (position, 0) not in acks.known and not acks.is_resetting:
        raise InvariantError(f"unacknowledged data was trimmed: {name} {position}")


async def check_unconfirmed(name, ledger, unconfirmed, confirmed, held):
    """What stands behind the confirmed entries are the next ones that were sent, in order."""
    position = max(confirmed, default=EARLIEST)
    for data in unconfirmed:
        position = ledger.next_valid_position(position)
        if not ledger.contains(position):
            break
        if (await ledger.read_entry(position)).data != data:
            raise InvariantError(f"unconfirmed is all or nothing: {name} {position}")
        held["unconfirmed is all or nothing"] += 1


def check_cursor(name, ledger, promises, held):
    acks = promises.acks.get((name, "sub"))
    if acks is None:
        return
    cursor = ledger.cursors.get("sub")
    if cursor is None:
        raise InvariantError(f"created implies recovered: cursor of {name}")
    cursor.state.check()
    if acks.is_resetting:
        held["reset is all or nothing"] += 1
        return
    there = acks.mark_delete
    if cursor.mark_delete_position < there and ledger.count_entries_between(
        cursor.mark_delete_position, there
    ):
        raise InvariantError(
            f"mark-delete never moves back: {name} {cursor.mark_delete_position} < {there}"
        )
    held["mark-delete never moves back"] += 1
    check_acks(name, ledger, promises, held)


def check_acks(name, ledger, promises, held):
    acks, cursor = promises.acks[name, "sub"], ledger.cursors["sub"]
    held["cursors in segments are recovered"] += cursor.state.pages.is_tracking
    held["receipts last"] += acks.receipts
    for position, index in acks.durable:
        if not is_acknowledged(ledger, cursor, position, index):
            raise InvariantError(f"durable acks are recovered: {name} {position} {index}")
        held["durable acks are recovered"] += 1
    there = [each for each in promises.confirmed[name] if ledger.contains(each)]
    for position, index in ((each, index) for each in there for index in range(BATCH)):
        if (position, index) in acks.known:
            continue
        if is_acknowledged(ledger, cursor, position, index):
            raise InvariantError(f"no acks are invented: {name} {position} {index}")
        held["no acks are invented"] += 1


def is_acknowledged(ledger, cursor, position, index):
    if not ledger.contains(position) or cursor.is_acknowledged(position):
        return True
    words = cursor.batch_ack_set(position)
    return words is not None and not words[0] >> index & 1


async def check_new_positions(name, ledger, promises, held):
    seen = max(promises.confirmed[name], default=EARLIEST)
    last = ledger.last_confirmed_entry
    new = await ledger.append_and_wait(b"after the crash")
    if new <= max(seen, last):
        raise InvariantError(f"positions are never reused: {name} {new}")
    held["positions are never reused"] += 1


async def check_ledgers(bookie, opener, held):
    named = await opener.named_ledgers()
    stored = set(await all_ledgers(bookie))
    if named - stored:
        raise InvariantError(f"named and missing: {named - stored}")
    held["named ledgers exist"] += len(named)
    held["ledgers left over"] += len(stored - named)
