"""When a run is over; the loads themselves are in test_command."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pulsar_py.cli.perf.loads import Run, payloads_of, subscriptions_of, topics_of
from pulsar_py.testing.clock import VirtualClock, run_virtual

GIVEN = {
    "num_messages": 0,
    "test_duration": 0.0,
    "stats_interval_seconds": 1.0,
    "output": "text",
    "histogram_file": None,
}


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


def test_many_subscriptions_have_numbers() -> None:
    given = {"subscriptions": "a,b", "num_subscriptions": 1}
    assert subscriptions_of(given) == ["a", "b"]
    assert subscriptions_of({**given, "num_subscriptions": 3}) == ["a-0", "a-1", "a-2"]


def test_payloads_are_zeros_or_those_of_a_file(tmp_path: Path) -> None:
    assert payloads_of({"payload_file": None, "size": 3}) == [b"\0\0\0"]
    path = tmp_path / "payloads"
    path.write_bytes(b"one\ntwo;2\n")
    given = {"payload_file": path, "payload_delimiter": "\\n"}
    assert payloads_of(given) == [b"one", b"two;2"]
    assert payloads_of({**given, "payload_delimiter": ";"}) == [b"one\ntwo", b"2\n"]
    path.write_bytes(b"\n")
    with pytest.raises(ValueError, match="no payload"):
        payloads_of(given)
