"""`pulsar-py perf` against a broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.perf.command import perf


@pytest.fixture(autouse=True)
def _here(session_pulsar_broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_PY_SERVICE_URL", session_pulsar_broker.service_url)
    monkeypatch.setenv("PULSAR_PY_CONTEXTS", "/none")
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)


def run(line: str) -> Result:
    return CliRunner().invoke(perf, line.split())


def test_what_is_produced_is_received_and_read() -> None:
    done = run("produce perf-a -m 40 -r 0 -s 100 -n 2 -t 2 -z LZ4")
    assert done.exit_code == 0, done.output
    assert "Aggregated throughput produced: 40 msg --- " in done.output
    assert "99.99pct: " in done.output
    done = run("consume perf-a -t 2 -m 40 -sp Earliest -ss a,b -st Shared")
    assert "Aggregated throughput received: 40 msg --- " in done.output
    done = run("read perf-a-0 -n 10")
    assert "Aggregated throughput read: 10 msg --- " in done.output


def test_payloads_keys_and_figures_for_programs(tmp_path: Path) -> None:
    payloads, histogram = tmp_path / "payloads", tmp_path / "histogram.csv"
    payloads.write_text("one\ntwo")
    done = run(
        f"produce perf-d -m 20 -r 0 -f {payloads} -mk autoIncrement -pn me -am Exclusive "
        f"--output json --histogram-file {histogram}"
    )
    assert done.exit_code == 0, done.output
    figures = json.loads(done.output.splitlines()[-1])
    assert (figures["kind"], figures["messages"]) == ("all", 20)
    assert figures["latencyMillis"]["max"] > 0
    assert histogram.read_text().startswith("percentile,millis\n1,")
    done = run("read perf-d -n 20 --output json")
    last = json.loads(done.output.splitlines()[-1])
    assert last["bytesPerSecond"] * last["seconds"] == pytest.approx(60, abs=1)


def test_a_consumer_keeps_to_a_rate() -> None:
    assert run("produce perf-e -m 20 -r 0").exit_code == 0
    done = run("consume perf-e -m 6 -r 20 -sp Earliest -ns 2 --batch-index-ack --output json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output.splitlines()[-1])["messagesPerSecond"] <= 60


def test_the_latency_from_end_to_end() -> None:
    done = run("latency perf-b -m 10 -r 0 -db")
    assert "Aggregated throughput received: 10 msg --- " in done.output
    assert "Latency: mean: " in done.output


def test_time_ends_a_run() -> None:
    done = run("consume perf-c -time 0.3")
    assert "Aggregated throughput received: 0 msg" in done.output
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("produce x:// -m 1", 1, "invalid topic name"),
        ("read t -m x", 1, "no message id"),
        ("produce t -ml x", 1, "no size"),
        ("produce t -z nosuch", 2, "nosuch"),
        ("consume t --auth-plugin token --auth-params token:x", 1, "every user of this machine"),
    ],
)
def test_what_is_wrong_is_said(line: str, status: int, said: str) -> None:
    done = run(line)
    assert done.exit_code == status
    assert said in done.output
