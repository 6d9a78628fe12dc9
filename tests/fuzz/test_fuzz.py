"""The short form of fuzzing: the inputs that went wrong once, all good ones, and some changed ones."""

from __future__ import annotations

import pytest

from tests.fuzz.kept import kept
from tests.fuzz.run import INPUT_SECONDS, TRIES, Kind, LogWatch, Report, Watched, fuzz
from tests.fuzz.targets import KINDS

INPUTS = 2_000


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_nothing_goes_wrong(kind: Kind) -> None:
    report = await fuzz(kind, inputs_count=INPUTS, seed=31, kept=kept(kind.name))
    assert report.inputs_count == INPUTS
    # Milliseconds are looked at by `make fuzz`, on a machine that does nothing else.
    wrong = [each for each in report.findings if not each.problem.startswith("took ")]
    assert not wrong, "\n".join(f"{each.data[:300]!r}: {each.problem}" for each in wrong)


class Slow:
    """A target whose clock goes on by what is told for each time that it is fed."""

    def __init__(self, *seconds: float) -> None:
        self.seconds = list(seconds)
        self.now = 0.0

    def cpu_seconds(self) -> float:
        return self.now

    def seeds(self) -> list[bytes]:
        return []

    async def feed(self, data: bytes) -> None:
        del data
        self.now += self.seconds.pop(0)

    async def check(self) -> None:
        """Nobody else is served."""


async def test_what_is_slow_each_time_is_found_and_what_the_machine_did_is_counted() -> None:
    late = 2 * INPUT_SECONDS
    for seconds, found, counted in (
        ([0.01], 0, 0),
        ([late, 0.01], 0, 1),
        ([late] * (TRIES - 1) + [0.01], 0, 1),
        ([late] * TRIES, 1, 0),
    ):
        target, report = Slow(*seconds), Report()
        await Watched(target, report, LogWatch(), target.cpu_seconds).feed(b"x")
        assert target.seconds == []
        assert (len(report.findings), report.slow_once_count) == (found, counted)
        assert report.worst_seconds == pytest.approx(min(seconds))
        assert report.inputs_count == 1
