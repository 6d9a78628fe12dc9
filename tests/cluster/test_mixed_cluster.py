"""One cluster of both kinds: topics move between our broker and Apache Pulsar's, under load.

Both are registered in one ZooKeeper and keep their ledgers on the same bookies. One bundle with a
topic of each kind is moved ten times, while official clients write, read and acknowledge. Then it
is judged: nothing confirmed is missing, nothing that was acknowledged longer than the persistence
interval before a move came again, and each key's messages came in order.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Final

import pulsar
import pytest
from pulsar.schema import AvroSchema

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.mixed_cluster import (
    MOVE_SECONDS,
    NAMESPACE,
    SETTINGS,
    Broker,
    Mixed,
    advertised,
    ask_on,
    lookup,
    until,
)
from tests.cluster.our_broker import OurBroker, tool
from tests.cluster.takeover_scenarios import Person, PersonWithAge

pytestmark = [pytest.mark.slow, pytest.mark.interop]

BASE: Final = f"persistent://{NAMESPACE}"
MOVES: Final = 10
DWELL_SECONDS: Final = 8.0
PERSIST_SECONDS: Final = 3.0
"""By which an acknowledgement is stored: Apache's a second after, ours too, and the way there."""
RECONNECT_SECONDS: Final = 3.0
"""By which clients are at the new owner; what they had in their queues may be acknowledged before."""
KEYS: Final = 8
FIRST_MESSAGES: Final = 50
DELAYED_COUNT: Final = 200
COORDINATORS: Final = "persistent/pulsar/system/transaction_coordinator_assign"


@pytest.fixture(scope="module", params=["ours-leads", "apache-leads"])
def mixed(
    request: pytest.FixtureRequest,
    bookkeeper: BookKeeperCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mixed]:
    """Whoever is started first leads."""
    directory = tmp_path_factory.mktemp(request.param)
    url = f"{bookkeeper.zookeeper.url}/{directory.name}"
    ours = OurBroker(
        directory / "ours", url, settings={**SETTINGS, "advertisedAddress": "localhost"}
    )
    bookkeeper_uri = ours._bookkeeper_uri  # the same bookies, beside the chroot
    apache = ApacheBroker(
        directory / "apache",
        url,
        settings={**SETTINGS, "bookkeeperMetadataServiceUri": bookkeeper_uri},
    )
    brokers: list[Broker] = [ours, apache]
    if request.param == "apache-leads":
        brokers.reverse()
    try:
        ours.initialize_cluster()
        for broker in brokers:
            broker.start()
        made = Mixed(brokers)
        ask_on(brokers[0], "PUT", f"namespaces/{NAMESPACE}", {"bundles": {"numBundles": 1}})
        ask_on(brokers[1], "POST", f"namespaces/{NAMESPACE}/deduplication", True)
        yield made
    finally:
        for broker in brokers:
            broker.kill()


