from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import (
    NotAllowedError,
    ServiceNotReadyError,
    TopicFencedError,
    TopicNotFoundError,
)
from pulsar_py.common.names import NamespaceName
from pulsar_py.common.policies import AutoTopicCreation, TopicType
from pulsar_py.metadata.documents import NamespacePolicies, TopicPolicies
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.topics.registry import TopicListMode
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import NAMESPACE, Rig, name_of, send, subscribe_request


async def test_a_topic_is_served_only_after_a_lookup(rig: Rig) -> None:
    topics, name = rig.broker.topics, name_of("t")
    with pytest.raises(ServiceNotReadyError, match="not served by this instance"):
        await topics.get_or_load(name, create_if_missing=True)
    await rig.broker.namespaces.lookup(name)
    assert await topics.get_or_load(name, create_if_missing=True) is topics.loaded(name)


async def test_concurrent_requests_share_one_load(rig: Rig) -> None:
    name = name_of("t")
    await rig.broker.namespaces.lookup(name)
    load = rig.broker.topics.get_or_load
    loaded = await asyncio.gather(*(load(name, create_if_missing=True) for _ in range(8)))
    assert len({id(topic) for topic in loaded}) == 1


async def test_who_may_create_does_not_suffer_from_who_may_not(rig: Rig) -> None:
    name = name_of("t")
    await rig.broker.namespaces.lookup(name)
    load = rig.broker.topics.get_or_load
    refused, created = await asyncio.gather(
        load(name, create_if_missing=False),
        load(name, create_if_missing=True),
        return_exceptions=True,
    )
    assert isinstance(refused, TopicNotFoundError)
    assert created is rig.broker.topics.loaded(name)


async def test_missing_topics_are_created_only_where_that_is_allowed(rig: Rig) -> None:
    policy = AutoTopicCreation(False, TopicType.NON_PARTITIONED, 1)
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(auto_topic_creation=policy)
    )
    with pytest.raises(TopicNotFoundError):
        await rig.topic("t")
    await rig.broker.topics.create_topic(name_of("t"))
    assert str((await rig.topic("t")).name) == "persistent://public/default/t"


async def test_names_of_partitions(rig: Rig) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 2)
    with pytest.raises(NotAllowedError):
        await rig.topic("p")
    await rig.topic("p-partition-1")
    with pytest.raises(TopicNotFoundError):
        await rig.topic("p-partition-2")
    with pytest.raises(NotAllowedError):
        await rig.topic("nothing-partition-0")


async def test_deleting_forgets_policies_and_works_without_loading(rig: Rig) -> None:
    topics, name = rig.broker.topics, name_of("t")
    await rig.topic(name)
    await topics.unload(name)
    await rig.broker.resources.topic_policies.create(name, TopicPolicies(max_producers=1))
    await topics.delete(name)
    assert await rig.broker.resources.topic_policies.get(name) is None
    assert not await topics.exists(name)
    with pytest.raises(TopicNotFoundError):
        await topics.delete(name)


async def test_a_topic_being_deleted_is_not_loaded(rig: Rig) -> None:
    topics, name = rig.broker.topics, name_of("t")
    await rig.topic(name)
    await topics.unload(name)
    outcomes = await asyncio.gather(
        topics.delete(name),
        topics.delete(name),
        topics.get_or_load(name, create_if_missing=True),
        return_exceptions=True,
    )
    assert outcomes[0] is None
    assert [type(each) for each in outcomes[1:]] == [TopicFencedError, TopicFencedError]
    await rig.topic(name)


async def test_unloading_an_unknown_topic(rig: Rig) -> None:
    with pytest.raises(TopicNotFoundError):
        await rig.broker.topics.unload(name_of("t"))


async def test_who_asks_for_a_topic_being_unloaded_gets_it_anew(rig: Rig) -> None:
    topic = await rig.persistent()
    _, *loaded = await asyncio.gather(
        rig.broker.topics.unload(topic.name), *(rig.topic("t") for _ in range(3))
    )
    assert topic not in loaded
    assert set(loaded) == {rig.broker.topics.loaded(topic.name)}


async def test_who_waits_for_a_topic_of_a_bundle_being_unloaded_is_told_to_look_again(
    rig: Rig,
) -> None:
    topic = await rig.persistent()
    outcomes = await asyncio.gather(
        rig.broker.namespaces.close(),
        rig.broker.topics.get_or_load(topic.name, create_if_missing=True),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], ServiceNotReadyError)


