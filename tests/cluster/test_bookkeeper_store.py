"""The BookKeeper store while bookies die, freeze and come back: real bookies, real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from random import Random

import pytest

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata, decode
from pulsar_py.bookkeeper.metadata.ledger_paths import ledger_path
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore, BookKeeperSettings
from pulsar_py.common.errors import (
    LedgerFencedError,
    NotEnoughBookiesError,
    StorageError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions, LedgerReader, LedgerWriter
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.bookie_process import BookieProcess, BookKeeperCluster
from tests.cluster.java_programs import NotInstalledError

pytestmark = pytest.mark.slow

SETTINGS = BookKeeperSettings(
    answer_timeout_seconds=15.0,
    connection=ConnectionLimits(connect_timeout_seconds=2.0, request_timeout_seconds=3.0),
)
THREE = LedgerOptions(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2)
TWO = LedgerOptions(ensemble_size=2, write_quorum_size=2, ack_quorum_size=2)


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # what a real bookie does tells nobody here
            await asyncio.sleep(0.02)


class Listener:
    def __init__(self) -> None:
        self.last = -1
        self.failures: list[StorageError] = []

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        assert not self.failures
        self.last = last_add_confirmed

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        self.failures.append(error)

    async def until(self, entry_id: int) -> None:
        await until(lambda: self.last >= entry_id or bool(self.failures))
        assert not self.failures, self.failures


class Client:
    """A broker's store, with a session of its own."""

    def __init__(self, cluster: BookKeeperCluster, settings: BookKeeperSettings = SETTINGS) -> None:
        self.cluster = cluster
        self.settings = settings

    async def connect(self) -> None:
        clock = SystemClock()
        address = ZooKeeperAddress.parse(self.cluster.zookeeper.url)
        self.metadata = await ZooKeeperMetadataStore.open(address, clock)
        self.ids = MetadataLedgerIds(self.metadata)
        self.store = await BookKeeperLedgerStore.connect(
            self.metadata, clock, self.ids, chance=Random(7), settings=self.settings
        )

    async def record(self, ledger_id: int) -> LedgerMetadata:
        path = ledger_path("/ledgers", ledger_id)
        found = await self.metadata.get(path)
        assert found is not None
        return decode(path, found.value)

    async def place(self, ledger_id: int, index: int) -> BookieProcess:
        """The bookie at a place of the ensemble that entries go to now."""
        bookie_id = (await self.record(ledger_id)).last_segment.bookie_ids[index]
        return next(each for each in self.cluster.bookies if each.bookie_id == bookie_id)

    async def close(self) -> None:
        await self.store.close()
        await self.ids.close()
        await self.metadata.close()


@pytest.fixture(scope="module")
def own_bookkeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookKeeperCluster]:
    """Four bookies that may be frozen and killed."""
    cluster = BookKeeperCluster(tmp_path_factory.mktemp("bookkeeper"), bookies_count=4)
    try:
        cluster.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield cluster
    cluster.kill()


@pytest.fixture
async def clients(own_bookkeeper: BookKeeperCluster) -> AsyncIterator[tuple[Client, Client]]:
    """Two brokers on four bookies that all take entries."""
    for bookie in own_bookkeeper.bookies:
        if not bookie.is_running:
            await asyncio.to_thread(bookie.start)
        await until(bookie.is_registered)  # one that was frozen has lost its session
    both = Client(own_bookkeeper), Client(own_bookkeeper)
    for each in both:
        await each.connect()
    yield both
    for each in both:
        await each.close()


def data(entry_id: int) -> bytes:
    return b"entry %d " % entry_id * 20


async def filled(
    client: Client, count: int, options: LedgerOptions
) -> tuple[LedgerWriter, Listener]:
    listener = Listener()
    writer = await client.store.create(listener, options)
    append(writer, count)
    await listener.until(count - 1)
    return writer, listener


def append(writer: LedgerWriter, count: int) -> None:
    for _ in range(count):
        writer.append(data(writer.last_add_pushed + 1))


async def check_entries(reader: LedgerReader) -> None:
    """All of them are there, and what they were."""
    read: list[bytes] = []
    while len(read) <= reader.last_add_confirmed:
        read += map(bytes, await reader.read(len(read), reader.last_add_confirmed, 100_000))
    assert read == [data(entry_id) for entry_id in range(len(read))]


