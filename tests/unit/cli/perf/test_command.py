"""`pulsar-py perf` against a broker."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.commands import main
from pulsar_py.cli.perf.command import perf
from tests.package_source import ROOT

SHEET = (ROOT / "tests" / "recordings" / "admin_words.md").read_text()
"""Words and flags, from the documentation of Apache Pulsar 4.2."""


@pytest.fixture(autouse=True)
def _here(session_pulsar_broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_PY_SERVICE_URL", session_pulsar_broker.service_url)
    monkeypatch.setenv("PULSAR_PY_ADMIN_URL", session_pulsar_broker.web_service_url)
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


def names_of(command: click.Command) -> set[str]:
    return {name for each in command.params for name in each.opts}


def documented(section: str) -> dict[str, set[str]]:
    """Flags by word, of one section of the documentation."""
    table = SHEET.partition(f"### {section} ")[2].partition("\n### ")[0]
    found = {}
    for head, cell in re.findall(r"^\| `?([\w]+).*? \| (.*-.*) \|$", table, re.MULTILINE):
        texts = re.findall(r"`([^`]+)`", cell)
        found[head] = {name for each in texts for name in each.split("/") if name[0] == "-"}
    return found


@pytest.mark.parametrize(
    ("section", "group", "counts"),
    [
        ("9.4", "client", {"global": 9, "produce": 29, "consume": 24, "read": 14}),
        ("9.5", "perf", {"common": 18, "produce": 57, "consume": 28, "read": 7, "transaction": 18}),
    ],
)
def test_it_has_the_documented_flags(section: str, group: str, counts: dict[str, int]) -> None:
    flags = documented(section)
    assert {word: len(names) for word, names in flags.items()} == counts
    tool = main.get_command(click.Context(main), group)
    assert isinstance(tool, click.Group)
    flags.pop("transaction", None)  # says that it is not here, whatever is given
    for word, names in flags.items():
        if word == "global":
            assert names <= names_of(tool)
        for command in ("produce", "consume", "read") if word == "common" else ():
            assert names <= names_of(tool.commands[command]), command
        if word in tool.commands:
            assert names <= names_of(tool.commands[word]), word


def test_topics_are_created_and_messages_have_times_delays_and_numbers(tmp_path: Path) -> None:
    payloads, conf = tmp_path / "payloads", tmp_path / "client.conf"
    payloads.write_text("number %i at %t")
    conf.write_text("")
    line = f"-np 3 -r 0 -f {payloads} -fp -set -cf {conf} --warmup-time 60 --output json"
    for _ in range(2):  # topics that are there with as many partitions are taken as they are
        done = run(f"produce perf-f -t 2 --separator _ -m 2 -p 100 -threads 2 -bw {line}")
        assert done.exit_code == 0, done.output
    assert "latencyMillis" not in json.loads(done.output.splitlines()[-1]), "none after the warm-up"
    assert "it is there, with 3 partitions" in run(f"produce perf-f_1 {line} -np 4").output
    assert run(f"produce perf-i -m 4 {line}").exit_code == 0
    shown = (
        CliRunner().invoke(main, ["client", "read", "perf-i", "-m", "earliest", "-n", "4"]).output
    )
    assert sorted(re.findall(r"content:number (\d) at \d+", shown)) == ["0", "1", "2", "3"]


def test_delays_are_chosen_from_a_range() -> None:
    assert run("produce perf-g -m 3 -r 0 -dr 1,2").exit_code == 0
    done = run("produce perf-g -m 3 -r 0 -dr 2,1")
    assert (done.exit_code, "the lower number comes first" in done.output) == (2, True)
    done = run("produce perf-g -m 3 -r 0 -dr 2")
    assert (done.exit_code, "expected two numbers" in done.output) == (2, True)


@pytest.mark.parametrize("flag", ["", "-ef"])
def test_messages_that_fail_are_counted_and_fail_the_run(flag: str) -> None:
    done = run(f"produce non-persistent://public/default/perf-h -m 3 -r 0 -s 6000000 {flag}")
    assert done.exit_code == 1


@pytest.mark.parametrize(
    "line",
    ["transaction -t x --topics-p y", "produce t -txn", "consume t -ntxn 3", "produce t -abort"],
)
def test_transactions_are_not_here(line: str) -> None:
    done = run(line)
    assert (done.exit_code, "transactions are not here" in done.output) == (1, True)


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("produce x:// -m 1", 1, "invalid topic name"),
        ("read t -m x", 2, "no message id"),
        ("produce t -ml x", 2, "no size"),
        ("produce t -z nosuch", 2, "nosuch"),
        ("consume t -aq", 1, "does not grow by itself"),
        ("consume t --auth-plugin token --auth-params token:x", 1, "every user of this machine"),
    ],
)
def test_what_is_wrong_is_said(line: str, status: int, said: str) -> None:
    done = run(line)
    assert done.exit_code == status
    assert said in done.output
