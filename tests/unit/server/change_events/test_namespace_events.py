"""The log of a namespace and its copies: changes, what others append, and what a crash left."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import MetadataUnavailableError, NotAllowedError, PulsarError
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.change_events.event_log import FOLLOWED_PROPERTY
from pulsar_py.server.change_events.namespace_events import events_topic as topic_of
from pulsar_py.server.policies.policy_events import PolicyEvent
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.change_events.event_parts import (
    EVENTS,
    A,
    B,
    append,
    change,
    copies,
    copy,
    events_topic,
    gone,
    local,
    logged,
    until,
)
from tests.unit.server.topics.rig import NAMESPACE, Rig


async def test_a_change_is_an_event_and_a_copy(rig: Rig) -> None:
    assert topic_of(NAMESPACE) == EVENTS
    await change(rig, maxProducerPerTopic=3)
    await change(rig, maxProducerPerTopic=4, messageTTLInSeconds=5)
    await change(rig, is_global=True, maxProducerPerTopic=9)
    assert await copy(rig) == {"maxProducerPerTopic": 4, "messageTTLInSeconds": 5}
    assert await copy(rig, is_global=True) == {"maxProducerPerTopic": 9}
    assert await logged(rig) == [
        local(maxProducerPerTopic=3),
        local(maxProducerPerTopic=4, messageTTLInSeconds=5),
        PolicyEvent(A, is_global=True, document={"maxProducerPerTopic": 9}),
    ]
    assert (await events_topic(rig)).ledger.properties[FOLLOWED_PROPERTY] == "true"


async def test_a_change_that_changes_nothing_appends_nothing(rig: Rig) -> None:
    await change(rig, maxProducerPerTopic=3)
    await change(rig, maxProducerPerTopic=3)
    assert len(await logged(rig)) == 1


async def test_what_means_not_set_is_not_in_the_copy(rig: Rig) -> None:
    await change(rig, subscriptionTypesEnabled=[], backLogQuotaMap={}, maxConsumerPerTopic=1)
    assert await copy(rig) == {"maxConsumerPerTopic": 1}


async def test_removed_policies_are_events_of_both_keys(rig: Rig) -> None:
    await change(rig, maxProducerPerTopic=3)
    await change(rig, is_global=True, maxProducerPerTopic=9)
    await rig.broker.topic_policies.remove(A)
    assert await copy(rig) is None
    assert await copy(rig, is_global=True) is None
    assert (await logged(rig))[2:] == [gone(), gone(is_global=True)]
    await rig.broker.topic_policies.remove(A)
    assert len(await logged(rig)) == 4, "there was nothing to remove"


async def test_removing_policies_makes_no_log(rig: Rig) -> None:
    await copies(rig).create(A, TopicPolicies(max_producers=1))
    await rig.broker.topic_policies.remove(A)
    assert await copy(rig) is None
    assert not await rig.broker.topics.exists(EVENTS)


async def test_what_others_have_appended_is_there_before_it_is_read(rig: Rig) -> None:
    await rig.broker.topic_policies.catch_up(NAMESPACE)
    assert not await rig.broker.topics.exists(EVENTS), "nothing is made for it"
    await change(rig, maxProducerPerTopic=3)
    await append(rig, local(maxProducerPerTopic=7))
    await rig.broker.topics.unload(EVENTS)
    await rig.broker.topic_policies.catch_up(NAMESPACE)
    assert await copy(rig) == {"maxProducerPerTopic": 7}


async def test_what_others_append_takes_effect(rig: Rig) -> None:
    topic = await rig.persistent("a")
    await change(rig, maxProducerPerTopic=3)
    await append(rig, local(maxProducerPerTopic=7))
    await until(lambda: topic.settings.max_producers == 7)
    await append(rig, gone())
    await until(lambda: topic.settings.max_producers == 0)
    assert await copy(rig) is None
    await append(rig, PolicyEvent(A, is_global=True, document={"maxProducerPerTopic": 8}))
    await until(lambda: topic.settings.max_producers == 8)


async def test_the_last_one_in_the_log_wins(rig: Rig) -> None:
    await change(rig, maxProducerPerTopic=3)
    await asyncio.gather(
        append(rig, local(maxProducerPerTopic=7)),
        change(rig, maxConsumerPerTopic=1),
        append(rig, local(maxProducerPerTopic=8)),
        change(rig, maxConsumerPerTopic=2),
    )
    await change(rig, B, maxProducerPerTopic=1)  # after it the copies are up to the log
    newest = [event for event in await logged(rig) if event.topic == A][-1]
    assert await copy(rig) == newest.document


async def test_an_event_without_its_copy_is_applied_at_the_next_load(rig: Rig) -> None:
    """A crash after the event, before the copy."""
    await change(rig, maxProducerPerTopic=3)
    await change(rig, B, maxProducerPerTopic=3)
    await rig.broker.topics.unload(EVENTS)
    await copies(rig).update(A, lambda _: TopicPolicies({"maxProducerPerTopic": 1}))
    await copies(rig).delete(B)
    await rig.restart()
    topic = await rig.persistent("a")
    await until(lambda: topic.settings.max_producers == 3)
    await change(rig, B)
    assert await copy(rig, B) == {"maxProducerPerTopic": 3}


async def test_a_removal_without_its_copy_is_finished_though_compacted_away(rig: Rig) -> None:
    """A crash after the removal's event, before the copy goes; then the log is compacted."""
    await change(rig, maxProducerPerTopic=3)
    await change(rig, B, maxProducerPerTopic=4)
    await rig.broker.topic_policies.remove(A)
    topic = await events_topic(rig)
    assert topic.compaction is not None
    topic.compaction.begin()
    await topic.compaction.finished()
    await rig.broker.topics.unload(EVENTS)
    await copies(rig).create(A, TopicPolicies({"maxProducerPerTopic": 3}))
    await rig.restart()
    await change(rig, B, maxProducerPerTopic=5)
    assert await copy(rig) is None
    assert await copy(rig, B) == {"maxProducerPerTopic": 5}
    assert await logged(rig) == [
        local(B, maxProducerPerTopic=4),
        local(B, maxProducerPerTopic=5),
    ]