async def test_a_killed_bookie_is_replaced_under_load(clients: tuple[Client, Client]) -> None:
    client, other = clients
    writer, listener = await filled(client, 100, THREE)
    killed = await client.place(writer.ledger_id, 1)
    append(writer, 200)
    killed.kill()
    for _ in range(50):
        append(writer, 10)
        await asyncio.sleep(0.01)
    await listener.until(799)
    record = await client.record(writer.ledger_id)
    assert len(record.segments) == 2
    assert killed.bookie_id not in record.last_segment.bookie_ids
    await writer.close()
    reader = await other.store.open(writer.ledger_id)
    assert reader.last_add_confirmed == 799
    await check_entries(reader)


async def test_a_frozen_bookie_is_replaced_in_time(clients: tuple[Client, Client]) -> None:
    client, other = clients
    writer, listener = await filled(client, 10, TWO)
    frozen = await client.place(writer.ledger_id, 0)
    frozen.freeze()
    try:
        append(writer, 10)
        await listener.until(19)
    finally:
        frozen.thaw()
    assert (await client.place(writer.ledger_id, 0)) is not frozen
    append(writer, 10)
    await listener.until(29)
    await writer.close()
    await check_entries(await other.store.open(writer.ledger_id))


async def test_a_ledger_is_recovered_while_a_bookie_is_down(
    clients: tuple[Client, Client],
) -> None:
    client, other = clients
    writer, listener = await filled(client, 50, THREE)
    (await client.place(writer.ledger_id, 2)).kill()
    append(writer, 20)
    confirmed = listener.last
    reader = await other.store.recover(writer.ledger_id)
    assert confirmed <= reader.last_add_confirmed <= 69
    await check_entries(reader)
    await until(lambda: bool(listener.failures))
    assert isinstance(listener.failures[0], LedgerFencedError)
    assert listener.last <= reader.last_add_confirmed


async def test_a_ledger_is_recovered_without_another_bookie(
    clients: tuple[Client, Client],
) -> None:
    client, other = clients
    writer, listener = await filled(client, 50, THREE)
    ids = (await client.record(writer.ledger_id)).last_segment.bookie_ids
    for bookie in client.cluster.bookies:
        if bookie.bookie_id not in ids[:2]:
            bookie.kill()
    append(writer, 20)
    confirmed = listener.last
    reader = await other.store.recover(writer.ledger_id)
    assert confirmed <= reader.last_add_confirmed <= 69
    await check_entries(reader)


async def test_two_brokers_that_recover_at_once_agree(clients: tuple[Client, Client]) -> None:
    client, other = clients
    writer, _ = await filled(client, 50, THREE)
    append(writer, 50)
    readers = await asyncio.gather(
        client.store.recover(writer.ledger_id), other.store.recover(writer.ledger_id)
    )
    assert len({reader.last_add_confirmed for reader in readers}) == 1
    assert readers[0].last_add_confirmed >= 49
    for reader in readers:
        await check_entries(reader)


async def test_without_enough_answers_nothing_is_decided_and_later_it_is(
    clients: tuple[Client, Client],
) -> None:
    client, other = clients
    writer, _ = await filled(client, 20, THREE)
    frozen = [await client.place(writer.ledger_id, index) for index in (0, 1)]
    for bookie in frozen:
        bookie.freeze()
    try:
        with pytest.raises(StoreUnavailableError):
            await other.store.recover(writer.ledger_id)
        assert not (await other.store.info(writer.ledger_id)).is_closed
    finally:
        for bookie in frozen:
            bookie.thaw()
    reader = await other.store.recover(writer.ledger_id)
    assert reader.last_add_confirmed == 19
    await check_entries(reader)


async def test_what_was_confirmed_survives_the_death_of_all_bookies(
    clients: tuple[Client, Client],
) -> None:
    client, other = clients
    writer, listener = await filled(client, 30, THREE)
    append(writer, 100)
    bookies = client.cluster.bookies
    for bookie in bookies:
        bookie.kill()
    confirmed = listener.last
    await until(lambda: bool(listener.failures))
    assert isinstance(listener.failures[0], (NotEnoughBookiesError, StorageError))
    await asyncio.gather(*(asyncio.to_thread(bookie.start) for bookie in bookies))
    reader = await other.store.recover(writer.ledger_id)
    assert confirmed <= listener.last <= reader.last_add_confirmed <= 129
    await check_entries(reader)


