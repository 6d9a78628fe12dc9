"""What one broker leaves on ZooKeeper and BookKeeper, and what the next one has to make of it.

A scenario writes with one broker and notes what it expects; once that broker has ended it checks
the expectation with another. It knows neither who wrote nor who reads. What the official client
does not show is read from administration, by the routes that both brokers have.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pulsar
from pulsar.schema import AvroSchema, Integer, Record, String

ENTRIES_PER_LEDGER: Final = 20
RECEIVE_MILLIS: Final = 20_000
QUIET_MILLIS: Final = 2_000
"""After so long nothing more is taken to come."""
SETTINGS: Final = {
    "managedLedgerMaxEntriesPerLedger": ENTRIES_PER_LEDGER,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "brokerDeduplicationEntriesInterval": 10,
    "brokerDeduplicationSnapshotIntervalSeconds": 1,
    "brokerDeduplicationSnapshotFrequencyInSeconds": 1,
}
"""Of both brokers: small ledgers, nothing trimmed."""


class RunningBroker(Protocol):
    """A broker of either kind."""

    @property
    def service_url(self) -> str: ...

    @property
    def reads_batch_indexes_of_closed_cursors(self) -> bool:
        """Whether it takes over what was acknowledged inside batches, from a record as well."""

    def ask(self, method: str, path: str, body: object = None) -> Any: ...  # Any: JSON


@contextlib.contextmanager
def connected(broker: RunningBroker) -> Iterator[pulsar.Client]:
    client = pulsar.Client(
        broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    try:
        yield client
    finally:
        client.close()


class Scenario(ABC):
    """One kind of stored state, on topics of its own."""

    def __init__(self, namespace: str, *, is_clean: bool) -> None:
        self.namespace = namespace
        self.is_clean = is_clean  # the broker that writes is stopped, not killed

    @property
    def local_name(self) -> str:
        return type(self).__name__

    @property
    def topic(self) -> str:
        return f"persistent://{self.namespace}/{self.local_name}"

    def path(self, rest: str) -> str:
        """Of the topic in administration."""
        return f"persistent/{self.namespace}/{self.local_name}/{rest}"

    @abstractmethod
    def write(self, broker: RunningBroker) -> None:
        """Leave something, and note it."""

    @abstractmethod
    def check(self, broker: RunningBroker) -> None:
        """Find it."""


@dataclass
class Subscribed:
    """What a broker knows of a subscription."""

    backlog: int
    mark_delete: str
    individually_deleted: str


@dataclass
class Known:
    """What a broker knows of a topic."""

    entries: int
    size: int
    ledgers: dict[int, tuple[int, int]]
    subscriptions: dict[str, Subscribed] = field(default_factory=dict)


def known(broker: RunningBroker, scenario: Scenario, suffix: str = "") -> Known:
    """What administration says of a topic; ledgers that hold something, with entries and bytes."""
    base = f"persistent/{scenario.namespace}/{scenario.local_name}{suffix}"
    stats = broker.ask("GET", f"{base}/stats")
    internal = broker.ask("GET", f"{base}/internalStats")
    ledgers = {each["ledgerId"]: (each["entries"], each["size"]) for each in internal["ledgers"]}
    last = internal["ledgers"][-1]["ledgerId"]
    if ledgers[last][0] == 0:  # it is open
        ledgers[last] = (internal["currentLedgerEntries"], internal["currentLedgerSize"])
    return Known(
        entries=internal["numberOfEntries"],
        size=internal["totalSize"],
        ledgers={ledger: held for ledger, held in ledgers.items() if held[0] > 0},
        subscriptions={
            name: Subscribed(
                backlog=stats["subscriptions"][name]["msgBacklog"],
                mark_delete=cursor["markDeletePosition"],
                individually_deleted=cursor["individuallyDeletedMessages"],
            )
            for name, cursor in internal["cursors"].items()
            if not name.startswith("pulsar.")
        },
    )


def rest_of(consumer: pulsar.Consumer, count: int) -> list[pulsar.Message]:
    """So many messages, and no more."""
    found = [consumer.receive(RECEIVE_MILLIS) for _ in range(count)]
    more = []
    with contextlib.suppress(pulsar.Timeout):
        while True:
            more.append(consumer.receive(QUIET_MILLIS))
    assert not more, f"{[each.data()[:20] for each in (*found, *more)]}: expected only {count}"
    return found


def numbers(messages: list[pulsar.Message]) -> list[int]:
    return [int(message.data()) for message in messages]


class Holes(Scenario):
    """Messages acknowledged one by one, here and there, over several ledgers."""

    COUNT = 4 * ENTRIES_PER_LEDGER + 7

    @staticmethod
    def is_acknowledged(number: int) -> bool:
        return number < 5 or number % 3 == 0

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            for name in ("holes", "untouched", "cumulative"):
                client.subscribe(self.topic, name, pulsar.ConsumerType.Shared).close()
            producer = client.create_producer(self.topic)
            for number in range(self.COUNT):
                producer.send(b"%d" % number)
            consumer = client.subscribe(self.topic, "holes", pulsar.ConsumerType.Shared)
            for _ in range(self.COUNT):
                message = consumer.receive(RECEIVE_MILLIS)
                if self.is_acknowledged(int(message.data())):
                    consumer.acknowledge(message)
            ordered = client.subscribe(self.topic, "cumulative")
            for _ in range(ENTRIES_PER_LEDGER + 3):
                message = ordered.receive(RECEIVE_MILLIS)
            ordered.acknowledge_cumulative(message)
        self.known = known(broker, self)

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.create_producer(self.topic).close()
            found = known(broker, self)
            assert found == self.known, (found, self.known)
            consumer = client.subscribe(self.topic, "holes", pulsar.ConsumerType.Shared)
            left = [n for n in range(self.COUNT) if not self.is_acknowledged(n)]
            assert numbers(rest_of(consumer, len(left))) == left
            untouched = client.subscribe(self.topic, "untouched")
            assert numbers(rest_of(untouched, self.COUNT)) == list(range(self.COUNT))
            ordered = client.subscribe(self.topic, "cumulative")
            after = list(range(ENTRIES_PER_LEDGER + 3, self.COUNT))
            assert numbers(rest_of(ordered, len(after))) == after


class BatchIndexes(Scenario):
    """Messages acknowledged inside batches."""

    BATCHES, IN_BATCH = 6, 10

    def batches(self, producer: pulsar.Producer) -> None:
        for batch in range(self.BATCHES):
            for index in range(self.IN_BATCH):
                producer.send_async(b"%d" % (batch * self.IN_BATCH + index), lambda *_: None)
            producer.flush()

    def subscribe(self, client: pulsar.Client) -> pulsar.Consumer:
        return client.subscribe(
            self.topic, "sub", pulsar.ConsumerType.Shared, batch_index_ack_enabled=True
        )

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            consumer = self.subscribe(client)
            producer = client.create_producer(
                self.topic,
                batching_enabled=True,
                batching_max_messages=self.IN_BATCH,
                batching_max_publish_delay_ms=5_000,
            )
            self.batches(producer)
            for _ in range(self.BATCHES * self.IN_BATCH):
                message = consumer.receive(RECEIVE_MILLIS)
                if self.is_acknowledged(int(message.data())):
                    consumer.acknowledge(message)

    def is_acknowledged(self, number: int) -> bool:
        batch, index = divmod(number, self.IN_BATCH)
        return batch == 1 or (batch != 4 and index % 2 == batch % 2)

    def check(self, broker: RunningBroker) -> None:
        count = self.BATCHES * self.IN_BATCH
        left = [n for n in range(count) if not self.is_acknowledged(n)]
        if self.is_clean and not broker.reads_batch_indexes_of_closed_cursors:
            # A batch comes as a whole.
            left = [n for n in range(count) if n // self.IN_BATCH != 1]
        with connected(broker) as client:
            assert numbers(rest_of(self.subscribe(client), len(left))) == left


class Partitions(Scenario):
    """A partitioned topic, each partition with its own messages."""

    COUNT = 3

    def write(self, broker: RunningBroker) -> None:
        broker.ask("PUT", self.path("partitions"), self.COUNT)
        with connected(broker) as client:
            client.subscribe(self.topic, "sub").close()
            for index in range(self.COUNT):
                producer = client.create_producer(f"{self.topic}-partition-{index}")
                for number in range(10):
                    producer.send(b"%d" % (10 * index + number))

    def check(self, broker: RunningBroker) -> None:
        assert broker.ask("GET", self.path("partitions"))["partitions"] == self.COUNT
        with connected(broker) as client:
            assert len(client.get_topic_partitions(self.topic)) == self.COUNT
            consumer = client.subscribe(self.topic, "sub")
            found = numbers(rest_of(consumer, 10 * self.COUNT))
        for index in range(self.COUNT):
            of_one = list(range(10 * index, 10 * index + 10))
            assert [number for number in found if number in of_one] == of_one


class Person(Record):
    name = String()


class PersonWithAge(Record):
    name = String()
    age = Integer(default=7, required=True, required_default=True)


PersonWithAge.__name__ = Person.__name__  # of one name in both versions, as Avro asks
PersonWithAge._avro_name = Person.__name__


class Schemas(Scenario):
    """Two versions of a schema in Avro."""

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.subscribe(self.topic, "sub").close()
            client.create_producer(self.topic, schema=AvroSchema(Person)).send(Person(name="one"))
            second = client.create_producer(self.topic, schema=AvroSchema(PersonWithAge))
            second.send(PersonWithAge(name="two", age=30))
            client.subscribe(f"{self.topic}-text", "sub", schema=pulsar.schema.StringSchema())

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            with contextlib.suppress(pulsar.IncompatibleSchema):
                client.create_producer(self.topic, schema=pulsar.schema.StringSchema())
                raise AssertionError("a producer of another schema was let in")
            # Versions known before the takeover are found again, not stored once more.
            first = client.create_producer(self.topic, schema=AvroSchema(Person))
            first.send(Person(name="three"))
            second = client.create_producer(self.topic, schema=AvroSchema(PersonWithAge))
            second.send(PersonWithAge(name="four", age=40))
            consumer = client.subscribe(self.topic, "sub", schema=AvroSchema(PersonWithAge))
            found = rest_of(consumer, 4)
            assert [(m.value().name, m.value().age) for m in found] == [
                ("one", 7), ("two", 30), ("three", 7), ("four", 40),
            ]  # fmt: skip
            versions = [m._message.int_schema_version() for m in found]  # nowhere else
            assert versions == [0, 1, 0, 1]
            client.subscribe(f"{self.topic}-text", "sub", schema=pulsar.schema.StringSchema())


class Deduplication(Scenario):
    """What a producer has sent is refused after the takeover, too."""

    COUNT = 37

    def producer(self, client: pulsar.Client) -> pulsar.Producer:
        return client.create_producer(self.topic, producer_name="the producer")

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.subscribe(self.topic, "sub").close()
            producer = self.producer(client)
            for number in range(self.COUNT):
                producer.send(b"%d" % number, sequence_id=number)

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            producer = self.producer(client)
            assert producer.last_sequence_id() == self.COUNT - 1
            for number in range(self.COUNT - 10, self.COUNT + 3):
                producer.send(b"%d" % number, sequence_id=number)
            consumer = client.subscribe(self.topic, "sub")
            count = self.COUNT + 3
            assert numbers(rest_of(consumer, count)) == list(range(count))


class Delayed(Scenario):
    """Messages that are due later: some during the takeover, some long after."""

    SOON, LATE, AT_ONCE = 10, 5, 3

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            consumer = client.subscribe(self.topic, "sub", pulsar.ConsumerType.Shared)
            producer = client.create_producer(self.topic)
            soon = int((time.time() + 45) * 1000)
            for number in range(self.SOON):
                producer.send(b"%d" % number, deliver_at=soon)
            for number in range(self.LATE):
                producer.send(b"late %d" % number, deliver_at=soon + 3_600_000)
            for number in range(self.AT_ONCE):
                producer.send(b"%d" % (100 + number))
            for _ in range(self.AT_ONCE):
                consumer.acknowledge(consumer.receive(RECEIVE_MILLIS))
            self.due = soon / 1000

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            consumer = client.subscribe(self.topic, "sub", pulsar.ConsumerType.Shared)
            time.sleep(max(0.0, self.due - time.time()))
            found = rest_of(consumer, self.SOON)
            assert numbers(found) == list(range(self.SOON))
            stats = broker.ask("GET", self.path("stats"))["subscriptions"]["sub"]
            assert stats["msgBacklog"] == self.SOON + self.LATE
            assert stats["msgDelayed"] == self.LATE


class OddNames(Scenario):
    """Names of topics and subscriptions that paths can't hold as they are."""

    SUBSCRIPTION = "a sub/with: %25 ünï"

    @property
    def local_name(self) -> str:
        return "with space, ünï-ко+%20~'(x)*"

    @property
    def topic(self) -> str:
        return f"persistent://{self.namespace}/{self.local_name}"

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            consumer = client.subscribe(self.topic, self.SUBSCRIPTION, pulsar.ConsumerType.Shared)
            producer = client.create_producer(self.topic, schema=pulsar.schema.StringSchema())
            producer.send("one")
            producer.send("two")
            producer.send("three")
            for _ in range(3):
                message = consumer.receive(RECEIVE_MILLIS)
                if message.data() == b"two":
                    consumer.acknowledge(message)

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            with contextlib.suppress(pulsar.IncompatibleSchema):
                client.create_producer(self.topic, schema=AvroSchema(Person))
                raise AssertionError("a producer of another schema was let in")
            consumer = client.subscribe(self.topic, self.SUBSCRIPTION, pulsar.ConsumerType.Shared)
            assert [m.data() for m in rest_of(consumer, 2)] == [b"one", b"three"]


