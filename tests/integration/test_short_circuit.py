"""Readers on the broker's machine read its files: a real broker, whole, killed, and others beside it."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from pulsar_py.blocking import Client
from pulsar_py.client.short_circuit.stored_range import StoredRange
from pulsar_py.common.position import Position
from pulsar_py.standalone import Broker
from tests.interop.broker_process import BrokerProcess
from tests.lent_logs import LogBorrower
from tests.unit.admin.metrics.metric_pages import of_stores, only

DEADLINE_SECONDS = 30
FLUSH_AT_ONCE = ("--set", "flushInterval=50")
Bodies = dict[int, dict[int, bytes]]
"""By ledger and entry."""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A short path: temporary directories may have long ones."""
    directory = os.open(tmp_path, os.O_RDONLY)
    yield Path(f"/proc/{os.getpid()}/fd/{directory}/lent")
    os.close(directory)


def published(
    broker: BrokerProcess | Broker, topic: str, bodies: list[bytes], *, beside: str | None = None
) -> Bodies:
    """Publish messages, an entry each; where they are. All go to a topic beside it, too."""
    found: Bodies = {}
    with Client(broker.service_url) as client:
        producer = client.create_producer(topic, batching_enabled=False)
        other = client.create_producer(beside, batching_enabled=False) if beside else None
        for body in bodies:
            message_id = producer.send(body)
            found.setdefault(message_id.ledger_id, {})[message_id.entry_id] = body
            if other:
                other.send(body)
    return found


def bodies(count: int, size: int = 1000, seed: int = 1) -> list[bytes]:
    chance = random.Random(seed)
    return [chance.randbytes(size) for _ in range(count)]


@contextmanager
def borrower(path: Path) -> Iterator[LogBorrower]:
    made = LogBorrower(path)
    try:
        made.greeting()
        yield made
    finally:
        made.close()


def check(reader: LogBorrower, wanted: Bodies) -> None:
    """All entries are read from files, as soon as they are flushed."""
    for ledger_id, entries in wanted.items():
        last = max(entries)
        until(lambda: len(reader.read(ledger_id, last, last)) == 1)  # noqa: B023 - called at once
        found = reader.read(ledger_id, min(entries), last, 100_000_000)
        assert len(found) == len(entries)
        assert all(map(bytes.endswith, found, entries.values()))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_was_published_is_read_from_files(tmp_path: Path, path: Path) -> None:
    arguments = ("--set", f"shortCircuitSocketPath={path}", *FLUSH_AT_ONCE)
    with BrokerProcess(tmp_path / "data", *arguments) as broker:
        wanted = published(broker, "small", bodies(200)) | published(
            broker, "large", bodies(30, 200_000)
        )
        with borrower(path) as reader:
            check(reader, wanted)
    assert not path.exists()


def test_a_killed_broker_leaves_what_it_lent_and_starts_again(tmp_path: Path, path: Path) -> None:
    arguments = ("--set", f"shortCircuitSocketPath={path}", *FLUSH_AT_ONCE)
    with BrokerProcess(tmp_path / "data", *arguments) as broker:
        wanted = published(broker, "t", bodies(300))
        (ledger_id,) = wanted
        reader = LogBorrower(path)
        reader.greeting()
        check(reader, wanted)
        answer = reader.ask(ledger_id, 0, 299)
        broker.kill()
        with pytest.raises((EOFError, ConnectionError)):
            reader.read(ledger_id, 0, 299)
        assert all(map(bytes.endswith, reader.entries(answer), wanted[ledger_id].values()))
        assert path.is_socket()
        with pytest.raises(ConnectionRefusedError):
            LogBorrower(path)

        broker.start()
        with borrower(path) as again:
            check(again, wanted)
            assert again.files != reader.files
        reader.close()