async def test_an_idle_ledger_does_without_a_killed_bookie(clients: tuple[Client, Client]) -> None:
    client, _ = clients
    writer, listener = await filled(client, 20, THREE)
    killed = await client.place(writer.ledger_id, 0)
    killed.kill()
    async with asyncio.timeout(20):
        while killed.bookie_id in (await client.record(writer.ledger_id)).last_segment.bookie_ids:
            await asyncio.sleep(0.1)  # nobody appends
    assert not listener.failures
    append(writer, 20)
    await listener.until(39)
    await writer.close()


async def test_a_bookie_that_froze_is_taken_again_once_it_answers_a_question(
    clients: tuple[Client, Client],
) -> None:
    client, _ = clients

    def is_failing(bookie: BookieProcess) -> bool:
        return any(
            each.is_failing for each in client.store.bookies() if each.bookie_id == bookie.bookie_id
        )

    writer, listener = await filled(client, 10, THREE)
    frozen = await client.place(writer.ledger_id, 0)
    frozen.freeze()
    try:
        append(writer, 10)
        await until(lambda: is_failing(frozen))
    finally:
        frozen.thaw()
    await until(lambda: not is_failing(frozen))
    await listener.until(19)
    await writer.close()


async def test_with_two_of_four_bookies_ledgers_are_smaller_and_with_one_they_wait(
    clients: tuple[Client, Client],
) -> None:
    client, other = clients
    writer, listener = await filled(client, 10, THREE)
    ids = (await client.record(writer.ledger_id)).last_segment.bookie_ids
    first, second = [await client.place(writer.ledger_id, index) for index in range(2)]
    third = next(each for each in client.cluster.bookies if each.bookie_id not in ids)
    for bookie in (first, third):
        bookie.kill()
    append(writer, 10)
    await until(lambda: bool(listener.failures))
    assert isinstance(listener.failures[0], NotEnoughBookiesError)
    await writer.close()
    small, listener = await filled(client, 10, THREE)
    record = await client.record(small.ledger_id)
    assert (record.ensemble_size, record.write_quorum_size, record.ack_quorum_size) == (2, 2, 2)
    assert client.store.figures()["open_ledgers_below_policy"] == 1
    await check_entries(await other.store.open(writer.ledger_id))

    second.kill()
    append(small, 5)
    await until(lambda: bool(listener.failures))
    await small.close()
    creating = asyncio.get_running_loop().create_task(filled(client, 5, THREE))
    await asyncio.sleep(1)
    assert client.store.figures()["waiting_ledgers"] == 1
    await asyncio.to_thread(first.start)
    waited, _ = await creating
    assert (await client.record(waited.ledger_id)).ensemble_size == 2
    await waited.close()
    await check_entries(await other.store.open(small.ledger_id))


async def test_the_end_of_an_idle_ledger_is_told(own_bookkeeper: BookKeeperCluster) -> None:
    telling = replace(SETTINGS, explicit_lac_interval_seconds=0.2)
    writing, reading = (Client(own_bookkeeper, telling) for _ in range(2))
    for bookie in own_bookkeeper.bookies:
        if not bookie.is_running:
            await asyncio.to_thread(bookie.start)
        await until(bookie.is_registered)
    for each in (writing, reading):
        await each.connect()
    try:
        writer, _ = await filled(writing, 10, THREE)
        async with asyncio.timeout(10):
            while (await reading.store.open(writer.ledger_id)).last_add_confirmed < 9:
                await asyncio.sleep(0.1)
        reader = await reading.store.open(writer.ledger_id)
        assert list(await reader.read(0, 9, 10_000)) == [data(each) for each in range(10)]
        assert writing.store.figures()["explicit_lac_failures_count"] == 0
        assert not (await writing.record(writer.ledger_id)).is_closed
    finally:
        for each in (writing, reading):
            await each.close()


async def test_a_run_of_entries_is_one_request(clients: tuple[Client, Client]) -> None:
    client, other = clients
    writer, _ = await filled(client, 200, THREE)
    await writer.close()
    reader = await other.store.open(writer.ledger_id)
    bookie_ids = (await client.record(writer.ledger_id)).last_segment.bookie_ids
    known = other.store._cluster.bookies.batch_reads
    for bookie_id in bookie_ids:
        known.takes(bookie_id)  # which asks it
    await until(lambda: all(known.takes(bookie_id) for bookie_id in bookie_ids))
    before = sum(bookie.reads.count for bookie in other.store.bookies())
    assert list(await reader.read(0, 63, 1_000_000)) == [data(each) for each in range(64)]
    assert sum(bookie.reads.count for bookie in other.store.bookies()) - before <= 3
    await check_entries(reader)
