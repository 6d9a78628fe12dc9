"""A running broker is backed up under load, and what is restored has all that was confirmed before.

Publishers and a consumer go on all the time, ledgers are ended and deleted, topics come and go.
Each backup is restored and served by a broker of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.commands import main
from pulsar_py.client import Client, ConsumerType, InitialPosition
from pulsar_py.schema import JsonSchema
from pulsar_py.standalone import Broker

SETTINGS = {
    "managedLedgerMaxEntriesPerLedger": 40,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "managedLedgerMaxLedgerRolloverTimeMinutes": 1,
    "retentionCheckIntervalInSeconds": 1,
    "dbStorage_writeCacheMaxSizeMb": 1,
    "journalMaxSizeMB": 4,
    "subscriptionKeySharedUseConsistentHashing": False,
}
KEPT, TRIMMED = "persistent://public/default/kept", "persistent://public/default/trimmed"


@dataclass
class Order:
    number: int
    text: str


@dataclass
class Promises:
    """What the broker confirmed so far."""

    sent: dict[str, int] = field(default_factory=lambda: {KEPT: -1, TRIMMED: -1})
    tried_acks: set[int] = field(default_factory=set)
    acks: set[int] = field(default_factory=set)

    def now(self) -> Promises:
        return Promises(dict(self.sent), set(self.tried_acks), set(self.acks))


def storage(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["storage", *map(str, arguments)], catch_exceptions=False)


async def publish(client: Client, topic: str, promises: Promises, stopping: asyncio.Event) -> None:
    """Numbers one after the other, several under way."""
    async with await client.create_producer(topic, schema=JsonSchema(Order)) as producer:
        numbers = itertools.count()

        async def one() -> None:
            number = next(numbers)
            await producer.send(Order(number, "x" * 200))
            promises.sent[topic] = max(promises.sent[topic], number)

        while not stopping.is_set():
            await asyncio.gather(*(one() for _ in range(20)))


async def consume(client: Client, promises: Promises, stopping: asyncio.Event) -> None:
    """Acknowledge three of four of `TRIMMED` with receipts, so that its ledgers go but some."""
    async with await client.subscribe(
        TRIMMED,
        "work",
        consumer_type=ConsumerType.Shared,
        schema=JsonSchema(Order),
        ack_receipt_enabled=True,
        ack_grouping_time_ms=5,
        initial_position=InitialPosition.Earliest,
    ) as consumer:

        async def one() -> None:
            try:
                message = await consumer.receive(200)
            except TimeoutError:
                return
            number = message.value().number
            if number < 300 or number % 4:
                promises.tried_acks.add(number)
                await consumer.acknowledge(message)
                promises.acks.add(number)

        while not stopping.is_set():
            await asyncio.gather(*(one() for _ in range(50)))


async def come_and_go(client: Client, stopping: asyncio.Event) -> None:
    """Topics are made, written to and deleted."""
    for number in itertools.count():
        if stopping.is_set():
            return
        topic = f"persistent://public/default/short-{number % 5}"
        async with await client.create_producer(topic) as producer:
            await producer.send(b"x")
        await asyncio.sleep(0.01)


async def until_more_is_promised(promises: Promises) -> None:
    """However slow the machine is, each backup has enough to keep."""
    sent, acks = min(promises.sent.values()) + 300, len(promises.acks) + 100
    async with asyncio.timeout(60):
        while min(promises.sent.values()) < sent or len(promises.acks) < acks:
            await asyncio.sleep(0.05)


async def back_up_under_load(tmp_path: Path) -> list[tuple[Path, Promises]]:
    promises, stopping = Promises(), asyncio.Event()
    made: list[tuple[Path, Promises]] = []
    async with (
        Broker(data_dir=tmp_path / "data", config=SETTINGS) as broker,
        Client(broker.service_url) as client,
    ):
        async with await client.subscribe(
            KEPT, "all", schema=JsonSchema(Order), initial_position=InitialPosition.Earliest
        ):
            pass
        async with asyncio.TaskGroup() as tasks:
            for topic in (KEPT, TRIMMED):
                tasks.create_task(publish(client, topic, promises, stopping))
            tasks.create_task(consume(client, promises, stopping))
            tasks.create_task(come_and_go(client, stopping))
            for name in ("first", "second.tar"):
                await until_more_is_promised(promises)
                before = promises.now()
                backup = tmp_path / name
                done = await asyncio.to_thread(
                    storage, "backup", backup, "--admin-url", broker.web_service_url
                )
                assert done.exit_code == 0, done.output
                # Whoever tried to acknowledge meanwhile may have been heard.
                made.append((backup, Promises(before.sent, promises.now().tried_acks, before.acks)))
            stopping.set()
        assert not (tmp_path / "data" / "backup.tmp").exists()
    return made


async def numbers_of(client: Client, topic: str, subscription: str) -> list[int]:
    found: list[int] = []
    async with await client.subscribe(
        topic, subscription, consumer_type=ConsumerType.Shared, schema=JsonSchema(Order)
    ) as consumer:
        while True:
            try:
                message = await consumer.receive(800)
            except TimeoutError:
                return found
            found.append(message.value().number)


async def check(data: Path, promises: Promises) -> None:
    async with (
        Broker(data_dir=data, config=SETTINGS) as broker,
        Client(broker.service_url) as client,
    ):
        everything = await numbers_of(client, KEPT, "all")
        assert everything == list(range(len(everything)))
        assert len(everything) > promises.sent[KEPT]
        left = await numbers_of(client, TRIMMED, "work")
        assert left == sorted(set(left))
        assert not promises.acks.intersection(left), "acknowledged, and came again"
        expected = set(range(promises.sent[TRIMMED] + 1)) - promises.tried_acks
        assert expected <= set(left), f"missing: {sorted(expected - set(left))[:5]}"
        # It goes on: with the same schema, and with ledgers whose ids are new.
        async with await client.create_producer(KEPT, schema=JsonSchema(Order)) as producer:
            for number in range(100):
                await producer.send(Order(len(everything) + number, ""))
        assert len(await numbers_of(client, KEPT, "all")) == len(everything) + 100


def test_a_restored_backup_has_all_that_was_confirmed_before(tmp_path: Path) -> None:
    made = asyncio.run(back_up_under_load(tmp_path))
    assert storage("verify", tmp_path / "data").exit_code == 0
    for backup, promises in made:
        assert min(promises.sent.values()) > 100
        assert len(promises.acks) > 50
        data = tmp_path / f"{backup.stem}-restored"
        done = storage("restore", backup, data)
        assert done.exit_code == 0, done.output
        sound = storage("verify", data)
        assert sound.exit_code == 0, sound.output
        asyncio.run(check(data, promises))


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small one, as a directory; `copy.tar` beside it is the same as an archive."""
    directory = tmp_path_factory.mktemp("backup")

    async def make() -> None:
        async with (
            Broker(data_dir=directory / "data") as broker,
            Client(broker.service_url) as client,
        ):
            async with await client.create_producer(KEPT) as producer:
                await producer.send(b"one")
            for name in ("copy", "copy.tar"):
                done = await asyncio.to_thread(
                    storage, "backup", directory / name, "--admin-url", broker.web_service_url
                )
                assert done.exit_code == 0, done.output

    asyncio.run(make())
    return directory / "copy"


