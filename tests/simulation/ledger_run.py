"""One seed of stores and managed ledgers without clients, from the first owner to the last."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from pulsar_py.common.errors import StorageError, StoreBusyError
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import LedgerOptions, LedgerReader
from pulsar_py.managed_ledger.cursors import state_reading, store
from pulsar_py.managed_ledger.log.appender import Appender
from pulsar_py.testing.network import run_simulated
from tests.simulation.ledger_judge import (
    BUSY,
    COLLECTED,
    DELETED,
    PINS,
    TAIL,
    TASKS,
    WORKS,
    LedgerJudge,
)
from tests.simulation.ledger_workload import FAILURES, LedgerWork
from tests.simulation.ledger_world import (
    SESSION_SECONDS,
    TOPICS,
    Process,
    World,
    draw_ledger_faults,
    mark_tasks,
    task_failures,
)
from tests.simulation.run import Outcome, SeedError

FOREIGN = {1_000_001: {}, 1_000_002: labels.managed_ledger("elsewhere", TOPICS[0])}
"""Ledgers that are not ours, and their labels."""


def run_ledger_seed(seed: int) -> Outcome:
    """Run a seed.

    Raises:
        SeedError: An invariant does not hold, or something raised what it may not.
    """
    try:
        with task_failures() as failures:
            return _Run(seed, failures).outcome()
    except Exception as error:
        again = f"python -m tests.simulation --ledgers {seed} 1"
        raise SeedError(f"seed {seed}: {error!r}; again: {again}") from error


class _Run:
    def __init__(self, seed: int, failures: list[str]) -> None:
        self._seed = seed
        self._failures = failures
        self._trace = hashlib.sha256()
        self._world: World

    def outcome(self) -> Outcome:
        run_simulated(self._run())
        judge, world = self._world.judge, self._world
        self._trace.update(repr(sorted(judge.held.items())).encode())
        self._trace.update(repr(sorted(world.ledgers.counts.items())).encode())
        return Outcome(judge.held, world.counts, self._trace.hexdigest())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_exception)
        mark_tasks(loop)
        self._world = world = World(self._seed)
        for ledger_id, custom_metadata in FOREIGN.items():
            world.ledgers.create(ledger_id, LedgerOptions(custom_metadata=custom_metadata))
        with refusals_watched(world.judge), tails_watched(world.judge):
            await self._play()
        self._check()

    async def _play(self) -> None:
        loop, world = asyncio.get_running_loop(), self._world
        owners_count = world.chance.choice((2, 2, 3))
        lives = [loop.create_task(self._live(number)) for number in range(owners_count)]
        chaos = loop.create_task(self._disturb())
        try:
            await asyncio.gather(*lives)
            chaos.cancel()
            await asyncio.wait([chaos])
            await self._settle()
            await self._end()
        finally:
            world.judge.is_over = True
            for process in list(world.processes):
                world.crash(process)

    def _on_exception(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._failures.append(f"{context.get('message')}: {error!r}")

    def _check(self) -> None:
        self._world.ledgers.check()
        self._world.judge.raise_violations()
        self._world.judge.require(TASKS, holds=not self._failures, detail=self._failures[:3])

    async def _live(self, number: int) -> None:
        """One owner after the other, each after the last one's death."""
        world, chance = self._world, self._world.chance
        steps_count = chance.randint(8, 30)
        for life in range(5):
            process = world.start(f"owner-{number}-{life}")
            work = LedgerWork(process, self._trace)
            drivers = [process.spawn(work.run(steps_count)) for _ in range(chance.choice((1, 2)))]
            done, _ = await asyncio.wait(drivers, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                if not task.cancelled():
                    task.result()
            self._check()
            if not process.is_dead:
                return
            steps_count = max(steps_count // 2, 3)
            await asyncio.sleep(chance.choice((0.0, 2.0, 2 * SESSION_SECONDS)))

    async def _disturb(self) -> None:
        """Change the weather, freeze, cut off, expire, repair."""
        world, chance = self._world, self._world.chance
        while True:
            await asyncio.sleep(chance.expovariate(1 / 4.0))
            if not world.processes:
                continue
            process = chance.choice(world.processes)
            kinds = ("freeze", "crash", "expire", "cut", "repair", "weather", "stale")
            [kind] = chance.choices(kinds, (5, 2, 2, 2, 5, 3, 3))
            world.counts[kind] += 1
            if kind == "freeze":
                process.freeze()
                seconds = chance.choice((0.5, 3.0, 2 * SESSION_SECONDS))
                asyncio.get_running_loop().call_later(seconds, process.thaw)
            elif kind == "crash":
                world.crash(process)
            elif kind == "expire":
                process.metadata.expire()
            elif kind == "cut":
                process.metadata.cut(chance.uniform(0.1, 3.0))
            elif kind == "repair":
                world.repair()
            elif kind == "weather":
                world.ledgers.faults = draw_ledger_faults(chance)
            else:
                process.ownership.is_stale = not process.ownership.is_stale

    # Calm weather

    async def _settle(self) -> None:
        """Every topic works, whoever has it."""
        world, chance = self._world, self._world.chance
        world.calm()
        for process in world.processes:
            process.ownership.is_stale = False
        world.start("last")
        await asyncio.sleep(3 * SESSION_SECONDS)
        for name in TOPICS:
            for process in chance.sample(world.processes, min(2, len(world.processes))):
                await self._hand_over(name, process)
                work = LedgerWork(process, self._trace)
                await self._await(process, work.must(work.look_at, name))

    async def _await(self, process: Process, work: Any) -> None:
        await process.spawn(work)
        self._check()

    async def _hand_over(self, name: str, to: Process) -> None:
        """Have all others give it up, and let `to` take it."""
        for process in self._world.processes:
            work = LedgerWork(process, self._trace)
            if process is not to:
                await self._await(process, work.do(work.give_up, name))
            elif not await work.has(name):
                await self._await(process, work.do(work.close_topic, name))
        has = await to.spawn(to.ownership.acquire(name))
        self._world.judge.require(WORKS, holds=has, detail=(name, "is nobody's"))

    async def _end(self) -> None:
        """Delete some, collect the rest, close all."""
        world, judge = self._world, self._world.judge
        for name in TOPICS:
            process = world.chance.choice(world.processes)
            if world.chance.random() < 0.5:
                await self._hand_over(name, process)
                work = LedgerWork(process, self._trace)
                await self._await(process, work.must(work.delete_topic, name))
                left = judge.cursor_names(name) or name in judge.topics
                judge.require(DELETED, holds=not left, detail=(name, left))
        process = world.start("janitor")
        await process.spawn(self._collect(process))
        for each in list(world.processes):
            await each.spawn(self._close(each))
        self._check()

    async def _collect(self, process: Process) -> None:
        """What nobody names goes, at once."""
        judge, ledgers = self._world.judge, self._world.ledgers
        await asyncio.sleep(2 * CURSORS_WRITTEN_AFTER_SECONDS)
        try:
            await process.new_collector(0.0).collect()
        except FAILURES as error:
            judge.require(WORKS, holds=False, detail=f"collect: {error!r}")
        kept = {each for each in ledgers.ledgers if judge.exists(each)}
        left = kept - judge.referenced() - FOREIGN.keys()
        judge.require(COLLECTED, holds=not left, detail=("left", left))
        judge.require(COLLECTED, holds=kept >= FOREIGN.keys(), detail=("foreign", kept))

    async def _close(self, process: Process) -> None:
        judge, world = self._world.judge, self._world
        await process.close()
        world.processes.remove(process)
        store = process.store
        pinned = store.pending_bytes, store.pins.rest_bytes, store.pins._pinned
        judge.require(PINS, holds=pinned == (0, 0, {}), detail=pinned)
        left = [task for task in process.tasks() if task is not asyncio.current_task()]
        judge.require(TASKS, holds=not left, detail=left)


CURSORS_WRITTEN_AFTER_SECONDS = 1.0
TAIL_ENTRIES = 16
"""Entries of a cursor ledger that one read has to give."""


@contextmanager
def refusals_watched(judge: LedgerJudge) -> Iterator[None]:
    """Look at each append that a busy store refuses: its ledger goes on with the next one."""
    on_append_error = Appender._on_append_error

    def watched(appender: Any, data: bytes, context: Any, error: StorageError) -> None:
        on_append_error(appender, data, context, error)
        if isinstance(error, StoreBusyError):
            judge.expect(BUSY, holds=appender._writer is not None, detail=repr(error))

    with patch.object(Appender, "_on_append_error", watched):
        yield


@contextmanager
def tails_watched(judge: LedgerJudge) -> Iterator[None]:
    """Count the reads by which the newest state of each opened cursor is looked for.

    A read that gives less than it could have asked for costs two more: of the entry alone, and on.
    """
    read_state, read_tail = state_reading.last_whole_state, state_reading._read_tail
    counts: dict[LedgerReader, list[int]] = {}  # of reads, and of those that gave less

    async def watched_state(reader: LedgerReader, room_bytes: int) -> Any:
        reads = counts[reader] = [0, 0]
        found = await read_state(reader, room_bytes)
        del counts[reader]
        most = 1 + reader.last_add_confirmed // TAIL_ENTRIES + 2 * reads[1]
        judge.expect(TAIL, holds=reads[0] <= most, detail=(reader.ledger_id, reads, most))
        return found

    async def watched_tail(reader: LedgerReader, entry_id: int, entries_count: int) -> Any:
        reads = counts[reader]
        reads[0] += 1
        found = await read_tail(reader, entry_id, entries_count)
        reads[1] += len(found) < min(entries_count, entry_id + 1)
        return found

    with (
        patch.object(store, "last_whole_state", watched_state),
        patch.object(state_reading, "_read_tail", watched_tail),
    ):
        yield