@dataclass
class Load:
    """A writer and readers of one topic, and what they saw."""

    topic: str
    confirmed: list[int] = field(default_factory=list)
    received: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    firsts: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By key: numbers in the order in which they came for the first time."""
    errors: list[BaseException] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    is_writing: bool = True
    is_reading: bool = True

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - told by the test
                self.errors.append(error)

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def write(self, client: Any, **options: Any) -> None:  # Any: of the official client
        producer = client.create_producer(
            self.topic, producer_name=f"writer-{self.topic.rpartition('/')[2]}",
            send_timeout_millis=120_000, **options,
        )  # fmt: skip

        def work() -> None:
            number = 0
            while self.is_writing:
                producer.send(b"%d" % number, partition_key=f"k{number % KEYS}")
                self.confirmed.append(number)
                number += 1
                time.sleep(0.01)

        self.start(work)

    def read(
        self, client: Any, kind: Any, acknowledges: Callable[[int], bool], **options: Any
    ) -> None:
        consumer = client.subscribe(self.topic, "sub", kind, **options)

        def work() -> None:
            while self.is_reading:
                try:
                    message = consumer.receive(500)
                except pulsar.Timeout:
                    continue
                number = int(message.data())
                if not self.received[number]:
                    self.firsts[number % KEYS].append(number)
                self.received[number].append(time.monotonic())
                if acknowledges(number):
                    consumer.acknowledge(message)
                    self.acknowledged[number].append(time.monotonic())

        self.start(work)

    @property
    def is_waited_for(self) -> bool:
        """Whether something that was confirmed has not come."""
        return bool(set(self.confirmed) - self.received.keys())

    def end(self) -> None:
        self.is_reading = False
        for thread in self.threads:
            thread.join(150)

    def check_again(
        self, number: int, at: float, again: float, moves: Sequence[tuple[float, float]]
    ) -> None:
        """What came at `at` came once more: it was not acknowledged, or just before a move."""
        acks = [each for each in self.acknowledged[number] if at <= each <= again]
        if not acks:
            return
        assert any(
            begun - PERSIST_SECONDS <= acks[0] and at <= ended + RECONNECT_SECONDS
            for begun, ended in moves
            if begun <= again
        ), f"{self.topic}: {number} came {again - acks[0]:.1f} s after its ack, no move between"

    def check(self, moves: Sequence[tuple[float, float]]) -> None:
        """Judge, after everything has come."""
        assert not self.errors, (self.topic, self.errors)
        missing = set(self.confirmed) - self.received.keys()
        assert not missing, f"{self.topic}: lost {sorted(missing)[:20]}"
        for number, times in self.received.items():
            for at, again in pairwise(times):
                self.check_again(number, at, again, moves)
        for key, numbers in self.firsts.items():
            assert numbers == sorted(numbers), f"{self.topic}: key {key} is out of order"


def test_topics_move_between_both_kinds_under_load(mixed: Mixed) -> None:
    client = mixed.client()
    names = ("holes", "batches", "parts", "keyed")
    loads = {name: Load(f"{BASE}/{name}") for name in names}
    try:
        move_under_load(mixed, client, loads)
    finally:
        for load in loads.values():
            load.is_writing = load.is_reading = False
        client.close()


def move_under_load(mixed: Mixed, client: Any, loads: Mapping[str, Load]) -> None:
    still = Still(mixed, client)
    still.write()
    begin(mixed, client, loads)
    for number in range(MOVES):
        mixed.move(mixed.brokers[number % 2], asked=mixed.brokers[number // 2 % 2])
        still.check_policies()
        time.sleep(DWELL_SECONDS)
        for load in loads.values():
            assert not load.errors, (load.topic, load.errors)
    for load in loads.values():
        load.is_writing = False
    deadline = time.monotonic() + 60
    while any(load.is_waited_for for load in loads.values()) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(DWELL_SECONDS)
    for load in loads.values():
        load.end()
        assert len(load.confirmed) > MOVES
        load.check(mixed.moves)
    still.check()


def begin(mixed: Mixed, client: Any, loads: Mapping[str, Load]) -> None:
    """Writers and readers of all that is written meanwhile."""
    ask_on(mixed.brokers[0], "PUT", f"persistent/{NAMESPACE}/parts/partitions", 3)
    shared = pulsar.ConsumerType.Shared
    loads["holes"].read(client, shared, lambda number: number % 3 != 0)
    loads["batches"].read(
        client, shared, lambda number: number % 2 == 0, batch_index_ack_enabled=True
    )
    loads["parts"].read(client, pulsar.ConsumerType.Failover, lambda _: True)
    for _ in range(2):
        loads["keyed"].read(client, pulsar.ConsumerType.KeyShared, lambda _: True)
    for name, load in loads.items():
        load.write(client, batching_enabled=name == "batches", block_if_queue_full=True)
    # The official client numbers its second message as its first one, if it connects anew before
    # the first one's receipt: the broker then drops it as a duplicate.
    deadline = time.monotonic() + MOVE_SECONDS
    while any(len(load.confirmed) < FIRST_MESSAGES for load in loads.values()):
        assert time.monotonic() < deadline, "nothing is confirmed"
        time.sleep(0.1)


class Still:
    """Topics that nobody writes to while they move."""

    DELAYED, COUNT = 20, 60

    def __init__(self, mixed: Mixed, client: Any) -> None:
        self._mixed = mixed
        self._client = client

    @property
    def broker(self) -> Broker:
        return self._mixed.brokers[0]

    def path(self, rest: str) -> str:
        return f"persistent/{NAMESPACE}/{rest}"

    def write(self) -> None:
        client = self._client
        producer = client.create_producer(f"{BASE}/typed", schema=AvroSchema(Person))
        producer.send(Person(name="old"))
        later = client.create_producer(f"{BASE}/typed", schema=AvroSchema(PersonWithAge))
        later.send(PersonWithAge(name="new", age=3))
        consumer = client.subscribe(f"{BASE}/delayed", "sub", pulsar.ConsumerType.Shared)
        producer = client.create_producer(f"{BASE}/delayed", batching_enabled=False)
        self.due = time.time() + 45
        for number in range(self.DELAYED):
            producer.send(b"%d" % number, deliver_at=int(self.due * 1000))
        for number in range(self.DELAYED):
            producer.send(b"late %d" % number, deliver_at=int((self.due + 36_000) * 1000))
        consumer.close()
        producer = client.create_producer(f"{BASE}/compacted", batching_enabled=False)
        for number in range(self.COUNT):
            producer.send(b"%d" % number, partition_key=f"k{number % 5}")
        self.compact()
        client.subscribe(f"{BASE}/ended", "sub").close()
        producer = client.create_producer(f"{BASE}/ended")
        for number in range(3):
            producer.send(b"%d" % number)
        producer.close()
        ask_on(self.broker, "POST", self.path("ended/terminate"))
        ask_on(self._mixed.brokers[1], "POST", self.path("ended/maxConsumers"), 7)
        ask_on(self._mixed.brokers[0], "POST", f"namespaces/{NAMESPACE}/messageTTL", 86_400)

    def compact(self) -> None:
        ask_on(self.broker, "PUT", self.path("compacted/compaction"))
        deadline = time.monotonic() + 60
        while ask_on(self.broker, "GET", self.path("compacted/compaction"))["status"] != "SUCCESS":
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def check_policies(self) -> None:
        """Both say the same, whoever has the bundle."""
        for broker in self._mixed.brokers:
            assert until(
                lambda broker=broker: ask_on(broker, "GET", self.path("ended/maxConsumers")), 7
            )
            assert ask_on(broker, "GET", f"namespaces/{NAMESPACE}/messageTTL") == 86_400
            assert ask_on(broker, "GET", f"namespaces/{NAMESPACE}/deduplication") is True

    def check(self) -> None:
        client = self._client
        consumer = client.subscribe(
            f"{BASE}/typed", "sub", schema=AvroSchema(PersonWithAge),
            initial_position=pulsar.InitialPosition.Earliest,
        )  # fmt: skip
        found = [consumer.receive(20_000).value() for _ in range(2)]
        assert [each.name for each in found] == ["old", "new"]
        consumer = client.subscribe(f"{BASE}/delayed", "sub", pulsar.ConsumerType.Shared)
        time.sleep(max(0.0, self.due - time.time()))
        due = sorted(int(consumer.receive(30_000).data()) for _ in range(self.DELAYED))
        assert due == list(range(self.DELAYED))
        with suppress(pulsar.Timeout):
            raise AssertionError(f"{consumer.receive(2_000).data()} is not due")
        reader = client.create_reader(
            f"{BASE}/compacted", pulsar.MessageId.earliest, is_read_compacted=True
        )
        kept = [reader.read_next(20_000).data() for _ in range(5)]
        assert kept == [b"%d" % number for number in range(self.COUNT - 5, self.COUNT)]
        consumer = client.subscribe(f"{BASE}/ended", "sub")
        assert [consumer.receive(20_000).data() for _ in range(3)] == [b"0", b"1", b"2"]
        with pytest.raises(pulsar.PulsarException):
            client.create_producer(f"{BASE}/ended")


def test_delayed_indexes_of_the_other_kind_are_not_left_behind(mixed: Mixed) -> None:
    """The index of a topic goes with it, whoever made it and whoever deletes it."""
    before = set(_left_ledgers(mixed))
    client = mixed.client()
    try:
        for maker, other in (mixed.brokers, reversed(mixed.brokers)):
            mixed.move(maker, asked=mixed.brokers[0])
            name = f"buckets-{advertised(maker, maker.web_service_url).rpartition(':')[2]}"
            consumer = client.subscribe(f"{BASE}/{name}", "sub", pulsar.ConsumerType.Shared)
            producer = client.create_producer(f"{BASE}/{name}", batching_enabled=False)
            due = time.time() + 36_000
            for number in range(DELAYED_COUNT):
                producer.send_async(
                    b"", lambda *_: None, deliver_at=int((due + 60 * number) * 1000)
                )
            producer.flush()
            assert until(partial(_delayed_count, maker, name), DELAYED_COUNT)
            assert until(lambda: len(_buckets(mixed)) > 0, wanted=True), "it makes no index"
            mixed.move(other, asked=mixed.brokers[0])
            assert until(partial(_delayed_count, other, name), DELAYED_COUNT)
            producer.close()
            consumer.close()
            ask_on(other, "DELETE", f"persistent/{NAMESPACE}/{name}?force=true")
        assert until(lambda: set(_left_ledgers(mixed)) <= before, wanted=True)
    finally:
        client.close()


def _delayed_count(broker: Broker, name: str) -> int:
    stats = ask_on(broker, "GET", f"persistent/{NAMESPACE}/{name}/stats")
    return int(stats["subscriptions"]["sub"]["msgDelayed"])


def _buckets(mixed: Mixed) -> list[int]:
    """Ledgers of delayed-message indexes."""
    return [
        each["ledger"]
        for each in _ledgers(mixed, "list")
        if each["component"] == "delayed-index-bucket"
    ]


def _left_ledgers(mixed: Mixed) -> list[int]:
    """Ledgers of delayed-message indexes that no cursor names."""
    return [
        each["ledger"]
        for each in _ledgers(mixed, "orphans")
        if each["component"] == "delayed-index-bucket"
    ]


def _ledgers(mixed: Mixed, command: str) -> list[dict[str, Any]]:
    ours = next(each for each in mixed.brokers if isinstance(each, OurBroker))
    printed = tool("ledger", command, "--config", str(ours.config), "--output", "json")
    return [json.loads(line) for line in printed.splitlines()]


def test_what_ours_does_not_serve_stays_with_apache(mixed: Mixed) -> None:
    """By the isolation policy of docs/OPERATIONS.md; our broker is `localhost` to others."""
    apache = next(each for each in mixed.brokers if isinstance(each, ApacheBroker))
    ours = next(each for each in mixed.brokers if isinstance(each, OurBroker))
    isolated, free = "public/isolated", "public/free"
    for namespace in (isolated, free):
        ask_on(mixed.brokers[0], "PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 4}})
    policy = {
        "namespaces": [f"{isolated}.*", "pulsar/system"],
        "primary": [r"127\.0\.0\.1"],
        "secondary": [],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": "1", "usage_threshold": "100"},
        },
    }
    path = "clusters/standalone/namespaceIsolationPolicies/stays-with-apache"
    ask_on(mixed.brokers[0], "POST", path, policy)
    try:
        for broker in mixed.brokers:
            for number in range(8):
                for namespace, owner in ((isolated, apache), (free, ours)):
                    found = until_found(broker, f"persistent/{namespace}/topic-{number}")
                    assert found == advertised(owner, owner.service_url), (namespace, number)
            for number in range(16):  # who has them coordinates transactions
                found = until_found(broker, f"{COORDINATORS}-partition-{number}")
                assert found == apache.service_url, number
    finally:
        ask_on(mixed.brokers[0], "DELETE", path)


def test_one_namespace_is_tried_with_ours_and_given_back(mixed: Mixed) -> None:
    """As docs/OPERATIONS.md has it. The last test of these brokers: ours is gone then."""
    apache = next(each for each in mixed.brokers if isinstance(each, ApacheBroker))
    ours = next(each for each in mixed.brokers if isinstance(each, OurBroker))
    tried, others = "public/tried", "public/others"
    for namespace in (tried, others):
        ask_on(mixed.brokers[0], "PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 4}})
    policy = {
        "namespaces": [tried],
        "primary": ["localhost"],
        "secondary": [r"127\.0\.0\.1"],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": "1", "usage_threshold": "100"},
        },
    }
    ask_on(mixed.brokers[0], "POST", "clusters/standalone/namespaceIsolationPolicies/try", policy)
    client = mixed.client()
    try:
        topics = [f"{tried}/topic-{number}" for number in range(8)]
        for broker in mixed.brokers:
            for topic in topics:
                found = until_found(broker, f"persistent/{topic}")
                assert found == advertised(ours, ours.service_url)
            found = until_found(broker, f"persistent/{others}/topic")
            assert found == apache.service_url
        producers = [client.create_producer(f"persistent://{topic}") for topic in topics]
        for producer in producers:
            producer.send(b"at ours")
        assert ours.stop() == 0
        for producer in producers:
            producer.send(b"at theirs")
        for topic in topics:
            assert until_found(apache, f"persistent/{topic}") == apache.service_url
            reader = client.create_reader(f"persistent://{topic}", pulsar.MessageId.earliest)
            found = [reader.read_next(30_000).data() for _ in range(2)]
            assert found == [b"at ours", b"at theirs"]
    finally:
        client.close()


def until_found(broker: Broker, topic: str) -> str:
    """Where a topic is; it may be refused while the policy is becoming known."""
    deadline = time.monotonic() + MOVE_SECONDS
    while True:
        try:
            return lookup(broker.web_service_url, topic)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
