"""What a broker of one kind compacted, one of the other reads, and compacts again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pulsar
import pytest

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import OurBroker
from tests.cluster.takeover_scenarios import SETTINGS, connected

pytestmark = [pytest.mark.slow, pytest.mark.interop]

NAMESPACE: Final = "public/compacted-by-both"
TOPIC: Final = f"persistent://{NAMESPACE}/topic"
PATH: Final = f"persistent/{NAMESPACE}/topic"
KEYS: Final = 30
COMPRESSIONS: Final = (
    pulsar.CompressionType.NONE,
    pulsar.CompressionType.LZ4,
    pulsar.CompressionType.ZSTD,
    pulsar.CompressionType.ZLib,
)
ROUNDS: Final = 4
Broker = ApacheBroker | OurBroker


def publish(client: pulsar.Client, number: int, latest: dict[str, bytes]) -> None:
    """Two updates of most keys in batches, one of some alone, and the deletion of one."""
    producer = client.create_producer(
        TOPIC,
        batching_enabled=True,
        batching_max_messages=10,
        batching_max_publish_delay_ms=1000,
        compression_type=COMPRESSIONS[number],
    )
    for update in range(2):
        for key in range(number, KEYS):
            value = b"round %d, update %d of key %d" % (number, update, key)
            producer.send_async(value, None, partition_key=f"key-{key}")
            latest[f"key-{key}"] = value
    producer.send_async(b"", None, partition_key=f"key-{number * 7 + 3}")
    latest.pop(f"key-{number * 7 + 3}")
    producer.flush()
    producer.close()
    producer = client.create_producer(TOPIC, batching_enabled=False)
    producer.send(b"alone %d" % number, partition_key="alone")
    latest["alone"] = b"alone %d" % number
    producer.close()


def read(client: pulsar.Client) -> list[tuple[str, bytes]]:
    """Keys and values of the compacted view, in order.

    The official client hands out what a batch lost to compaction as a message without key and data.
    """
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest, is_read_compacted=True)
    found = []
    with contextlib.suppress(pulsar.Timeout):
        while True:
            message = reader.read_next(5_000 if not found else 2_000)
            if message.partition_key() or message.data():
                found.append((message.partition_key(), message.data()))
    reader.close()
    return found


def compact(broker: Broker) -> int:
    """Compact the topic; the id of its new ledger."""
    broker.ask("PUT", f"{PATH}/compaction")
    deadline = time.monotonic() + 60
    while (status := broker.get(f"{PATH}/compaction")["status"]) == "RUNNING":
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.1)
    assert status == "SUCCESS"
    return compacted_ledger(broker)


def compacted_ledger(broker: Broker) -> int:
    ledger_id: int = broker.get(f"{PATH}/internalStats")["compactedLedger"]["ledgerId"]
    return ledger_id


@pytest.fixture
def brokers(
    bookkeeper: BookKeeperCluster, tmp_path: Path
) -> Iterator[tuple[ApacheBroker, OurBroker]]:
    apache = ApacheBroker(tmp_path / "apache", bookkeeper.zookeeper.url, settings=SETTINGS)
    ours = OurBroker(tmp_path / "ours", bookkeeper.zookeeper.url, settings=SETTINGS)
    yield apache, ours
    apache.kill()
    ours.kill()


def test_each_reads_and_compacts_what_the_other_compacted(
    brokers: tuple[ApacheBroker, OurBroker],
) -> None:
    apache, _ = brokers
    apache.initialize_cluster()
    latest: dict[str, bytes] = {}
    ledgers: list[int] = []
    for number in range(ROUNDS):
        broker = brokers[number % 2]
        broker.start()
        if not number:
            broker.ask("PUT", f"namespaces/{NAMESPACE}", {"bundles": {"numBundles": 1}})
        with connected(broker) as client:
            if number:
                before = read(client)
                assert len(before) == len(latest), "the other one's view was compacted"
                assert dict(before) == latest
                assert compacted_ledger(broker) == ledgers[-1]
            publish(client, number, latest)
            ledgers.append(compact(broker))
            after = read(client)
            assert len(after) == len(latest)
            assert dict(after) == latest
            view = client.create_table_view(TOPIC)
            assert {key: view.get(key) for key in latest} == latest
            view.close()
        broker.stop()
    assert sorted(set(ledgers)) == ledgers, "each compaction wrote a ledger of its own"
