"""`pulsar-py standalone` as a process: readiness, signals, one owner of a directory, what it loads."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pulsar
import pytest

COMMAND = str(Path(sys.executable).with_name("pulsar-py"))
NOT_AT_START = {
    "fastavro",
    "jwt",
    "rich",
    "prometheus_client",
    "cryptography",
    "zstandard",
    "cramjam",
    "re2",
    "aiohttp",
    "pulsar",
    "pytest",
    "email",
    "tarfile",
    "argparse",
    "click",
    "gettext",
    "dataclasses",
}


def start(data_dir: Path | None, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    data = () if data_dir is None else ("--data-dir", str(data_dir))
    return subprocess.Popen(
        [
            COMMAND, "standalone", *data, "--host", "127.0.0.1",
            "--port", "0", "--web-port", "0", *arguments,
        ],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def ready_words(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


@contextmanager
def running(data_dir: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    with start(data_dir, *arguments) as process:
        try:
            words = ready_words(process)
            assert words[:2] == ["pulsar-py", "ready:"], process.communicate()
            yield process, words[2], words[3]
        finally:
            process.kill()


def client_of(url: str) -> pulsar.Client:
    return pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def test_one_line_says_that_both_ports_answer_and_where_data_is(tmp_path: Path) -> None:
    with start(tmp_path) as process:
        words = ready_words(process)
        assert words[:2] == ["pulsar-py", "ready:"]
        assert words[4:] == ["data", "directory", str(tmp_path)]
        host, port = words[2].removeprefix("pulsar://").split(":")
        socket.create_connection((host, int(port))).close()
        with urllib.request.urlopen(words[3] + "/admin/v2/clusters") as answer:
            assert json.loads(answer.read()) == ["standalone"]
        process.send_signal(signal.SIGTERM)
        assert process.communicate()[0] == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_everything_written(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path) as (process, url, _):
        client = client_of(url)
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        for index in range(10):
            producer.send(b"%d" % index)
        for _ in range(4):
            consumer.acknowledge(consumer.receive(30_000))
        client.close()
        process.send_signal(number)
        assert process.wait(timeout=120) == 0
    with running(tmp_path) as (_, url, _):
        client = client_of(url)
        consumer = client.subscribe("t", "s")
        left = [consumer.receive(30_000).data() for _ in range(6)]
        client.close()
    assert left == [b"%d" % index for index in range(4, 10)]


def test_a_second_process_is_refused_in_one_line(tmp_path: Path) -> None:
    with running(tmp_path):
        second = start(tmp_path)
        output, errors = second.communicate(timeout=120)
    assert second.returncode == 1
    assert output == ""
    assert len(errors.splitlines()) == 1
    assert errors.startswith("Error: ")
    assert str(tmp_path) in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "maxMesageSize=5"], "did you mean maxMessageSize?"),
        (["--set", "maxMessageSize=five"], "maxMessageSize=five"),
        (["--set", "maxMessageSize"], "expected NAME=VALUE"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    process = start(tmp_path / "data", *arguments)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert len(errors.splitlines()) == 1
    assert words in errors
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start(tmp_path, "--port", str(port))
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    last = errors.splitlines()[-1]
    assert last.startswith(f"Error: can't listen on 127.0.0.1:{port}: address already in use")
    assert "--port" in last


def test_in_memory_leaves_no_directory(tmp_path: Path) -> None:
    with start(None, "--in-memory", cwd=tmp_path) as process:
        assert ready_words(process)[4:] == ["data", "in", "memory"]
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert not (tmp_path / "data").exists()


def test_logs_are_json_if_wanted(tmp_path: Path) -> None:
    with start(tmp_path, "--log-format", "json") as process:
        ready_words(process)
        process.send_signal(signal.SIGTERM)
        lines = process.communicate()[1].splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert "broker started" in events
    assert events[-1] == "broker stopped"


def test_start_loads_nothing_that_only_some_need() -> None:
    code = """
import asyncio, sys
from pulsar_py.cli.main import main
from pulsar_py.cli.standalone import StandaloneOptions
from pulsar_py.standalone import Broker

async def serve():
    async with Broker() as broker:
        reader, writer = await asyncio.open_connection(*broker.service_url[9:].split(":"))
        writer.close()
        print(*sorted({name.partition(".")[0] for name in sys.modules}))

asyncio.run(serve())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pulsar_py" in loaded
    assert not loaded & NOT_AT_START


IDLE_WITHOUT = (
    "h11",
    "pulsar_py.admin.api",
    "pulsar_py.managed_ledger.cursors.managed_cursor",
    "pulsar_py.managed_ledger.managed_ledger",
    "pulsar_py.schema",
    "pulsar_py.server.change_events.namespace_events",
    "pulsar_py.server.compaction.compactor",
    "pulsar_py.server.connection.server_cnx",
    "pulsar_py.server.delayed",
    "pulsar_py.server.publishing.producer",
    "pulsar_py.server.short_circuit",
    "pulsar_py.server.subscriptions",
    "pulsar_py.server.topics.topic",
    "pulsar_py.wire.commands",
    "pulsar_py.wire.short_circuit",
)
"""What the first client or the first request is served with: a third of a broker's modules."""
MOST_OF_OURS_WHEN_IDLE = 264
MOST_OF_OTHERS_WHEN_IDLE = 230
"""Modules of a broker that is ready. Each costs 0.1 to 3 ms of its start, so have a look before one
of these is raised."""


def test_an_idle_broker_has_nothing_of_topics_and_requests() -> None:
    code = """
import asyncio, sys
from pulsar_py.cli.standalone import StandaloneOptions
from pulsar_py.standalone import Broker

async def serve():
    async with Broker():
        print(*sys.modules)

asyncio.run(serve())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pulsar_py.server.topics.registry" in loaded
    assert not loaded & set(IDLE_WITHOUT)
    ours_count = sum(each.startswith("pulsar_py.") for each in loaded)
    assert ours_count <= MOST_OF_OURS_WHEN_IDLE
    assert len(loaded) - ours_count <= MOST_OF_OTHERS_WHEN_IDLE


def test_ten_brokers_in_one_process_serve_ten_clients() -> None:
    from pulsar_py.testing.broker_thread import BrokerThread  # noqa: PLC0415

    brokers = [BrokerThread() for _ in range(10)]
    for broker in brokers:
        broker.start()
    try:
        clients = [client_of(broker.service_url) for broker in brokers]
        for number, client in enumerate(clients):
            consumer = client.subscribe("same-name", "s")
            client.create_producer("same-name").send(b"%d" % number)
            assert consumer.receive(30_000).data() == b"%d" % number
        for client in clients:
            client.close()
    finally:
        for broker in brokers:
            broker.stop()