async def test_a_global_copy_that_others_wrote_later_stays(rig: Rig) -> None:
    """The configuration store may be shared with other clusters, whose events are not here."""
    await change(rig, is_global=True, maxProducerPerTopic=3)
    await rig.broker.topics.unload(EVENTS)
    await asyncio.sleep(1)
    shared = copies(rig, is_global=True)
    await shared.update(A, lambda _: TopicPolicies({"maxProducerPerTopic": 4}))
    await shared.create(B, TopicPolicies({"maxProducerPerTopic": 5}))
    await rig.restart()
    await change(rig, maxConsumerPerTopic=1)
    assert await copy(rig, is_global=True) == {"maxProducerPerTopic": 4}
    assert await copy(rig, B, is_global=True) == {"maxProducerPerTopic": 5}


async def test_copies_without_a_log_are_appended_once(rig: Rig) -> None:
    await copies(rig).create(A, TopicPolicies({"maxProducerPerTopic": 1}))
    await copies(rig, is_global=True).create(B, TopicPolicies({"maxProducerPerTopic": 2}))
    topic = await rig.persistent("a")
    assert topic.settings.max_producers == 1
    await asyncio.sleep(1)
    assert not await rig.broker.topics.exists(EVENTS), "loading makes no log"
    await change(rig, B, maxProducerPerTopic=3)
    expected = [
        local(A, maxProducerPerTopic=1),
        PolicyEvent(B, is_global=True, document={"maxProducerPerTopic": 2}),
        local(B, maxProducerPerTopic=3),
    ]
    assert await logged(rig) == expected
    await rig.restart()
    await change(rig, B, maxProducerPerTopic=3)
    assert await logged(rig) == expected


