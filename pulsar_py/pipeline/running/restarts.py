"""Restarts a failed pipeline with back-off, and turns signals into requests to stop (edge).

Exit codes: 0 when the pipeline has finished or was stopped by request; 1 when it failed, also after
restarts; 2 when an option, a column or a permission is wrong, so that no restart would help.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pulsar_py.common.backoff import Backoff
from pulsar_py.common.loops.clock import Clock
from pulsar_py.pipeline.running.failures import is_final, reason_of
from pulsar_py.pipeline.running.watch import StoppedError, Watch

EXIT_DONE: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
HEALTHY_SECONDS: Final = 300.0
"""A failure after an attempt of this length is the first in a row again."""

_SHOW_CURSOR: Final = b"\x1b[?25h"


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` on SIGTERM and SIGINT; a second signal ends the process at once.

    The system's default handler ends it: an exception that is raised in the middle of a call to
    Java leads to further ones.
    """
    before: dict[signal.Signals, Any] = {}  # Any: handlers, as `signal` has them

    def on_signal(number: int, _frame: object) -> None:
        stop.set()
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _SHOW_CURSOR)  # bars hide it, and the process may end now
        signal.signal(number, signal.SIG_DFL)

    for each in (signal.SIGTERM, signal.SIGINT):
        before[each] = signal.signal(each, on_signal)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often a failed pipeline is restarted, and after which delays."""

    # Restarts in a row; None for no limit.
    max_restarts: int | None = 3
    initial_seconds: float = 1.0
    maximum_seconds: float = 60.0


def run_with_restarts(
    attempt: Callable[[], object],
    *,
    policy: RestartPolicy,
    watch: Watch,
    clock: Clock,
    chance: random.Random,
) -> int:
    """Run a pipeline, and restart it when it fails; returns the exit code.

    Args:
        attempt: Runs the pipeline once.
        policy: How often and when it is restarted.
        watch: Gets the outcome; its request to stop ends a delay, too.
        clock: Measures how long an attempt ran.
        chance: Spreads the delays.
    """
    backoff = Backoff(
        chance, initial_seconds=policy.initial_seconds, maximum_seconds=policy.maximum_seconds
    )
    failures = 0
    while True:
        began = clock.monotonic_seconds()
        try:
            attempt()
        except StoppedError:
            watch.report("stopped")
            return EXIT_DONE
        except Exception as error:  # noqa: BLE001 - the outermost edge: any failure is reported and restarted
            if watch.stop.is_set():
                watch.report("stopped", reason=reason_of(error))
                return EXIT_DONE
            if is_final(error):
                watch.report("failed", reason=reason_of(error))
                return EXIT_USAGE
            if clock.monotonic_seconds() - began >= HEALTHY_SECONDS:
                failures = 0
                backoff.reset()
            failures += 1
            if policy.max_restarts is not None and failures > policy.max_restarts:
                watch.report("failed", reason=reason_of(error), restarts=failures - 1)
                return EXIT_FAILED
            delay = backoff.next_delay(clock.monotonic_seconds())
            watch.report(
                "restarting", reason=reason_of(error), restart=failures, seconds=round(delay, 1)
            )
            if watch.stop.wait(delay):
                watch.report("stopped")
                return EXIT_DONE
        else:
            watch.report("finished")
            return EXIT_DONE