def test_two_brokers_have_the_same_ledgers_and_say_who_they_are(tmp_path: Path, path: Path) -> None:
    other_path = path.with_name("other")
    setting = "shortCircuitSocketPath"
    with (
        BrokerProcess(tmp_path / "a", "--set", f"{setting}={path}", *FLUSH_AT_ONCE) as broker,
        BrokerProcess(tmp_path / "b", "--set", f"{setting}={other_path}", *FLUSH_AT_ONCE) as other,
    ):
        mine, others = (
            published(each, "t", bodies(10, seed=seed)) for seed, each in enumerate((broker, other))
        )
        assert mine.keys() == others.keys(), "what makes the greeting necessary"
        assert mine != others
        for each, at, wanted in ((broker, path, mine), (other, other_path, others)):
            reader = LogBorrower(at)
            greeting = reader.greeting()
            assert greeting.network_namespace == Path("/proc/self/ns/net").stat().st_ino
            assert greeting.listens_on("127.0.0.1", each.port)
            assert not greeting.listens_on("127.0.0.1", broker.port + other.port - each.port)
            check(reader, wanted)
            reader.close()
            ours = stored_bodies(at, each.service_url, wanted)
            assert ours == [body for entries in wanted.values() for body in entries.values()]
            for url in (broker.service_url, other.service_url):
                if url != each.service_url:
                    assert stored_bodies(at, url, wanted) == []


def stored_bodies(path: Path, service_url: str, wanted: Bodies) -> list[bytes]:
    """What the client reads from files, of the only ledger."""
    ((ledger_id, entries),) = wanted.items()
    first, end = Position(ledger_id, min(entries)), Position(ledger_id, max(entries) + 1)
    stored = StoredRange(str(path), service_url, "persistent://public/default/t", first, end)
    found: list[bytes] = []
    while (runs := stored.read_block()) is not None:
        found += [message.data() for run in runs for message in run]
    assert found or "and the broker of the socket listens on" in str(stored.refusal)
    stored.close()
    return found


