"""The short form of fuzzing: the inputs that went wrong once, all good ones, and some changed ones."""

from __future__ import annotations

from typing import Self

import pytest

from tests.fuzz.inputs import mutate_bytes
from tests.fuzz.kept import kept
from tests.fuzz.run import (
    BATCH_COUNT,
    BATCH_MEBIBYTES,
    INPUT_SECONDS,
    LONG_RUN_COUNT,
    SAMPLE_COUNT,
    TRIES,
    Kind,
    LogWatch,
    Report,
    Watched,
    fuzz,
)
from tests.fuzz.targets import KINDS, Frames

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


class Recorder:
    """A target that writes down what it is fed."""

    def __init__(self) -> None:
        self.inputs: list[bytes] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    def seeds(self) -> list[bytes]:
        return [b"a good input", b"another one"]

    async def feed(self, data: bytes) -> None:
        self.inputs.append(data)

    async def check(self) -> None:
        """Nobody else is served."""


async def test_a_run_that_was_ended_goes_on_where_it_was() -> None:
    whole, rest = Recorder(), Recorder()
    for target, first in ((whole, 0), (rest, BATCH_COUNT)):
        kind = Kind("any", lambda target=target: target, mutate_bytes)
        await fuzz(kind, inputs_count=3 * BATCH_COUNT, seed=1, first_input=first)
    assert len(whole.inputs) == 3 * BATCH_COUNT
    assert rest.inputs == whole.inputs[BATCH_COUNT:]
    assert len(set(whole.inputs)) > BATCH_COUNT


def test_memory_may_grow_in_the_first_half_of_a_long_run() -> None:
    samples_count = LONG_RUN_COUNT // SAMPLE_COUNT
    half, grown = samples_count // 2, BATCH_MEBIBYTES + 1
    short = Report(resident_mebibytes=[*range(samples_count - 1)])
    settled = Report(resident_mebibytes=[50] + [50 + grown] * (samples_count - 1))
    leaking = Report(resident_mebibytes=[50] * half + [50 + grown] * (samples_count - half))
    grown_by = [each.grown_mebibytes() for each in (short, settled, leaking)]
    assert grown_by == [0, 0, grown]


async def test_a_canary_that_sings_no_more_is_found() -> None:
    async with Frames() as target:
        report = Report()
        watched = Watched(target, report, LogWatch())
        await watched.check()
        assert report.findings == []
        assert target.songs_count
        await target.silence()
        await watched.check()
    assert [each.problem for each in report.findings if "nobody else" in each.problem]
