"""Restarts and signals."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest

from pulsar_py.common.errors import ConfigurationError, ConnectError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.running.restarts import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_USAGE,
    RestartPolicy,
    run_with_restarts,
    stop_on_signals,
)
from pulsar_py.pipeline.running.watch import StoppedError, Watch
from tests.unit.pipeline.running.test_watch import Steps

QUICK = RestartPolicy(max_restarts=2, initial_seconds=0.001, maximum_seconds=0.001)


class Attempts:
    """Fails as often as wanted, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)


def run(attempts: Attempts, steps: Steps, policy: RestartPolicy = QUICK) -> int:
    return run_with_restarts(
        attempts,
        policy=policy,
        watch=Watch(steps),
        clock=SystemClock(),
        chance=random.Random(1),
    )


def test_it_is_started_again_after_a_failure() -> None:
    steps, attempts = Steps(), Attempts(ConnectError("a"), ConnectError("b"))
    assert run(attempts, steps) == EXIT_DONE
    assert attempts.count == 3
    assert [each.event for each in steps.steps] == ["restarting", "restarting", "finished"]


def test_it_is_given_up_after_too_many() -> None:
    steps, attempts = Steps(), Attempts(*[ConnectError("gone")] * 5)
    assert run(attempts, steps) == EXIT_FAILED
    assert attempts.count == 3
    assert steps.steps[-1].fields["reason"] == "ConnectError: gone"


def test_what_would_fail_again_is_not_repeated() -> None:
    attempts = Attempts(ConfigurationError("topic: none"))
    assert run(attempts, Steps()) == EXIT_USAGE
    assert attempts.count == 1


def test_who_is_stopped_is_done() -> None:
    steps = Steps()
    assert run(Attempts(StoppedError()), steps) == EXIT_DONE
    assert steps.steps[-1].event == "stopped"


def test_a_failure_after_the_wish_to_stop_is_no_failure() -> None:
    watch = Watch(Steps())
    watch.stop.set()
    code = run_with_restarts(
        Attempts(ConnectError("cut")),
        policy=QUICK,
        watch=watch,
        clock=SystemClock(),
        chance=random.Random(1),
    )
    assert code == EXIT_DONE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_mean_the_wish_to_stop(number: signal.Signals) -> None:
    stop = threading.Event()
    before = signal.getsignal(number)
    with stop_on_signals(stop):
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        assert signal.getsignal(number) == signal.SIG_DFL, "a second one ends the process"
    assert signal.getsignal(number) == before