def test_a_second_broker_at_the_same_path_does_not_start(tmp_path: Path, path: Path) -> None:
    arguments = ("--set", f"shortCircuitSocketPath={path}", *FLUSH_AT_ONCE)
    with BrokerProcess(tmp_path / "a", *arguments) as broker:
        wanted = published(broker, "t", bodies(10))
        second = BrokerProcess(tmp_path / "b", *arguments)
        done = subprocess.run(second.command(), capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert f"{path}: another process listens there: choose another path" in done.stderr
        assert "Traceback" not in done.stderr
        with borrower(path) as reader:
            check(reader, wanted)


def test_a_path_that_is_too_long_is_told_and_the_broker_serves(tmp_path: Path) -> None:
    log = tmp_path / "log"
    long = tmp_path / ("s" * 108)
    arguments = ("--set", f"shortCircuitSocketPath={long}", *FLUSH_AT_ONCE)
    with BrokerProcess(tmp_path / "data", *arguments, log=log) as broker:
        assert published(broker, "t", bodies(3))
        assert not long.exists()
    assert f"the path has {len(str(long))} bytes" in log.read_text()


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    broker = BrokerProcess(
        tmp_path / "data", "--set", "shortCircuitSocketPath=/tmp/not-there/short"
    )
    done = subprocess.run(broker.command(), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "can't listen at /tmp/not-there/short: No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.metric("pulsar_py_storage_lent_entries_total", "pulsar_py_storage_lent_bytes_total")
async def test_what_readers_were_told_is_counted(tmp_path: Path, path: Path) -> None:
    config = {"shortCircuitSocketPath": str(path), "flushInterval": 50}
    async with Broker(data_dir=tmp_path / "data", config=config) as broker:
        store = broker.service.ledger_store

        def read() -> tuple[int, int, int]:
            (ledger_id,) = published(broker, "t", bodies(20))
            with borrower(path) as reader:
                until(lambda: len(reader.read(ledger_id, 19, 19)) == 1)
                found = reader.read(ledger_id, 5, 19) + reader.read(ledger_id, 0, 9)
                last = reader.read(ledger_id, 19, 19)
            return len(found), sum(map(len, found)), len(last[0])

        count, size, last_size = await asyncio.to_thread(read)
        metrics = of_stores(store)
        assert only(metrics, "pulsar_py_storage_lent_entries_total") == count + 2 == 27
        assert only(metrics, "pulsar_py_storage_lent_bytes_total") == size + 2 * last_size


@pytest.mark.setting("shortCircuitSocketPath")
async def test_the_socket_is_there_if_a_setting_says_so(tmp_path: Path, path: Path) -> None:
    data = tmp_path / "data"
    async with Broker(data_dir=data, config={"shortCircuitSocketPath": str(path)}):
        assert path.is_socket()
    assert not path.exists()
    async with Broker(data_dir=data):
        assert not path.exists()


def test_nothing_is_lent_while_there_may_be_entry_filters(tmp_path: Path, path: Path) -> None:
    """They decide who gets an entry; a dynamic setting has its effect on open connections."""
    (tmp_path / "filters").mkdir()
    arguments = ("--set", f"shortCircuitSocketPath={path}", *FLUSH_AT_ONCE)
    with BrokerProcess(tmp_path / "data", *arguments) as broker, ExitStack() as stack:
        wanted = published(broker, "t", bodies(10))
        (ledger_id,) = wanted
        reader = stack.enter_context(borrower(path))
        check(reader, wanted)
        setting = f"{broker.web_service_url}/admin/v2/brokers/configuration/entryFiltersDirectory"
        directory = quote(str(tmp_path / "filters"), safe="")
        urlopen(Request(f"{setting}/{directory}", method="POST"), timeout=30).close()
        until(lambda: reader.read(ledger_id, 0, 9) == [])
        urlopen(Request(setting, method="DELETE"), timeout=30).close()
        until(lambda: len(reader.read(ledger_id, 0, 9)) == 10)
    log = tmp_path / "log"
    arguments = (*arguments, "--set", f"entryFiltersDirectory={tmp_path / 'filters'}")
    with (
        BrokerProcess(tmp_path / "data", *arguments, log=log),
        borrower(path) as reader,
    ):
        assert reader.read(ledger_id, 0, 9) == []
    assert "nothing is lent to short-circuit readers while there may be entry" in log.read_text()


def test_readers_are_right_while_the_broker_writes_flushes_and_compacts(
    tmp_path: Path, path: Path
) -> None:
    """Logs of 256 KB, each rewritten as soon as a part of it is deleted; topics come and go."""
    arguments = (
        *("--set", f"shortCircuitSocketPath={path}", *FLUSH_AT_ONCE),
        *("--set", "logSizeLimit=262144", "--set", "gcWaitTime=100"),
        *("--set", "majorCompactionInterval=1", "--set", "majorCompactionThreshold=1.0"),
    )
    logs = tmp_path / "data/ledgers/entries"
    with BrokerProcess(tmp_path / "data", *arguments) as broker:
        kept: Bodies = {}
        readers = [BusyReader(path, kept, seed) for seed in (1, 2)]
        for number in range(4):
            passing = f"passing-{number}"
            kept |= published(broker, f"kept-{number}", bodies(50, 2000, number), beside=passing)
            if not number:
                for each in readers:
                    each.start()
            with borrower(path) as reader:
                check(reader, kept)
            before = set(logs.iterdir())
            delete(broker, passing)
            until(lambda: bool(before - set(logs.iterdir())))  # noqa: B023 - called at once
        for each in readers:
            each.end()
            assert not each.wrong
            assert each.read_count > 500
        with borrower(path) as borrowing:
            check(borrowing, kept)


def delete(broker: BrokerProcess, topic: str) -> None:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{topic}?force=true"
    urlopen(Request(url, method="DELETE"), timeout=DEADLINE_SECONDS).close()


class BusyReader(threading.Thread):
    """Reads entries at random, and notes those that are not what was published."""

    def __init__(self, path: Path, kept: Bodies, seed: int) -> None:
        super().__init__()
        self._path = path
        self._kept = kept
        self._chance = random.Random(seed)
        self._is_over = threading.Event()
        self.wrong: list[str] = []
        self.read_count = 0

    def run(self) -> None:
        while not self._is_over.is_set():
            with borrower(self._path) as reader:
                for _ in range(self._chance.randrange(200)):
                    self._read(reader)
                    time.sleep(0.002)

    def _read(self, reader: LogBorrower) -> None:
        ledger_id = self._chance.choice(list(self._kept))
        entries = self._kept[ledger_id]
        first = self._chance.choice(list(entries))
        answer = reader.ask(ledger_id, first, max(entries), 20_000)
        for place, data in enumerate(reader.entries(answer)):
            self.read_count += 1
            if not data.endswith(entries[first + place]):
                self.wrong.append(f"{ledger_id}:{first + place}")

    def end(self) -> None:
        self._is_over.set()
        self.join()