def test_a_backup_is_a_data_directory_of_its_owner_alone(backup: Path) -> None:
    assert storage("verify", backup).exit_code == 0
    assert backup.stat().st_mode & 0o077 == 0
    assert all(each.stat().st_mode & 0o077 == 0 for each in backup.rglob("*") if each.is_file())
    assert backup.with_suffix(".tar").stat().st_mode & 0o077 == 0


def test_a_place_that_is_taken_is_refused(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    refused = storage("restore", backup, tmp_path)
    assert (refused.exit_code, "not empty" in refused.output) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    refused = storage("backup", backup)
    assert (refused.exit_code, "exists" in refused.output) == (2, True)


@pytest.mark.parametrize("name", ["copy", "copy.tar"])
@pytest.mark.parametrize("damage", ["bit", "short", "list"])
def test_a_damaged_backup_is_not_restored(
    backup: Path, tmp_path: Path, name: str, damage: str
) -> None:
    source = tmp_path / name
    if name == "copy":
        shutil.copytree(backup, source)
        file = next((source / "ledgers" / "entries").iterdir())
        if damage == "list":
            file = source / "BACKUP.json"
    else:
        shutil.copyfile(backup.with_suffix(".tar"), source)
        file = source
    data = bytearray(file.read_bytes())
    if damage == "list":
        file.write_bytes(
            data[: data.rindex(b'"files"') if name == "copy" else data.rindex(b"ustar") - 300]
        )
    elif damage == "short":
        file.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 2 if name == "copy" else data.index(b"PULSAR-PY-STORAGE") + 40] ^= 1
        file.write_bytes(data)

    done = storage("restore", source, tmp_path / "data")

    assert done.exit_code == 1, done.output
    assert [each.name for each in tmp_path.iterdir()] == [name]
