"""A few minutes of the client's soak; an hour is slow. Bugs put in on purpose have to be found.

`python -m tests.simulation.client_soak --minutes 60 --seed 7` runs as much as wanted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any
from unittest.mock import patch

import pytest

from pulsar_py.client.producing.outbox import Outbox
from pulsar_py.client.producing.pending_messages import PendingMessages
from pulsar_py.client.receiving.chunk_assembly import ChunkAssembly, ChunkOutcome
from pulsar_py.client.receiving.receiver import Receiver
from tests.simulation.client_model import ARRIVES, INVARIANTS, ORDER, Outcome
from tests.simulation.client_soak import SoakError, run_soak

FAULTS = ("cut", "torn", "stall", "drop", "outage")


def check(outcome: Outcome, *, confirmed: int) -> None:
    print("held:", dict(outcome.held), "met:", dict(outcome.faults))  # noqa: T201 - if it fails
    assert outcome.confirmed >= confirmed
    assert all(outcome.held[name] >= 1 for name in INVARIANTS)
    assert outcome.held[ARRIVES] >= outcome.confirmed
    assert outcome.held[ORDER] >= outcome.confirmed


def test_every_invariant_holds_in_a_few_minutes() -> None:
    outcome = run_soak(3, 3)
    check(outcome, confirmed=6_000)
    assert all(outcome.faults[kind] for kind in FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, 101])
def test_every_invariant_holds_for_an_hour(seed: int) -> None:
    outcome = run_soak(seed, 60)
    check(outcome, confirmed=150_000)
    assert all(outcome.faults[kind] >= 5 for kind in FAULTS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_060))
def test_every_invariant_holds_for_many_seeds(seed: int) -> None:
    check(run_soak(seed, 5), confirmed=8_000)


def digests(*arguments: str, salts: tuple[int, ...]) -> set[str]:
    """What processes that are as unlike as can be make of one seed."""
    command = [sys.executable, "-m", "tests.simulation.perturbation", *arguments]
    return {
        subprocess.run(
            [*command, "--salt", str(salt)],
            env={**os.environ, "PYTHONHASHSEED": str(salt)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for salt in salts
    }


def test_a_seed_replays_exactly_in_another_process() -> None:
    assert len(digests("--seed", "5", salts=(0, 1))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 40))
def test_many_seeds_replay_exactly_in_another_process(seed: int) -> None:
    assert len(digests("--seed", str(seed), "--minutes", "5", salts=(0, 1, 2, 3))) == 1


def test_an_order_that_hangs_on_addresses_is_found() -> None:
    found: set[str] = set()
    for salt in range(1, 9):  # of two processes one in twenty has the other's order by chance
        found |= digests("--broken", salts=(salt,))
        if len(found) > 1:
            break
    assert len(found) > 1


# --- bugs put in on purpose --------------------------------------------------------------------


@contextmanager
def nothing_is_sent_again() -> Iterator[None]:
    """After a reconnect only new messages go out; the old ones count as confirmed."""
    original = Outbox.attach

    def attach(self: Outbox, cnx: Any) -> None:
        entries = self._pending.take_all()
        original(self, cnx)
        for entry in entries:
            entry.ledger_id = entry.entry_id = -1
        self._confirmed += entries
        self.settle()

    with patch.object(Outbox, "attach", attach):
        yield


@contextmanager
def the_newest_is_sent_first() -> Iterator[None]:
    """After a reconnect messages go out in the opposite order."""
    original = PendingMessages.__iter__
    with patch.object(PendingMessages, "__iter__", lambda self: reversed(list(original(self)))):
        yield


@contextmanager
def one_message_in_a_thousand_is_swallowed() -> Iterator[None]:
    original = Receiver.take

    def take(self: Receiver) -> Any:
        message = original(self)
        if message is not None and message.sequence_id() % 1000 == 77:
            return original(self)
        return message

    with patch.object(Receiver, "take", take):
        yield


@contextmanager
def chunks_that_are_left_over_stay() -> Iterator[None]:
    def expire(self: ChunkAssembly, now: float) -> ChunkOutcome:
        self._buffers.clear()
        return ChunkOutcome()

    with patch.object(ChunkAssembly, "expire", expire):
        yield


MUTATIONS = {
    nothing_is_sent_again: (10, 2),
    the_newest_is_sent_first: (10, 2),
    one_message_in_a_thousand_is_swallowed: (10, 3),
    chunks_that_are_left_over_stay: (15, 3),
}
"""The seed that found it last, and its minutes; they move with every change of what the client does."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.__name__)
def test_a_bug_is_found(mutation: Any) -> None:
    with mutation():
        known = (MUTATIONS[mutation],)
        others = ((seed, 3) for seed in range(10, 16))
        assert not all(holds(seed, minutes) for seed, minutes in chain(known, others))


def holds(seed: int, minutes: float) -> bool:
    try:
        run_soak(seed, minutes)
    except SoakError:
        return False
    return True
