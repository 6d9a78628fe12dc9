from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    NamingError,
    ProducerBusyError,
    ProducerFencedError,
    ServiceError,
)
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from pulsar_py.server.publishing.producers import host_of
from pulsar_py.server.publishing.requests import ProducerGrant
from tests.unit.server.topics.rig import Rig, name_of, send

EXCLUSIVE = ProducerAccessMode.Exclusive
FENCING = ProducerAccessMode.ExclusiveWithFencing
WAIT = ProducerAccessMode.WaitForExclusive


async def test_names_are_generated_and_differ(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    first = await rig.grant(topic, cnx, None)
    second = await rig.grant(topic, cnx, None)
    assert first.producer_name != second.producer_name
    assert first.producer_name.startswith("standalone-")
    assert (await rig.grant(topic, cnx, "")).producer_name == ""


async def test_a_name_is_taken_once(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.producer(topic, cnx)
    with pytest.raises(NamingError):
        await rig.producer(topic, cnx)
    assert cnx.probes_count == 0


async def test_the_holder_of_a_name_is_probed_when_its_connection_may_be_dead(rig: Rig) -> None:
    topic, dead = await rig.persistent(), rig.cnx()
    old = await rig.producer(topic, dead)
    with pytest.raises(NamingError):
        await rig.producer(topic, rig.cnx())
    dead.is_alive = False
    new = await rig.producer(topic, rig.cnx())
    assert old.is_closed
    assert topic.producers == {"p": new}


async def test_a_higher_epoch_of_the_same_producer_replaces_it(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    old = await rig.producer(topic, cnx, producer_id=1, epoch=0)
    with pytest.raises(NamingError):
        await rig.producer(topic, cnx, producer_id=1, epoch=0)
    new = await rig.producer(topic, cnx, producer_id=1, epoch=1)
    assert topic.producers == {"p": new}
    assert old.is_closed
    assert cnx.closed_producers == []


async def test_producers_are_limited(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.broker.resources.namespaces.update(
        topic.name.namespace_name, lambda old: old.replace(max_producers_per_topic=2)
    )
    await rig.clock.sleep(0.01)
    first = await rig.producer(topic, cnx, "a")
    await rig.producer(topic, cnx, "b")
    with pytest.raises(ProducerBusyError, match="max producers limit"):
        await rig.producer(topic, cnx, "c")
    await first.close()
    await rig.producer(topic, cnx, "c")


async def test_a_topic_policy_goes_before_the_namespaces(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.broker.resources.topic_policies.create(topic.name, TopicPolicies(max_producers=1))
    await rig.clock.sleep(0.01)
    await rig.producer(topic, cnx, "a")
    with pytest.raises(ProducerBusyError):
        await rig.producer(topic, cnx, "b")


async def test_the_epoch_outlives_the_topic(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    assert (await rig.grant(topic, cnx, access_mode=EXCLUSIVE)).topic_epoch == 0
    await rig.broker.topics.unload(topic.name)
    again = await rig.persistent()
    assert (await rig.grant(again, cnx, access_mode=EXCLUSIVE)).topic_epoch == 1


async def test_a_shared_producer_is_told_the_epoch_once_there_is_one(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    exclusive = await rig.grant(topic, cnx, access_mode=EXCLUSIVE)
    await exclusive.producer.close()
    assert (await rig.grant(topic, cnx)).topic_epoch == 0


async def test_waiting_producers_are_told_when_they_may(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    answers: list[ProducerGrant | ServiceError] = []
    first = await rig.producer(topic, cnx, "a", access_mode=EXCLUSIVE)
    grant = await rig.grant(topic, cnx, "b", access_mode=WAIT, on_ready=answers.append)
    assert not grant.is_ready
    assert grant.topic_epoch is None
    await first.close()
    await rig.clock.sleep(0.01)
    [answer] = answers
    assert isinstance(answer, ProducerGrant)
    assert answer.is_ready
    assert answer.topic_epoch == 1
    send(answer.producer, 0)
    await rig.clock.sleep(0.01)
    assert cnx.take() == ["receipt 0 at 0"]


async def test_a_producer_that_waits_must_not_send(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.producer(topic, rig.cnx(), "a", access_mode=EXCLUSIVE)
    waiting = await rig.producer(topic, cnx, "b", access_mode=WAIT)
    send(waiting, 0)
    assert not cnx.is_connected


async def test_one_that_waited_and_left_is_counted_in_the_next_ones_epoch(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    answers: list[ProducerGrant | ServiceError] = []
    first = await rig.producer(topic, cnx, "a", access_mode=EXCLUSIVE)
    waiting = await rig.producer(topic, cnx, "b", access_mode=WAIT)
    await rig.grant(topic, cnx, "c", access_mode=WAIT, on_ready=answers.append)
    waiting.on_connection_lost()
    await first.close()
    await rig.clock.sleep(0.01)
    [answer] = answers
    assert isinstance(answer, ProducerGrant)
    assert (answer.producer_name, answer.topic_epoch) == ("c", 2)


async def test_a_turn_nobody_took_is_in_the_epoch_after_an_unload(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    first = await rig.producer(topic, cnx, "a", access_mode=EXCLUSIVE)
    waiting = await rig.producer(topic, cnx, "b", access_mode=WAIT)
    waiting.on_connection_lost()
    await first.close()
    assert topic.producers == {}
    await rig.clock.sleep(0.01)
    await rig.broker.topics.unload(topic.name)
    again = await rig.persistent()
    assert (await rig.grant(again, cnx, "c", access_mode=EXCLUSIVE)).topic_epoch == 2


async def test_fencing_throws_out_silently_and_tells_those_that_wait(rig: Rig) -> None:
    topic, old_cnx, new_cnx = await rig.persistent(), rig.cnx(), rig.cnx()
    answers: list[ProducerGrant | ServiceError] = []
    old = await rig.producer(topic, old_cnx, "a", access_mode=EXCLUSIVE)
    await rig.grant(topic, rig.cnx(), "b", access_mode=WAIT, on_ready=answers.append)
    new = await rig.grant(topic, new_cnx, "c", access_mode=FENCING)
    assert new.topic_epoch == 1
    assert [type(each) for each in answers] == [ProducerFencedError]
    assert old_cnx.closed_producers == []
    assert old_cnx.is_connected
    send(old, 0)
    assert not old_cnx.is_connected
    send(new.producer, 0)
    await rig.clock.sleep(0.01)
    assert new_cnx.take() == ["receipt 0 at 0"]
    assert topic.producers == {"c": new.producer}


async def test_unloading_closes_those_that_wait_too(rig: Rig) -> None:
    topic, cnx = await rig.persistent(), rig.cnx()
    await rig.producer(topic, cnx, "a", access_mode=EXCLUSIVE, producer_id=1)
    await rig.producer(topic, cnx, "b", access_mode=WAIT, producer_id=2)
    await rig.broker.topics.unload(topic.name)
    assert sorted(cnx.closed_producers) == [1, 2]


async def test_system_topics_take_any_number(rig: Rig) -> None:
    topic, cnx = await rig.topic(name_of("__change_events")), rig.cnx()
    await rig.broker.resources.namespaces.update(
        topic.name.namespace_name, lambda old: old.replace(max_producers_per_topic=1)
    )
    await rig.clock.sleep(0.01)
    await rig.producer(topic, cnx, "a")
    await rig.producer(topic, cnx, "b")


def test_hosts_of_addresses() -> None:
    assert host_of("/127.0.0.1:6650") == "127.0.0.1"
    assert host_of("/[::1]:6650") == "[::1]"
