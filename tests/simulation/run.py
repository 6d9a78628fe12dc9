"""One seed from its first start to its last look at everything."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pulsar_py.common.errors import (
    CorruptDataError,
    ManagedLedgerError,
    MetadataError,
    StorageError,
)
from pulsar_py.testing.network import run_simulated
from tests.simulation.checks import check_damaged
from tests.simulation.machine import Machine, until_crash
from tests.simulation.model import SERVED, InvariantError, Model
from tests.simulation.workload import Life

DAMAGED_SHARE = 0.12  # of seeds end with flipped bits


@dataclass(frozen=True)
class Outcome:
    """What a seed came to."""

    held: Counter[str]
    faults: Counter[str]
    digest: str


class SeedError(AssertionError):
    """An invariant does not hold; the message has the command that shows it again."""


def run_seed(seed: int, *, ignored_syncs: Collection[str] = ()) -> Outcome:
    """Run a seed.

    Raises:
        SeedError: An invariant does not hold, or something raised what it may not.
    """
    try:
        with _silence():
            return _run(seed, ignored_syncs)
    except Exception as error:
        again = f"python -m tests.simulation --first {seed} --seeds 1"
        raise SeedError(f"seed {seed}: {error!r}; again: {again}") from error


@contextmanager
def _silence() -> Iterator[None]:
    """Thousands of expected warnings cost time."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _run(seed: int, ignored_syncs: Collection[str]) -> Outcome:
    machine, model, trace = Machine(seed), Model(), hashlib.sha256()
    machine.disk.ignored_syncs = frozenset(ignored_syncs)
    chance, number = machine.chance, [0]
    faults: Counter[str] = Counter()
    for _ in range(chance.randint(1, 3)):
        crash_at = chance.choice((None, chance.randint(1, 40), chance.randint(1, 400)))
        machine.disk.crash_at = crash_at
        life = Life(machine, model, trace, number)
        work = life.run(chance.randint(5, 22), ends_cleanly=chance.random() < 0.5)
        run_simulated(_live(machine, model, work))
        faults += machine.weather.seen + machine.weather.total
        faults["crash"] += machine.disk.write_points_count == crash_at
        faults["restart"] += 1
        machine.reboot()
    if chance.random() < DAMAGED_SHARE:
        model.damaged = machine.damage()
        faults["damage"] += bool(model.damaged)
        run_simulated(_live(machine, model, _look_at_damage(machine, model)))
    else:
        run_simulated(_live(machine, model, Life(machine, model, trace, number).run_last()))
    trace.update(repr(sorted(model.held.items())).encode())
    trace.update(repr(machine.disk.paths()).encode())
    return Outcome(model.held, faults, trace.hexdigest())


async def _live(machine: Machine, model: Model, work) -> None:
    crashed = asyncio.Event()

    def on_crash() -> None:
        model.is_over = True
        crashed.set()

    model.is_over = False
    machine.disk.on_crash = on_crash
    try:
        await until_crash(machine, asyncio.get_running_loop().create_task(work), crashed)
    finally:
        model.is_over = True
        machine.disk.bury()


async def _look_at_damage(machine: Machine, model: Model) -> None:
    """Everything that can still be read is right; what can't says so."""
    try:
        _, opener = await machine.start()
    except CorruptDataError:
        model.held[SERVED] += 1
        return
    for name, promise in model.topics.items():
        try:
            ledger = await opener.open(name, machine.ledgers_config, create_if_missing=False)
        except (StorageError, MetadataError, ManagedLedgerError):
            model.held["corruption reported"] += 1
            continue
        for position in promise.confirmed:
            # The last block of a journal can't be told from a torn write once it is damaged.
            is_there = position < ledger.first_position or ledger.contains(position)
            if "journal" not in model.damaged and not is_there:
                raise InvariantError(f"{SERVED}: {name} {position} is gone")
        await check_damaged(name, ledger, model)
