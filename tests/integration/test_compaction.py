"""Compacted topics, as official clients and ours read them."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator

import pulsar
import pytest
from click.testing import CliRunner

from pulsar_py import client as sdk
from pulsar_py.cli.commands import main
from pulsar_py.testing import BrokerThread

QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
CONFIG = {
    "brokerServiceCompactionThresholdInBytes": 2000,
    "brokerServiceCompactionMonitorIntervalInSeconds": 1,
    "topicCompactionMaxMemoryMB": 1,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread() as started:
        yield started


@pytest.fixture
def client(broker: BrokerThread) -> Iterator[pulsar.Client]:
    opened = pulsar.Client(broker.service_url, logger=QUIET)
    yield opened
    opened.close()


def call(broker: BrokerThread, path: str, method: str = "GET") -> bytes:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/{path}"
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=20) as answer:
        return answer.read()


def compact(broker: BrokerThread, topic: str) -> None:
    arguments = ["compact-topic", "-t", topic, "--web-service-url", broker.web_service_url]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def publish(client: pulsar.Client, topic: str, values: dict[str, bytes], **options) -> None:
    producer = client.create_producer(topic, block_if_queue_full=True, **options)
    for key, value in values.items():
        producer.send_async(value, None, partition_key=key)
    producer.flush()
    producer.close()


def read(client: pulsar.Client, topic: str, start=pulsar.MessageId.earliest) -> list:
    reader = client.create_reader(topic, start, is_read_compacted=True)
    found = []
    while reader.has_message_available():
        message = reader.read_next(30_000)
        if message.partition_key():  # the C++ client shows what was compacted out of a batch
            found.append((message.partition_key(), message.data()))
    reader.close()
    return found


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("codec", [pulsar.CompressionType.NONE, pulsar.CompressionType.ZSTD])
def test_the_newest_of_each_key_and_what_came_later(
    broker: BrokerThread, client: pulsar.Client, codec: pulsar.CompressionType, *, batches: bool
) -> None:
    topic = f"newest-{batches}-{codec.name}"
    options = {"batching_enabled": batches, "compression_type": codec}
    for number in range(3):
        values = {f"k{key}": b"%d" % number for key in range(10)}
        publish(client, topic, values, **options)
    publish(client, topic, {"k3": b"", "k4": b"new"}, **options)
    compact(broker, topic)
    others = [(f"k{key}", b"2") for key in range(10) if key not in (3, 4)]
    assert read(client, topic) == [*others, ("k4", b"new")]
    publish(client, topic, {"k0": b"tail", "k4": b""}, **options)
    assert read(client, topic) == [*others, ("k4", b"new"), ("k0", b"tail"), ("k4", b"")]
    compact(broker, topic)
    assert read(client, topic) == [*others[1:], ("k0", b"tail")]
    stats = json.loads(call(broker, f"{topic}/stats"))
    assert stats["compaction"]["lastCompactionRemovedEventCount"] == 3
    ledger = json.loads(call(broker, f"{topic}/internalStats"))["compactedLedger"]
    # The client's clock may end a batch early on a busy machine.
    assert 2 <= ledger["entries"] < 8 if batches else ledger["entries"] == 8


def test_originals_may_be_gone_and_a_restart_changes_nothing() -> None:
    with BrokerThread(config={"retentionCheckIntervalInSeconds": 1}) as broker:
        client = pulsar.Client(broker.service_url, logger=QUIET)
        publish(client, "gone", {f"k{key}": b"1" for key in range(5)}, batching_enabled=False)
        compact(broker, "gone")
        call(broker, "gone/unload", "PUT")
        publish(client, "gone", {"k0": b"2"}, batching_enabled=False)
        compact(broker, "gone")
        expected = [*((f"k{key}", b"1") for key in range(1, 5)), ("k0", b"2")]
        assert read(client, "gone") == expected
        call(broker, "gone/unload", "PUT")
        deadline = time.monotonic() + 120
        while json.loads(call(broker, "gone/internalStats"))["numberOfEntries"] > 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        client.close()
        broker.restart()
        client = pulsar.Client(broker.service_url, logger=QUIET)
        assert read(client, "gone") == expected
        view = client.create_table_view("gone")
        found: dict[str, bytes] = {}
        view.for_each(found.__setitem__)
        assert found == dict(expected)
        view.close()
        client.close()


def test_a_failover_consumer_goes_on_over_compactions(
    broker: BrokerThread, client: pulsar.Client
) -> None:
    topic = "failover"
    publish(client, topic, {f"k{key}": b"1" for key in range(6)}, batching_enabled=False)
    compact(broker, topic)
    consumer = client.subscribe(
        topic,
        "sub",
        consumer_type=pulsar.ConsumerType.Failover,
        initial_position=pulsar.InitialPosition.Earliest,
        is_read_compacted=True,
        receiver_queue_size=1,
    )
    got = [consumer.receive(30_000)]
    consumer.acknowledge_cumulative(got[0])
    publish(client, topic, {"k4": b"2", "k5": b"2"}, batching_enabled=False)
    compact(broker, topic)
    while len(got) < 6 or got[-1].partition_key() != "k5":
        got.append(consumer.receive(30_000))
        consumer.acknowledge_cumulative(got[-1])
    keys = [message.partition_key() for message in got]
    assert keys[:4] == ["k0", "k1", "k2", "k3"]
    assert [message.data() for message in got if message.partition_key() in ("k4", "k5")][-2:] == [
        b"2",
        b"2",
    ]
    positions = [(m.message_id().ledger_id(), m.message_id().entry_id()) for m in got]
    assert positions == sorted(set(positions))
    consumer.close()


def test_the_threshold_starts_it_and_keys_beyond_memory_go_to_disk(tmp_path) -> None:
    config = {**CONFIG, "topicCompactionSpillDirectory": str(tmp_path)}
    with BrokerThread(config=config) as broker:
        client = pulsar.Client(broker.service_url, logger=QUIET)
        for number in range(2):
            publish(client, "many", {f"key-{key}": b"%d" % number for key in range(6000)})
        deadline = time.monotonic() + 120
        while len(read(client, "many")) > 6000:  # the rest of it is not compacted yet
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert sorted(read(client, "many")) == sorted((f"key-{key}", b"1") for key in range(6000))
        client.close()
    assert not list(tmp_path.iterdir())


async def test_our_reader_and_table_view_read_the_compacted_topic(broker: BrokerThread) -> None:
    async with sdk.Client(broker.service_url) as ours:
        for topic, batches in (("ours", False), ("ours-in-batches", True)):
            producer = await ours.create_producer(topic, batching_enabled=batches)
            sends = [
                producer.send(b"%d" % number, partition_key=f"k{number % 4}")
                for number in range(11)
            ]
            await asyncio.gather(*sends)
            await asyncio.to_thread(compact, broker, topic)
            await producer.send(b"tail", partition_key="k0")
            reader = await ours.create_reader(topic, sdk.MessageId.earliest, is_read_compacted=True)
            found = []
            while await reader.has_message_available():
                message = await reader.read_next(30_000)
                found.append((message.partition_key(), message.data()))
            assert found == [
                ("k3", b"7"),
                ("k0", b"8"),
                ("k1", b"9"),
                ("k2", b"10"),
                ("k0", b"tail"),
            ]
            view = await ours.create_table_view(topic)
            assert dict(view) == {"k0": b"tail", "k1": b"9", "k2": b"10", "k3": b"7"}
            await view.close()


def messages_out(broker: BrokerThread, topic: str) -> int:
    """The messages that the topic has sent to all its consumers so far."""
    count: int = json.loads(call(broker, f"{topic}/stats"))["msgOutCounter"]
    return count


async def test_table_views_are_sent_compacted_entries_alone(
    broker: BrokerThread, client: pulsar.Client
) -> None:
    """Of 2,000 messages four are left, of which two come compacted, behind them three more."""
    topic = "counted"
    for number in range(500):
        publish(client, topic, {f"k{key}": b"%d" % number for key in range(4)})
    publish(client, topic, {"k0": b"", "k1": b""})
    await asyncio.to_thread(compact, broker, topic)
    publish(client, topic, {"k0": b"tail", "k2": b"tail", "k4": b"tail"}, batching_enabled=False)
    expected = {"k0": b"tail", "k2": b"tail", "k3": b"499", "k4": b"tail"}
    before = messages_out(broker, topic)
    async with sdk.Client(broker.service_url) as ours:
        view = await ours.create_table_view(topic)
        assert dict(view) == expected
        await view.close()
    after_ours = messages_out(broker, topic)
    theirs = await asyncio.to_thread(client.create_table_view, topic)
    found: dict[str, bytes] = {}
    theirs.for_each(found.__setitem__)
    assert found == expected
    theirs.close()
    assert (after_ours - before, messages_out(broker, topic) - after_ours) == (5, 5)