class Contents(Scenario):
    """Messages with everything that they can have."""

    KINDS = (
        pulsar.CompressionType.NONE,
        pulsar.CompressionType.LZ4,
        pulsar.CompressionType.ZLib,
        pulsar.CompressionType.ZSTD,
        pulsar.CompressionType.SNAPPY,
    )

    @staticmethod
    def fields(message: pulsar.Message) -> tuple[object, ...]:
        return (
            message.data(), message.properties(), message.partition_key(), message.ordering_key(),
            message.event_timestamp(), message.producer_name(),
        )  # fmt: skip

    def write(self, broker: RunningBroker) -> None:
        self.expected: list[tuple[object, ...]] = []
        with connected(broker) as client:
            client.subscribe(self.topic, "sub").close()
            for number, kind in enumerate(self.KINDS):
                producer = client.create_producer(
                    self.topic, producer_name=f"p{number}", compression_type=kind
                )
                data = b"content %d " % number * 100
                properties = {"number": str(number), "": "empty", "ü": "ö"}
                producer.send(data, properties, "key", "order", event_timestamp=1000 + number)
                self.expected.append(
                    (data, properties, "key", "order", 1000 + number, f"p{number}")
                )
            chunks = client.create_producer(
                self.topic, producer_name="chunks", chunking_enabled=True
            )
            large = bytes(range(256)) * 4 * 12_000
            chunks.send(large)
            self.expected.append((large, {}, "", "", 0, "chunks"))

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            consumer = client.subscribe(self.topic, "sub")
            found = rest_of(consumer, len(self.expected))
            assert [self.fields(message) for message in found] == self.expected


