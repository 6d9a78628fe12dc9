"""Calls against a real broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from pulsar_py.admin_client import AdminClient, AdminError, subscriptions, topics
from pulsar_py.admin_client.policies import TOPIC as TOPIC_POLICIES
from pulsar_py.admin_client.policies import topic_place
from pulsar_py.admin_client.records import RetentionPolicies
from pulsar_py.client import Client
from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.testing.broker_thread import BrokerThread

TOPIC = "persistent://public/default/calls"


@pytest.fixture
def admin(pulsar_broker: BrokerThread) -> Iterator[AdminClient]:
    with AdminClient(pulsar_broker.web_service_url) as client:
        yield client


async def publish(service_url: str, topic: str, count: int) -> None:
    async with Client(service_url) as client:
        consumer = await client.subscribe(topic, "reports")
        async with await client.create_producer(topic) as producer:
            for index in range(count):
                await producer.send(b"%d" % index)
        await consumer.close()


def test_the_places_of_topics(admin: AdminClient) -> None:
    assert "public" in admin.tenants()
    assert "public/default" in admin.namespaces("public")
    admin.create_partitioned_topic(TOPIC, 2)
    parts = [f"{TOPIC}-partition-{index}" for index in range(2)]
    assert admin.partitions_of(TOPIC) == parts
    assert admin.topics("public/default") == parts
    with pytest.raises(AdminError, match="409"):
        admin.create_partitioned_topic(TOPIC, 2)


async def test_statistics(pulsar_broker: BrokerThread, admin: AdminClient) -> None:
    await publish(pulsar_broker.service_url, TOPIC, 5)
    stats = admin.stats(TOPIC)
    assert stats.messages_in_count == 5
    assert stats.subscriptions["reports"].backlog_entries == 5
    assert stats.subscriptions["reports"].backlog_bytes > 0
    internal = admin.internal_stats(TOPIC)
    assert internal.entries_count == 5
    assert "reports" in internal.mark_delete_positions
    assert admin.partitions_of("calls") == [TOPIC]


def test_a_topic_that_is_not_there(admin: AdminClient) -> None:
    with pytest.raises(TopicNotFoundError, match="no-such"):
        admin.stats("no-such")


def test_any_declared_call(admin: AdminClient) -> None:
    admin.call(topics.create_topic(TOPIC, {"owner": "me"}))
    assert admin.call(topics.properties(TOPIC)) == {"owner": "me"}
    admin.call(subscriptions.create_subscription(TOPIC, "a/b"))
    assert admin.call(subscriptions.subscriptions(TOPIC)) == ["a/b"]
    admin.call(subscriptions.pause(TOPIC, "a/b"))
    assert "paused" in str(admin.call(subscriptions.standstill(TOPIC, "a/b"))).lower()
    admin.call(subscriptions.resume(TOPIC, "a/b"))
    assert admin.call(subscriptions.readable_backlog(TOPIC, "a/b", limit=5))["messages"] == []
    assert admin.call(subscriptions.readable_messages(TOPIC, text="x"))["scannedEntries"] == 0
    place = topic_place(TOPIC)
    assert admin.call(TOPIC_POLICIES.retention.get(place)) is None
    value = RetentionPolicies(retention_time_in_minutes=5, retention_size_in_mb=6)
    admin.call(TOPIC_POLICIES.retention.set(place, value))
    assert admin.call(TOPIC_POLICIES.retention.get(place)) == value
    admin.call(TOPIC_POLICIES.retention.remove(place))
    assert admin.call(TOPIC_POLICIES.retention.get(place, applied=True)) != value


def test_a_blocking_call_needs_no_asyncio() -> None:
    code = (
        "import sys; from pulsar_py.admin_client import AdminClient\n"
        "AdminClient('http://localhost:1').close(); print('asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
