"""When a run is over; the loads themselves are in test_command."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.cli.perf.loads import Run, topics_of
from pulsar_py.testing.clock import VirtualClock, run_virtual

GIVEN = {"num_messages": 0, "test_duration": 0.0, "stats_interval_seconds": 1.0}


def test_a_run_ends_with_its_messages_or_its_time() -> None:
    clock = VirtualClock()
    endless = Run(GIVEN, "produced", clock)
    counted = Run({**GIVEN, "num_messages": 2}, "produced", clock)
    timed = Run({**GIVEN, "test_duration": 5.0}, "produced", clock)
    assert [counted.begin_one() for _ in range(3)] == [True, True, False]
    assert timed.begin_one()
    clock.jump(5.0)
    assert not timed.begin_one()
    assert endless.begin_one()
    timed.start()
    assert timed.begin_one()


def test_lines_come_until_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        run = Run(GIVEN, "produced", VirtualClock())

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.report(), 3.5)
        run.end()

    run_virtual(work())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        *["Throughput produced"] * 3,
        "Aggregated throughput produced",
    ]


def test_many_topics_have_numbers() -> None:
    assert topics_of({"topic": "t", "num_topics": 1}) == ["t"]
    assert topics_of({"topic": "t", "num_topics": 2}) == ["t-0", "t-1"]
