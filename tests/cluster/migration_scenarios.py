"""What a standalone broker may have besides what takeovers look at: more scenarios of a migration."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any, Final

import jwt
import pulsar

from tests.cluster.mixed_cluster import until
from tests.cluster.takeover_scenarios import (
    RECEIVE_MILLIS,
    RunningBroker,
    Scenario,
    connected,
    numbers,
    rest_of,
)

SECRET: Final = b"a secret of brokers and clients, thirty-two bytes and more"
AUTHORIZED: Final = {
    "authenticationEnabled": "true",
    "authenticationProviders": "token",
    "tokenSecretKey": "",  # a file with SECRET, which a test writes
    "authorizationEnabled": "true",
    "superUserRoles": "admin",
    "brokerClientAuthenticationPlugin": "token",
    "brokerClientAuthenticationParameters": "token:"
    + jwt.encode({"sub": "admin"}, SECRET, "HS256"),
}
"""Settings with which rights count."""


class Compacted(Scenario):
    """A compacted topic: its own ledger, named by the property of a cursor, and what came later."""

    KEYS, COUNT = 7, 50

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            producer = client.create_producer(self.topic, batching_enabled=False)
            for number in range(self.COUNT):
                producer.send(b"%d" % number, partition_key=f"k{number % self.KEYS}")
            broker.ask("PUT", self.path("compaction"))
            assert until(lambda: broker.ask("GET", self.path("compaction"))["status"], "SUCCESS"), (
                "it is not compacted"
            )
            producer.send(b"%d" % self.COUNT, partition_key="late")
        self.entries = self.compacted_entries(broker)
        assert self.entries == self.KEYS

    def compacted_entries(self, broker: RunningBroker) -> int:
        return int(broker.ask("GET", self.path("internalStats"))["compactedLedger"]["entries"])

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            reader = client.create_reader(
                self.topic, pulsar.MessageId.earliest, is_read_compacted=True
            )
            found = [reader.read_next(RECEIVE_MILLIS) for _ in range(self.KEYS + 1)]
            assert numbers(found) == [*range(self.COUNT - self.KEYS, self.COUNT + 1)]
            assert not reader.has_message_available()
        assert self.compacted_entries(broker) == self.entries


class DelayedIndexes(Scenario):
    """Messages due much later, in index ledgers of their subscription."""

    COUNT = 60
    """More than the index of one bucket."""

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.subscribe(self.topic, "sub", pulsar.ConsumerType.Shared)
            producer = client.create_producer(self.topic, batching_enabled=False)
            due = int((time.time() + 36_000) * 1000)
            for number in range(self.COUNT):
                producer.send(b"%d" % number, deliver_at=due + 60_000 * number)
            assert until(lambda: self.delayed(broker), self.COUNT), "they are not delayed"

    def delayed(self, broker: RunningBroker) -> int:
        stats = broker.ask("GET", self.path("stats"))["subscriptions"]["sub"]
        return int(stats["msgDelayed"])

    def check(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            consumer = client.subscribe(self.topic, "sub", pulsar.ConsumerType.Shared)
            assert rest_of(consumer, 0) == []
            assert until(lambda: self.delayed(broker), self.COUNT), "they are not delayed"


class Properties(Scenario):
    """Properties of a topic, of a partitioned one, and of a subscription."""

    OF_TOPIC: Final = {"owner": "somebody", "\u00fc": "\u00f6"}
    OF_PARTITIONED: Final = {"team": "orders"}
    OF_SUBSCRIPTION: Final = {"why": "because"}

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.subscribe(self.topic, "sub").close()
        parts = f"persistent/{self.namespace}/{self.local_name}-parts"
        broker.ask("PUT", f"{parts}/partitions", 2)
        broker.ask("PUT", self.path("properties"), self.OF_TOPIC)
        broker.ask("PUT", f"{parts}/properties", self.OF_PARTITIONED)
        broker.ask("PUT", self.path("subscription/sub/properties"), self.OF_SUBSCRIPTION)

    def check(self, broker: RunningBroker) -> None:
        parts = f"persistent/{self.namespace}/{self.local_name}-parts"
        assert broker.ask("GET", f"{parts}/properties") == self.OF_PARTITIONED
        with connected(broker) as client:
            client.subscribe(self.topic, "sub")
            assert self.OF_TOPIC.items() <= broker.ask("GET", self.path("properties")).items()
            stats = broker.ask("GET", self.path("stats"))["subscriptions"]["sub"]
            assert stats["subscriptionProperties"] == self.OF_SUBSCRIPTION


class TopicPolicies(Scenario):
    """Policies of a topic, which are messages of `__change_events`."""

    POLICIES: Final[dict[str, object]] = {
        "maxConsumers": 2,
        "messageTTL": 7_200,
        "retention": {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1},
    }

    def write(self, broker: RunningBroker) -> None:
        with connected(broker) as client:
            client.subscribe(self.topic, "sub").close()
        for word, value in self.POLICIES.items():
            ttl = word == "messageTTL"
            path = self.path(f"{word}?messageTTL={value}" if ttl else word)
            broker.ask("POST", path, None if ttl else value)
        assert until(lambda: self.answers(broker), self.POLICIES), "they are not in force"

    def answers(self, broker: RunningBroker) -> dict[str, object]:
        return {word: broker.ask("GET", self.path(word)) for word in self.POLICIES}

    def check(self, broker: RunningBroker) -> None:
        assert self.answers(broker) == self.POLICIES
        shared = pulsar.ConsumerType.Shared
        with connected(broker) as client:
            consumers = [client.subscribe(self.topic, "sub", shared) for _ in range(2)]
            refused = False
            try:
                client.subscribe(self.topic, "sub", shared)
            except pulsar.ConsumerBusy:
                refused = True
            assert refused, "it lets a third consumer in"
            assert len(consumers) == 2


class Rights(Scenario):
    """A tenant with its admin, and what single roles may do in a namespace, a topic, by name."""

    TENANT: Final = {"adminRoles": ["boss"], "allowedClusters": ["standalone"]}

    @property
    def tenant(self) -> str:
        return f"rights-{self.namespace.rpartition('/')[2]}"

    @property
    def own(self) -> str:
        return f"{self.tenant}/ns"

    def write(self, broker: RunningBroker) -> None:
        broker.ask("PUT", f"tenants/{self.tenant}", self.TENANT)
        broker.ask("PUT", f"namespaces/{self.own}", {"bundles": {"numBundles": 2}})
        topic = f"persistent/{self.own}/topic"
        broker.ask("PUT", topic)
        for role, actions in (("reader", ["consume"]), ("second", ["consume"])):
            broker.ask("POST", f"namespaces/{self.own}/permissions/{role}", actions)
        broker.ask("POST", f"namespaces/{self.own}/permissions/subscription/sub", ["reader"])
        broker.ask("POST", f"{topic}/permissions/writer", ["produce"])
        self.expected = self.answers(broker)
        assert self.expected["topic"]["writer"] == ["produce"]

    def answers(self, broker: RunningBroker) -> dict[str, Any]:
        return {
            "tenant": broker.ask("GET", f"tenants/{self.tenant}"),
            "namespace": broker.ask("GET", f"namespaces/{self.own}/permissions"),
            "subscription": broker.ask("GET", f"namespaces/{self.own}/permissions/subscription"),
            "topic": broker.ask("GET", f"persistent/{self.own}/topic/permissions"),
        }

    def check(self, broker: RunningBroker) -> None:
        assert self.answers(broker) == self.expected

    def check_tokens(self, broker: RunningBroker, web_service_url: str) -> None:
        """At a broker that asks who is there: each role may do what it was given, and no more."""
        topic = f"persistent://{self.own}/topic"
        assert may(broker, "writer", lambda client: client.create_producer(topic).send(b"1"))
        assert not may(broker, "writer", lambda client: client.subscribe(topic, "other"))
        assert may(broker, "reader", lambda client: client.subscribe(topic, "sub"))
        assert not may(broker, "reader", lambda client: client.create_producer(topic))
        assert not may(broker, "second", lambda client: client.subscribe(topic, "sub"))
        assert may(broker, "second", lambda client: client.subscribe(topic, "other"))
        assert not may(broker, "stranger", lambda client: client.subscribe(topic, "other"))
        path = f"{web_service_url}/admin/v2/namespaces/{self.tenant}"
        assert _status(path, "boss") == 200
        assert _status(path, "writer") in {401, 403}


def may(broker: RunningBroker, role: str, do: Any) -> bool:  # Any: the official client has no types
    """Whether a client of this role is let do something."""
    client = pulsar.Client(
        broker.service_url,
        authentication=pulsar.AuthenticationToken(jwt.encode({"sub": role}, SECRET, "HS256")),
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    try:
        do(client)
    except pulsar.AuthorizationError:
        return False
    finally:
        client.close()
    return True


def _status(url: str, role: str) -> int:
    token = jwt.encode({"sub": role}, SECRET, "HS256")
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            json.load(answer)
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


MORE: Final = (Compacted, DelayedIndexes, Properties, TopicPolicies, Rights)