class Idle(Scenario):
    """Topics without messages, and subscriptions that have taken all of them or were moved."""

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.subscribe(f"{self.topic}-empty", "sub").close()
            consumer = client.subscribe(self.topic, "drained")
            moved = client.subscribe(self.topic, "moved back")
            producer = client.create_producer(self.topic)
            sent = [producer.send(b"%d" % number) for number in range(10)]
            for _ in range(10):
                consumer.acknowledge(consumer.receive(RECEIVE_MILLIS))
                moved.acknowledge(moved.receive(RECEIVE_MILLIS))
            moved.seek(sent[6])

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            empty = client.subscribe(f"{self.topic}-empty", "sub")
            drained = client.subscribe(self.topic, "drained")
            moved = client.subscribe(self.topic, "moved back")
            assert rest_of(drained, 0) == []
            assert numbers(rest_of(moved, 4)) == [6, 7, 8, 9]
            client.create_producer(self.topic).send(b"10")
            client.create_producer(f"{self.topic}-empty").send(b"0")
            assert numbers(rest_of(drained, 1)) == [10]
            assert numbers(rest_of(empty, 1)) == [0]


class Terminated(Scenario):
    """A topic that takes no more messages."""

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.subscribe(self.topic, "sub").close()
            producer = client.create_producer(self.topic)
            for number in range(3):
                producer.send(b"%d" % number)
            producer.close()
        broker.ask("POST", self.path("terminate"))

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            with contextlib.suppress(pulsar.PulsarException):
                client.create_producer(self.topic)
                raise AssertionError("a terminated topic let a producer in")
            consumer = client.subscribe(self.topic, "sub")
            assert numbers(rest_of(consumer, 3)) == [0, 1, 2]


