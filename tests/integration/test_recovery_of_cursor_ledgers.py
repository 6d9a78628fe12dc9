"""`storage recover` keeps what cursors own: compacted ledgers, delayed messages, sequence ids.

A real broker that holds all three is killed, and its files are damaged. What it serves after the
recovery, to official clients too, is what was confirmed before.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pulsar
import pytest
from click.testing import CliRunner, Result
from pulsar import ConsumerType, InitialPosition

from pulsar_py.cli.commands import main
from pulsar_py.managed_ledger.cursors.format import (
    INTERNAL_PREFIX,
    SEQUENCE_ID_LEDGERS,
    decode_cursor_record,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.interop.broker_process import BrokerProcess
from tests.wire_client import WireClient, send_frame

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
SETTINGS = {
    "brokerDeduplicationEnabled": "true",
    "brokerDeduplicationSnapshotIntervalSeconds": "1",
    "brokerDeduplicationSnapshotFrequencyInSeconds": "1",
    "brokerDeduplicationEntriesInterval": "1",
    "delayedDeliveryMinIndexCountPerBucket": "5",
    "delayedDeliveryTickTimeMillis": "50",
    "managedLedgerMaxEntriesPerLedger": "10",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
}
COMPACTED, DELAYED, DEDUPLICATED = (
    f"persistent://public/default/{name}" for name in ("compacted", "delayed", "deduplicated")
)
VIEW = {f"k{key}": b"new" for key in range(5)}
SOON_COUNT, LATE_COUNT = 24, 24
HOUR_MILLIS = 3_600_000
PADDING = "n" * 8192
NAMES = [f"{number:04d}{PADDING}" for number in range(110)]
"""So long that their sequence ids do not fit the cursor's record: they go to a ledger."""


def storage(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["storage", *map(str, arguments)])


def called(broker: BrokerProcess, path: str, method: str = "GET") -> bytes:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{path}"
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as answer:
        body: bytes = answer.read()
    return body


@contextlib.contextmanager
def client_of(broker: BrokerProcess) -> Iterator[pulsar.Client]:
    client = pulsar.Client(broker.service_url, logger=QUIET)
    yield client
    client.close()


def compacted_view(client: pulsar.Client) -> dict[str, bytes]:
    """Each key's message, and each key once: what was compacted out does not come."""
    reader = client.create_reader(COMPACTED, pulsar.MessageId.earliest, is_read_compacted=True)
    found: dict[str, bytes] = {}
    while reader.has_message_available():
        message = reader.read_next(30_000)
        assert message.partition_key() not in found
        found[message.partition_key()] = message.data()
    reader.close()
    return found


def delayed_count(broker: BrokerProcess) -> int:
    stats = json.loads(called(broker, "delayed/stats"))["subscriptions"]["sub"]
    count: int = stats["msgDelayed"]
    return count


def subscribe(client: pulsar.Client) -> pulsar.Consumer:
    return client.subscribe(
        DELAYED,
        "sub",
        consumer_type=ConsumerType.Shared,
        initial_position=InitialPosition.Earliest,
    )


async def sent_again(broker: BrokerProcess, names: list[str], sequence_id: int) -> list[bool]:
    """A message of each name with this sequence id; whether each was taken for a duplicate."""
    client = await WireClient.connect("127.0.0.1", broker.port)
    await client.lookup(DEDUPLICATED)
    found: dict[int, bool] = {}
    done = asyncio.Event()

    def on_receipt(command: BaseCommand) -> None:
        receipt = command.send_receipt
        found[receipt.producer_id] = receipt.message_id.ledgerId == 2**64 - 1
        if len(found) == len(names):
            done.set()

    client.on_receipt = on_receipt
    for number, name in enumerate(names, start=1):
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.topic = DEDUPLICATED
        command.producer.producer_id = number
        command.producer.producer_name = name
        command.producer.user_provided_producer_name = True
        command.producer.request_id = client.next_request_id()
        answer = await client.request(command, command.producer.request_id)
        assert answer.type == BaseCommand.PRODUCER_SUCCESS, answer
        client.writer.write(send_frame(number, sequence_id, b"x", name))
    await asyncio.wait_for(done.wait(), 60)
    await client.close()
    return [found[number] for number in range(1, len(names) + 1)]


def owned(data: Path) -> dict[str, set[int]]:
    """The ledgers that properties of cursors name, of each kind.

    The compacted ledger is not among them: its name may be in the cursor's own ledger alone.
    """
    found: dict[str, set[int]] = {"delayed": set(), "sequence ids": set()}
    with closing(sqlite3.connect(data / "metadata.sqlite")) as connection:
        rows = connection.execute(
            "SELECT path, value FROM keys WHERE path LIKE '/managed-ledgers/%/%/%/%/%'"
        ).fetchall()
    for _, value in rows:
        record = decode_cursor_record(value)
        for name, text in record.cursor_properties.items():
            if name == INTERNAL_PREFIX + SEQUENCE_ID_LEDGERS:
                found["sequence ids"].update(map(int, text.split(",")))
            elif "delayed" in name and text.isdecimal():
                found["delayed"].add(int(text))
    return found


