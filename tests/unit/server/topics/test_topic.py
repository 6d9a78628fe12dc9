from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    ConsumerBusyError,
    NamingError,
    NotAllowedError,
    ProducerBlockedQuotaExceededError,
    ServiceMetadataError,
    ServiceNotReadyError,
    SubscriptionNotFoundError,
    TopicFencedError,
)
from pulsar_py.common.policies import BacklogQuota, BacklogQuotaAction, BacklogQuotaType
from pulsar_py.common.position import EARLIEST
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.topics.topic import Topic
from tests.unit.server.topics.rig import Rig, send, subscribe_request

SHARED = SubscriptionType.SHARED


async def with_policies(rig: Rig, topic: Topic, **policies: object) -> None:
    await rig.broker.resources.namespaces.update(
        topic.name.namespace_name, lambda old: old.replace(**policies)
    )
    await rig.clock.sleep(0.01)


async def test_encryption_can_be_required(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await with_policies(rig, topic, is_encryption_required=True)
    with pytest.raises(ServiceMetadataError):
        await topic.check_producer_allowed(rig.request(cnx))
    await topic.check_producer_allowed(rig.request(cnx, is_encrypted=True))


async def test_a_backlog_quota_refuses_producers(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await topic.create_subscription("sub", starts_at_earliest=True)
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    await producer.close()
    quota = BacklogQuota(10, -1, BacklogQuotaAction.PRODUCER_REQUEST_HOLD)
    await with_policies(rig, topic, backlog_quotas={BacklogQuotaType.DESTINATION_STORAGE: quota})
    with pytest.raises(ProducerBlockedQuotaExceededError):
        await topic.check_producer_allowed(rig.request(cnx))
    await topic.delete_subscription("sub")
    await topic.check_producer_allowed(rig.request(cnx))


async def test_an_initial_subscription_is_made_with_the_producer(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.producer(topic, cnx, initial_subscription_name="first")
    assert list(topic.subscriptions) == ["first"]


async def test_subscriptions_may_not_be_created_where_that_is_off(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await with_policies(rig, topic, is_auto_subscription_creation_allowed=False)
    with pytest.raises(SubscriptionNotFoundError):
        await topic.subscribe(subscribe_request(cnx))
    with pytest.raises(NotAllowedError):
        await rig.producer(topic, cnx, initial_subscription_name="first")
    await topic.subscribe(subscribe_request(cnx, is_durable=False))
    await topic.create_subscription("made", starts_at_earliest=False)
    await topic.subscribe(subscribe_request(cnx, "made", consumer_id=2))


@pytest.mark.parametrize("name", ["", "pulsar.dedup", "pulsar.repl.r1"])
async def test_where_none_is_created_a_name_that_may_not_be_is_not_found_either(
    rig: Rig, name: str
) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    with pytest.raises(NamingError):
        await topic.subscribe(subscribe_request(cnx, name))
    await with_policies(rig, topic, is_auto_subscription_creation_allowed=False)
    with pytest.raises(SubscriptionNotFoundError):
        await topic.subscribe(subscribe_request(cnx, name))
    with pytest.raises(NamingError):
        await topic.subscribe(subscribe_request(cnx, name, is_durable=False))


async def test_subscription_types_can_be_disabled(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await with_policies(rig, topic, subscription_types=frozenset({"Exclusive"}))
    with pytest.raises(NotAllowedError, match="doesn't support Shared sub type"):
        await topic.subscribe(subscribe_request(cnx, kind=SHARED))
    assert list(topic.subscriptions) == []


async def test_subscriptions_are_limited(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await with_policies(rig, topic, max_subscriptions_per_topic=1)
    await topic.subscribe(subscribe_request(cnx, "a"))
    with pytest.raises(NotAllowedError):
        await topic.subscribe(subscribe_request(cnx, "b", consumer_id=2))


async def test_consumers_are_limited(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await with_policies(rig, topic, max_consumers_per_topic=1)
    await topic.subscribe(subscribe_request(cnx, "a", SHARED))
    with pytest.raises(ConsumerBusyError):
        await topic.subscribe(subscribe_request(cnx, "b", SHARED, consumer_id=2))


async def test_reading_compacted_needs_one_active_consumer(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    with pytest.raises(NotAllowedError, match="failover or exclusive"):
        await topic.subscribe(subscribe_request(cnx, kind=SHARED, read_compacted=True))


async def test_a_closing_topic_takes_nobody(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await topic.close()
    with pytest.raises(TopicFencedError):
        await rig.producer(topic, cnx)
    with pytest.raises(TopicFencedError):
        await topic.subscribe(subscribe_request(cnx))


async def test_consumers_of_an_address_are_counted(rig: Rig) -> None:
    topic = await rig.persistent()
    await topic.subscribe(subscribe_request(rig.cnx("/10.0.0.1:1"), "a"))
    await topic.subscribe(subscribe_request(rig.cnx("/10.0.0.1:2"), "b"))
    await topic.subscribe(subscribe_request(rig.cnx("/10.0.0.2:1"), "c"))
    assert topic.same_address_consumers_count("10.0.0.1") == 2
    assert topic.consumers_count == 3


async def test_a_consumer_that_is_refused_does_not_end_the_subscription_of_a_reader_that_seeks(
    rig: Rig,
) -> None:
    topic = await rig.persistent()
    reader = await topic.subscribe(subscribe_request(rig.cnx(), is_durable=False))
    await reader.subscription.reset_to_position(EARLIEST, None)
    unwanted = subscribe_request(rig.cnx(), is_durable=False, is_wanted=lambda: False)
    with pytest.raises(ServiceNotReadyError):
        await topic.subscribe(unwanted)
    again = await topic.subscribe(subscribe_request(rig.cnx(), is_durable=False))
    assert again.subscription is reader.subscription


async def test_a_reader_that_is_refused_leaves_no_new_subscription(rig: Rig) -> None:
    topic = await rig.persistent()
    unwanted = subscribe_request(rig.cnx(), is_durable=False, is_wanted=lambda: False)
    with pytest.raises(ServiceNotReadyError):
        await topic.subscribe(unwanted)
    assert topic.subscriptions == {}