class NamespacePolicies(Scenario):
    """Policies of a namespace, set by one broker's administration, read from the other's."""

    POLICIES: Final[dict[str, tuple[str, object]]] = {
        "deduplication": ("POST", True),
        "autoTopicCreation": (
            "POST",
            {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2},
        ),
        "autoSubscriptionCreation": ("POST", {"allowAutoSubscriptionCreation": True}),
        "delayedDelivery": (
            "POST",
            {"active": True, "tickTime": 2000, "maxDeliveryDelayInMillis": 0},
        ),
        "schemaValidationEnforced": ("POST", True),
        "schemaCompatibilityStrategy": ("PUT", "FORWARD_TRANSITIVE"),
        "maxProducersPerTopic": ("POST", 11),
        "maxConsumersPerTopic": ("POST", 12),
        "maxConsumersPerSubscription": ("POST", 13),
        "maxSubscriptionsPerTopic": ("POST", 14),
        "maxUnackedMessagesPerConsumer": ("POST", 15),
        "maxUnackedMessagesPerSubscription": ("POST", 16),
        "messageTTL": ("POST", 3600),
        "subscriptionTypesEnabled": ("POST", ["Shared", "Exclusive"]),
        "isAllowAutoUpdateSchema": ("POST", True),
    }

    @property
    def other(self) -> str:
        return f"namespaces/{self.namespace}-policies"

    def answers(self, broker: RunningBroker) -> dict[str, object]:
        words = (*self.POLICIES, "backlogQuotaMap", "replication")
        found = {word: broker.ask("GET", f"{self.other}/{word}") for word in words}
        found["subscriptionTypesEnabled"].sort()
        return found

    def write(self, broker: RunningBroker) -> None:
        broker.ask("PUT", self.other, {"bundles": {"numBundles": 2}})
        for word, (method, value) in self.POLICIES.items():
            broker.ask(method, f"{self.other}/{word}", value)
        quota = {"limitSize": 1 << 20, "limitTime": 60, "policy": "consumer_backlog_eviction"}
        broker.ask("POST", f"{self.other}/backlogQuota", quota)
        self.expected = self.answers(broker)

    def check(self, broker: RunningBroker) -> None:
        assert self.answers(broker) == self.expected
        assert broker.ask("GET", f"{self.other}/bundles")["numBundles"] == 2