async def test_the_first_time_the_later_of_copy_and_event_counts(rig: Rig) -> None:
    now = rig.clock.wall_time_millis()
    await copies(rig).create(A, TopicPolicies({"maxProducerPerTopic": 1}))
    await copies(rig).create(B, TopicPolicies({"maxProducerPerTopic": 1}))
    rig.broker.topics.policy_keeper = None  # nobody hears of the log before it is complete
    await append(rig, local(A, maxProducerPerTopic=2), at_millis=now - 1000)
    await append(rig, local(B, maxProducerPerTopic=2), at_millis=now + 1000)
    await rig.restart()
    await rig.persistent("t")
    await change(rig, B)
    assert await copy(rig) == {"maxProducerPerTopic": 1}
    assert await copy(rig, B) == {"maxProducerPerTopic": 2}
    assert (await logged(rig))[2:] == [local(A, maxProducerPerTopic=1)]


class Failing(MemoryMetadataStore):
    """Takes no policies of topics while `fails`."""

    fails = False

    async def put(self, path: str, value: bytes, **options: object) -> object:  # type: ignore[override]
        if self.fails and path.startswith("/admin/topic-policies"):
            raise MetadataUnavailableError("not now")
        return await super().put(path, value, **options)  # type: ignore[arg-type]


async def test_a_copy_that_could_not_be_written_is_written_later(
    virtual_clock: VirtualClock,
) -> None:
    store = Failing(virtual_clock)
    async with Rig(virtual_clock, metadata=store) as rig:
        topic = await rig.persistent("a")
        await change(rig, maxProducerPerTopic=1)
        store.fails = True
        with pytest.raises(PulsarError, match="not now"):
            await change(rig, maxProducerPerTopic=2)
        await asyncio.sleep(5)
        assert topic.settings.max_producers == 1
        store.fails = False
        await until(lambda: topic.settings.max_producers == 2)


async def test_no_load_waits_for_the_log(virtual_clock: VirtualClock) -> None:
    store = Failing(virtual_clock)
    async with Rig(virtual_clock, metadata=store) as rig:
        await change(rig, maxProducerPerTopic=1)
        await copies(rig).update(A, lambda _: TopicPolicies({"maxProducerPerTopic": 2}))
        await rig.restart()
        store.fails = True
        topic = await rig.persistent("a")
        assert topic.settings.max_producers == 2
        store.fails = False
        await until(lambda: topic.settings.max_producers == 1)


async def test_the_log_is_followed_after_it_was_unloaded(rig: Rig) -> None:
    topic = await rig.persistent("a")
    await change(rig, maxProducerPerTopic=1)
    await rig.broker.topics.unload(EVENTS)
    await append(rig, local(maxProducerPerTopic=2))
    await until(lambda: topic.settings.max_producers == 2)


async def test_a_deleted_log_begins_anew_with_the_copies(rig: Rig) -> None:
    await change(rig, maxProducerPerTopic=1)
    await rig.broker.topics.delete(EVENTS, force=True)
    assert await copy(rig) == {"maxProducerPerTopic": 1}
    await change(rig, B, maxProducerPerTopic=2)
    assert await logged(rig) == [local(maxProducerPerTopic=1), local(B, maxProducerPerTopic=2)]


async def test_a_terminated_log_takes_no_changes(rig: Rig) -> None:
    await change(rig, maxProducerPerTopic=1)
    await (await events_topic(rig)).terminate()
    with pytest.raises(PulsarError, match="terminated"):
        await change(rig, maxProducerPerTopic=2)
    assert await copy(rig) == {"maxProducerPerTopic": 1}


async def test_a_partitioned_log_is_refused(rig: Rig) -> None:
    await rig.broker.topics.partitioned.create(EVENTS, 2)
    await rig.persistent("a")
    with pytest.raises(NotAllowedError, match="partitioned"):
        await change(rig, maxProducerPerTopic=1)