@dataclass(frozen=True)
class Killed:
    """A broker's files after its end, and what it had promised."""

    broker: BrokerProcess
    soon_millis: list[int]


def filled(data: Path) -> Killed:
    """A broker that has compacted, indexed delays and stored sequence ids, and was killed."""
    options = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    broker = BrokerProcess(data, *options)
    try:
        soon = _fill(broker)
    finally:
        if broker.process is not None:
            broker.kill()
    broker.start()
    broker.stop()  # its checkpoint writes entry logs and an index, which can be damaged
    broker.start()
    broker.kill()
    return Killed(broker, soon)


def _fill(broker: BrokerProcess) -> list[int]:
    """Returns when the first delayed messages are due, in milliseconds since 1970."""
    broker.start()
    with client_of(broker) as client:
        client.subscribe(COMPACTED, "keeps").close()  # else a full ledger goes at once
        producer = client.create_producer(COMPACTED, batching_enabled=False)
        for value in (b"old", b"new"):
            for key in VIEW:
                producer.send(value, partition_key=key)
        done = CliRunner().invoke(
            main, ["compact-topic", "-t", COMPACTED, "--web-service-url", broker.web_service_url]
        )
        assert done.exit_code == 0, done.output
        asyncio.run(sent_again(broker, NAMES, 7))
        subscribe(client).close()
        producer = client.create_producer(DELAYED)
        now = int(time.time() * 1000)
        soon = [now + 4000 + number * 37 % SOON_COUNT * 20 for number in range(SOON_COUNT)]
        dues = [*soon, *(now + HOUR_MILLIS + number for number in range(LATE_COUNT))]
        for due in dues:
            producer.send(str(due).encode(), deliver_at=due)
        consumer = subscribe(client)  # reads all of it, so that it is indexed
        deadline = time.monotonic() + 30
        while delayed_count(broker) < SOON_COUNT + LATE_COUNT:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        copies = broker.data_dir.with_name("copies")  # a running broker locks its own
        while True:
            shutil.rmtree(copies, ignore_errors=True)
            copies.mkdir()
            for each in broker.data_dir.glob("metadata.sqlite*"):
                shutil.copy(each, copies)
            found = owned(copies)
            if all(found.values()):
                break
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        broker.kill()
        del consumer
        client.shutdown()
    return soon


def wipe_index_of_keys(data: Path) -> None:
    """Overwrite the first page of SQLite's index."""
    path = data / "metadata.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_keys_1'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : (page - 1) * size + 200] = b"\xaa" * 200
    path.write_bytes(content)


def flip_manifest(data: Path) -> None:
    path = data / "ledgers" / "MANIFEST"
    content = bytearray(path.read_bytes())
    content[50] ^= 0x20
    path.write_bytes(content)


def remove_index(data: Path) -> None:
    """Remove the tables that say where entries are: no ledger has a record any more.

    The metadata is whole, and so alone says which ledgers are in use: all others go.
    """
    flip_manifest(data)
    for each in (data / "ledgers" / "index").iterdir():
        each.unlink()


def remove_index_and_page(data: Path) -> None:
    """Both kinds of damage at once: the tables that say where entries are, and SQLite's index."""
    remove_index(data)
    wipe_index_of_keys(data)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return filled(tmp_path_factory.mktemp("killed") / "data")


@pytest.mark.parametrize(
    "damage", [wipe_index_of_keys, flip_manifest, remove_index, remove_index_and_page]
)
def test_a_recovery_keeps_what_cursors_own(
    tmp_path: Path, killed: Killed, damage: Callable[[Path], None]
) -> None:
    data = tmp_path / "data"
    shutil.copytree(killed.broker.data_dir, data)
    before = owned(data)
    assert all(before.values()), before
    damage(data)
    assert storage("verify", data).exit_code == 1
    recovered = storage("recover", data)
    assert recovered.exit_code == 0, recovered.output
    assert "dropped: ledger" not in recovered.output
    assert owned(data) == before
    assert storage("verify", data).exit_code == 0

    options = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    with BrokerProcess(data, *options) as broker, client_of(broker) as client:
        assert compacted_view(client) == VIEW
        assert all(asyncio.run(sent_again(broker, NAMES, 7))), "no duplicate is taken again"
        assert not any(asyncio.run(sent_again(broker, NAMES[:3], 8))), "what is new is taken"
        consumer = subscribe(client)
        dues = []
        for _ in range(SOON_COUNT):
            message = consumer.receive(30_000)
            dues.append(int(message.data()))
            assert dues[-1] <= time.time() * 1000, "early"
            consumer.acknowledge(message)
        assert sorted(dues) == sorted(killed.soon_millis), "each once"
        with pytest.raises(pulsar.Timeout):
            consumer.receive(500)
        assert delayed_count(broker) == LATE_COUNT, "none is lost, none has come early"