class PoliciesOfTopic(Scenario):
    """Policies of a topic, of this cluster and of all: messages of `__change_events`."""

    POLICIES: Final[dict[str, object]] = {
        "maxConsumers": 2,
        "maxProducers": 3,
        "maxMessageSize": 4096,
        "maxUnackedMessagesOnConsumer": 17,
        "maxSubscriptionsPerTopic": 9,
        "retention": {"retentionTimeInMinutes": 60, "retentionSizeInMB": 100},
        "persistence": {
            "bookkeeperEnsemble": 2,
            "bookkeeperWriteQuorum": 2,
            "bookkeeperAckQuorum": 1,
            "managedLedgerMaxMarkDeleteRate": 5.0,
        },
        "delayedDelivery": {"active": True, "tickTime": 2000, "maxDeliveryDelayInMillis": 0},
        "compactionThreshold": 12_345_678,
        "publishRate": {"publishThrottlingRateInMsg": 500, "publishThrottlingRateInByte": -1},
        "subscribeRate": {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 30},
        "deduplicationSnapshotInterval": 77,
        "deduplicationEnabled": True,
    }
    OF_ALL_CLUSTERS: Final[dict[str, object]] = {
        "maxConsumers": 8,
        "retention": {"retentionTimeInMinutes": 70, "retentionSizeInMB": 200},
        "maxSubscriptionsPerTopic": 5,
    }
    IN_FORCE_SECONDS: Final = 20.0

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.subscribe(self.topic, "sub").close()
        for word, value in self.POLICIES.items():
            broker.ask("POST", self.path(word), value)
        for word, value in self.OF_ALL_CLUSTERS.items():
            broker.ask("POST", self.path(f"{word}?isGlobal=true"), value)
        self._await(broker)

    def _await(self, broker: RunningBroker) -> None:
        """Changes are in force a moment later."""
        deadline = time.monotonic() + self.IN_FORCE_SECONDS
        while (found := self.answers(broker)) != self.expected():
            assert time.monotonic() < deadline, found
            time.sleep(0.2)

    def expected(self) -> tuple[dict[str, object], dict[str, object]]:
        return dict(self.POLICIES), dict(self.OF_ALL_CLUSTERS)

    def answers(self, broker: RunningBroker) -> tuple[dict[str, object], dict[str, object]]:
        return (
            {word: broker.ask("GET", self.path(word)) for word in self.POLICIES},
            {
                word: broker.ask("GET", self.path(f"{word}?isGlobal=true"))
                for word in self.OF_ALL_CLUSTERS
            },
        )

    def check(self, broker: RunningBroker) -> None:
        shared = pulsar.ConsumerType.Shared
        with connected(broker) as client:
            consumers = [client.subscribe(self.topic, "sub", shared) for _ in range(2)]
            self._await(broker)
            with contextlib.suppress(pulsar.ConsumerBusy):
                client.subscribe(self.topic, "sub", shared)
                raise AssertionError("a third consumer came in")
            assert len(consumers) == 2
            assert broker.ask("GET", self.path("maxMessageSize?applied=true")) == 4096


SCENARIOS: Final = (
    Delayed,  # first: it waits for a time
    Holes,
    BatchIndexes,
    Partitions,
    Schemas,
    Deduplication,
    OddNames,
    Contents,
    Idle,
    Terminated,
    NamespacePolicies,
    PoliciesOfTopic,
)