async def test_topics_are_listed_by_kind(rig: Rig) -> None:
    await rig.topic("b")
    await rig.topic("a")
    await rig.topic(name_of("n", domain="non-persistent"))
    await rig.topic("__change_events")
    topics = rig.broker.topics
    persistent = [str(name_of("a")), str(name_of("b"))]
    volatile = [str(name_of("n", domain="non-persistent"))]
    assert await topics.list_topics(NAMESPACE, TopicListMode.PERSISTENT) == persistent
    assert await topics.list_topics(NAMESPACE, TopicListMode.NON_PERSISTENT) == volatile
    assert await topics.list_topics(NAMESPACE) == [*volatile, *persistent]
    assert str(name_of("__change_events")) in await topics.list_topics(
        NAMESPACE, includes_system=True
    )


async def test_watchers_hear_of_topics_that_come_and_go(rig: Rig) -> None:
    events: list[tuple[list[str], list[str]]] = []
    topics = rig.broker.topics
    cancel = topics.watch(NAMESPACE, lambda new, gone: events.append((list(new), list(gone))))
    topic = await rig.persistent("a")
    await topic.subscribe(subscribe_request(rig.cnx()))
    await rig.topic(name_of("n", domain="non-persistent"))
    await rig.topic("__change_events")
    await topics.delete(topic.name, force=True)
    await rig.clock.sleep(0.1)
    assert events == [
        ([str(name_of("a"))], []),
        ([str(name_of("n", domain="non-persistent"))], []),
        ([], [str(name_of("a"))]),
    ]
    cancel()
    await rig.topic("b")
    assert len(events) == 3


async def test_a_namespace_takes_a_limited_number_of_topics(rig: Rig) -> None:
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(max_topics_per_namespace=2)
    )
    await rig.topic("a")
    topics = rig.broker.topics
    with pytest.raises(NotAllowedError, match="Exceed maximum number of topics"):
        await topics.partitioned.create(name_of("p"), 2)
    await rig.topic("b")
    with pytest.raises(NotAllowedError, match="Exceed maximum number of topics"):
        await rig.topic("c")
    await rig.topic("__change_events")


async def test_running_topics_take_over_changed_policies(rig: Rig) -> None:
    topic = await rig.persistent()
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(message_ttl_seconds=5)
    )
    await rig.clock.sleep(0.1)
    assert topic.settings.message_ttl_seconds == 5
    await rig.broker.resources.topic_policies.create(
        topic.name, TopicPolicies(message_ttl_seconds=7)
    )
    await rig.clock.sleep(0.1)
    assert topic.settings.message_ttl_seconds == 7
    await rig.broker.resources.topic_policies.delete(topic.name)
    await rig.clock.sleep(0.1)
    assert topic.settings.message_ttl_seconds == 5


async def test_another_owner_of_the_ledger_takes_the_topic_away(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.producer(topic, cnx, producer_id=5)
    topic.on_fenced(RuntimeError("another owner"))
    await rig.clock.sleep(0.1)
    assert rig.broker.topics.loaded(topic.name) is None
    assert cnx.closed_producers == [5]


async def test_kinds_of_topics_can_be_switched_off(virtual_clock: VirtualClock) -> None:
    config = BrokerConfig(enableNonPersistentTopics=False)
    async with Rig(virtual_clock, config=config) as rig:
        await rig.topic("t")
        with pytest.raises(NotAllowedError, match="not serving non-persistent"):
            await rig.topic(name_of("t", domain="non-persistent"))


async def test_topics_live_over_a_restart(rig: Rig) -> None:
    topic = await rig.persistent()
    await topic.create_subscription("sub", starts_at_earliest=True)
    producer = await rig.producer(topic, rig.cnx())
    send(producer, 0)
    await rig.restart()
    again = await rig.persistent()
    assert again.subscriptions["sub"].stats().backlog_entries == 1


async def test_properties_are_kept_with_the_topic(rig: Rig) -> None:
    topic = await rig.broker.topics.create_topic(name_of("t"), properties={"a": "b"})
    await rig.broker.topics.unload(topic.name)
    assert (await rig.persistent()).ledger.properties["a"] == "b"


async def test_other_namespaces_topics_are_not_listed(rig: Rig) -> None:
    other = NamespaceName("public", "other")
    await rig.broker.resources.namespaces.create_with_bundles(other, NamespacePolicies(), 1)
    await rig.topic(other.topic("t"))
    assert await rig.broker.topics.list_topics(NAMESPACE) == []
    assert await rig.broker.topics.list_topics(other) == [str(other.topic("t"))]
