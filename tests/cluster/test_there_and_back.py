"""What Apache Pulsar's broker keeps, and ours does not know, is there after ours had the topics."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pulsar
import pytest

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import OurBroker
from tests.cluster.takeover_scenarios import RECEIVE_MILLIS, SETTINGS, connected, rest_of

pytestmark = [pytest.mark.slow, pytest.mark.interop]

NAMESPACE: Final = "public/there-and-back"
COMPRESSED: Final = {
    "managedLedgerInfoCompressionType": "ZSTD",
    "managedLedgerInfoCompressionThresholdInBytes": 0,
}
"""Records of topics in a form that our broker reads, and does not write. Not of cursors: Apache
Pulsar fails to read one back that is compressed and has a property, as that of compaction has."""
POLICIES: Final[dict[str, Any]] = {
    "persistence": {
        "bookkeeperEnsemble": 3,
        "bookkeeperWriteQuorum": 3,
        "bookkeeperAckQuorum": 2,
        "managedLedgerMaxMarkDeleteRate": 10.0,
    },
    "retention": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
    "dispatchRate": {
        "dispatchThrottlingRateInMsg": 1000,
        "dispatchThrottlingRateInByte": 1 << 20,
        "ratePeriodInSecond": 1,
    },
    "compactionThreshold": 1 << 30,
    "maxTopicsPerNamespace": 1000,
    "property/color": "blue",
}


class Topic:
    """One topic in administration and to clients."""

    def __init__(self, name: str) -> None:
        self.url = f"persistent://{NAMESPACE}/{name}"
        self.path = f"persistent/{NAMESPACE}/{name}"


PLAIN, COMPACTED, LIMITED = Topic("plain"), Topic("compacted"), Topic("limited")


def set_policies(apache: ApacheBroker) -> None:
    apache.ask("PUT", f"namespaces/{NAMESPACE}", {"bundles": {"numBundles": 2}})
    for word, value in POLICIES.items():
        if word.startswith("property/"):
            apache.ask("PUT", f"namespaces/{NAMESPACE}/{word}/{value}")
        elif word == "compactionThreshold":
            apache.ask("PUT", f"namespaces/{NAMESPACE}/{word}", value)
        else:
            apache.ask("POST", f"namespaces/{NAMESPACE}/{word}", value)


def write(apache: ApacheBroker) -> None:
    """All that our broker has no words for."""
    set_policies(apache)
    with connected(apache) as client:
        for topic in (PLAIN, LIMITED):
            client.subscribe(topic.url, "sub", pulsar.ConsumerType.Shared).close()
            producer = client.create_producer(topic.url)
            for number in range(30):
                producer.send(b"%d" % number)
        consumer = client.subscribe(PLAIN.url, "sub", pulsar.ConsumerType.Shared)
        for _ in range(30):
            message = consumer.receive(RECEIVE_MILLIS)
            if int(message.data()) % 2:
                consumer.acknowledge(message)
        producer = client.create_producer(COMPACTED.url)
        for number in range(40):
            producer.send(b"%d" % number, partition_key=f"k{number % 4}")
    apache.ask("PUT", f"{PLAIN.path}/properties", {"owner": "somebody", "ü": "ö"})
    apache.ask("PUT", f"{PLAIN.path}/subscription/sub/properties", {"why": "because"})
    apache.ask("POST", f"{LIMITED.path}/maxConsumers", 7)
    apache.ask("POST", f"{LIMITED.path}/retention", POLICIES["retention"])
    apache.ask("PUT", f"{COMPACTED.path}/compaction")
    deadline = time.monotonic() + 30
    while apache.get(f"{COMPACTED.path}/compaction")["status"] != "SUCCESS":
        assert time.monotonic() < deadline, "it was not compacted"
        time.sleep(0.1)


def answers(apache: ApacheBroker) -> dict[str, object]:
    """What administration says of all that."""
    found: dict[str, object] = {"policies": apache.get(f"namespaces/{NAMESPACE}")}
    properties = apache.get(f"{PLAIN.path}/properties")
    found["properties"] = {k: v for k, v in properties.items() if not k.startswith("pulsar_py.")}
    stats = apache.get(f"{PLAIN.path}/stats")["subscriptions"]["sub"]
    found["subscription"] = stats["subscriptionProperties"]
    found["limit"] = apache.get(f"{LIMITED.path}/maxConsumers")
    found["retention"] = apache.get(f"{LIMITED.path}/retention")
    internal = apache.get(f"{COMPACTED.path}/internalStats")
    found["compacted"] = internal["compactedLedger"]
    found["cursor"] = internal["cursors"]["__compaction"]["properties"]
    return found


def use(ours: OurBroker) -> None:
    """Publish to all, and acknowledge some, so that everything is written again."""
    with connected(ours) as client:
        for topic in (PLAIN, LIMITED, COMPACTED):
            client.create_producer(topic.url).send(b"100", partition_key="new")
        consumer = client.subscribe(PLAIN.url, "sub", pulsar.ConsumerType.Shared)
        for _ in range(3):
            consumer.acknowledge(consumer.receive(RECEIVE_MILLIS))  # 0, 2 and 4
        time.sleep(1.5)


def compacted(client: pulsar.Client) -> list[bytes]:
    reader = client.create_reader(COMPACTED.url, pulsar.MessageId.earliest, is_read_compacted=True)
    found = []
    with contextlib.suppress(pulsar.Timeout):
        while True:
            found.append(reader.read_next(2_000).data())
    return found


@pytest.fixture(scope="module")
def apache(
    bookkeeper: BookKeeperCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ApacheBroker, dict[str, object]]]:
    """It has the topics again; and what it had said before."""
    directory = tmp_path_factory.mktemp("there-and-back")
    made = broker_of_apache(directory, bookkeeper)
    ours = OurBroker(directory / "ours", bookkeeper.zookeeper.url, settings=SETTINGS)
    try:
        made.initialize_cluster()
        made.start()
        write(made)
        said = answers(made)
        made.stop()
        ours.start()
        use(ours)
        ours.stop()
        made.start()
        yield made, said
        made.stop()
    finally:
        made.kill()
        ours.kill()


def broker_of_apache(directory: Path, cluster: BookKeeperCluster) -> ApacheBroker:
    settings = {**SETTINGS, **COMPRESSED, "managedLedgerDefaultMarkDeleteRateLimit": 1_000}
    return ApacheBroker(directory / "apache", cluster.zookeeper.url, settings=settings)


Apache = tuple[ApacheBroker, dict[str, object]]


def test_policies_properties_and_what_was_compacted_are_kept(apache: Apache) -> None:
    broker, said = apache
    with connected(broker) as client:
        for topic in (PLAIN, LIMITED, COMPACTED):
            client.create_producer(topic.url).close()
    assert answers(broker) == said


def test_messages_and_acknowledgements_of_both_are_there(apache: Apache) -> None:
    broker, _ = apache
    with connected(broker) as client:
        consumer = client.subscribe(PLAIN.url, "sub", pulsar.ConsumerType.Shared)
        left = [*range(6, 30, 2), 100]
        assert [int(message.data()) for message in rest_of(consumer, len(left))] == left
        consumer = client.subscribe(LIMITED.url, "sub", pulsar.ConsumerType.Shared)
        assert [int(m.data()) for m in rest_of(consumer, 31)] == [*range(30), 100]


def test_compacted_messages_are_read_as_before(apache: Apache) -> None:
    broker, _ = apache
    with connected(broker) as client:
        assert compacted(client) == [b"36", b"37", b"38", b"39", b"100"]
