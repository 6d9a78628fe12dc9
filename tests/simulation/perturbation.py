"""One minute of a soak in a process that is unlike others, to show that its course is the same.

    python -m tests.simulation.perturbation --seed 5 --salt 1 --steps /tmp/1
    python -m tests.simulation.perturbation --seed 5 --salt 2 --steps /tmp/2
    diff /tmp/1 /tmp/2                              # the first line is the first divergence

What differs by `--salt`, beside what differs between any two processes: the hashes of our objects
(so that sets of them have another order), where the allocator puts things, how long steps take in
real time, and when the garbage collector would run. Salt 0 is a process as it comes. Printed are the
soak's digest and one of all steps of the loop: which callback, of which task, when.
"""

# ruff: noqa: T201 - it prints what it found.

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

from pulsar_py.server.connection.connections import Connections
from pulsar_py.testing.sealing import unsealed
from tests.simulation.client_soak import run_soak

DISTURBED_EVERY_STEPS = 97
SLOW_EVERY_STEPS = 2_003
_HASH_BITS = 61
_FACTOR = 0x9E3779B97F4A7C15  # odd, so that no two addresses get one hash


class Disturbance:
    """Makes this process unlike others."""

    def __init__(self, salt: int) -> None:
        self._chance = random.Random(salt)
        self._litter: list[object] = []
        self._steps_count = 0

    def begin(self) -> None:
        """Before the world is made."""
        self._drop_and_take(50_000)
        shift = self._chance.getrandbits(_HASH_BITS)

        def salted(each: object) -> int:
            return (id(each) * _FACTOR ^ shift) % (1 << _HASH_BITS)

        for found in _our_classes():
            found.__hash__ = salted  # type: ignore[method-assign,assignment]

    def step(self) -> None:
        """Before a step of the loop."""
        self._steps_count += 1
        if self._steps_count % DISTURBED_EVERY_STEPS == 0:
            self._drop_and_take(10)
            assert not gc.isenabled(), "the collector runs when it likes"
        if self._steps_count % SLOW_EVERY_STEPS == 0:
            with unsealed():
                time.sleep(self._chance.random() / 200)  # noqa: TID251 - a slow machine

    def _drop_and_take(self, count: int) -> None:
        """Leave holes of all sizes where new objects go."""
        litter, chance = self._litter, self._chance
        for _ in range(count):
            litter.append(bytes(chance.randint(1, 480)))
            if chance.random() < 0.5:
                index = chance.randrange(len(litter))
                litter[index] = litter[-1]
                litter.pop()


def _our_classes() -> list[type]:
    """Those that hash by address."""
    found = {
        each: None
        for name, module in list(sys.modules.items())
        if name.startswith(("pulsar_py.", "tests."))
        for each in vars(module).values()
        if isinstance(each, type) and str(each.__module__).startswith(("pulsar_py.", "tests."))
    }
    return [each for each in found if each.__hash__ is object.__hash__]


class Steps:
    """Every callback that the loop ran."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def note(self, now: float, callback: Callable[..., object]) -> None:
        """Take one in."""
        line = f"{now:.9f} {_name_of(callback)}\n"
        self._hash.update(line.encode())
        if self._file is not None:
            self._file.write(line)

    @property
    def digest(self) -> str:
        """Equal for equal steps."""
        return self._hash.hexdigest()


def _name_of(callback: Callable[..., object]) -> str:
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return f"task {owner.get_coro().__qualname__}"  # type: ignore[union-attr]
    return str(getattr(callback, "__qualname__", type(callback).__name__))


@contextmanager
def observed(steps: Steps, disturbance: Disturbance | None) -> Iterator[None]:
    """Note every step of every loop, and disturb it."""
    original = asyncio.Handle._run

    def run(self: asyncio.Handle) -> None:
        if disturbance is not None:
            disturbance.step()
        steps.note(self._loop.time(), self._callback)  # type: ignore[attr-defined]
        original(self)

    with patch.object(asyncio.Handle, "_run", run):
        yield


def pings_by_address() -> Any:
    """A bug put in on purpose: connections are swept in the order of a set of them."""
    original = Connections._sweep

    def sweep(self: Connections) -> None:
        self._open = dict.fromkeys(set(self._open))
        original(self)

    return patch.object(Connections, "_sweep", sweep)


def main() -> None:
    """Print both digests."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.perturbation")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--salt", type=int, default=0)
    parser.add_argument("--steps", type=Path, help="a file for all steps")
    parser.add_argument("--broken", action="store_true", help="sweep connections by address")
    arguments = parser.parse_args()
    disturbance = Disturbance(arguments.salt) if arguments.salt else None
    with ExitStack() as stack:
        file = stack.enter_context(arguments.steps.open("w")) if arguments.steps else None
        steps = Steps(file)
        if arguments.broken:
            stack.enter_context(pings_by_address())
        if disturbance is not None:
            disturbance.begin()
        stack.enter_context(observed(steps, disturbance))
        outcome = run_soak(arguments.seed, arguments.minutes)
    print(outcome.digest, steps.digest)


if __name__ == "__main__":
    main()
