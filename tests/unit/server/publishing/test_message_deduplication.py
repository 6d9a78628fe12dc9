from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.publishing.message_deduplication import MessageDeduplication
from pulsar_py.server.publishing.producer import PublishContext, Send
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.topics.rig import NAMESPACE, Rig, entry, send


async def deduplicated(rig: Rig) -> PersistentTopic:
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(is_deduplication_enabled=True)
    )
    return await rig.persistent()


def state(topic: PersistentTopic) -> MessageDeduplication:
    assert topic.deduplication is not None
    return topic.deduplication


async def test_repeated_ids_get_receipts_without_a_position(rig: Rig) -> None:
    topic, cnx = await deduplicated(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    send(producer, 1)
    await rig.clock.sleep(0.01)
    send(producer, 1)
    send(producer, 0)
    send(producer, 5)
    await producer.close()
    assert cnx.take() == [
        "receipt 0 at 0",
        "receipt 1 at 1",
        "receipt 1 at none",
        "receipt 0 at none",
        "receipt 5 at 2",
    ]
    assert (await rig.grant(topic, cnx)).last_sequence_id == 5


async def test_what_is_under_way_can_not_be_decided(rig: Rig) -> None:
    topic, cnx = await deduplicated(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    send(producer, 0)
    await producer.close()
    assert sorted(cnx.take()) == ["error 0 PersistenceError", "receipt 0 at 0"]


async def test_only_the_last_chunk_counts(rig: Rig) -> None:
    topic, cnx = await deduplicated(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    for _ in range(2):
        for chunk in range(3):
            data = entry(0, chunk_id=chunk, num_chunks_from_msg=3)
            send(producer, 0, data, is_chunk=True)
        await rig.clock.sleep(0.01)
    places = [line.removeprefix("receipt 0 at ") for line in cnx.take()]
    assert sorted(places) == [*"01234", "none"]


async def test_the_state_survives_an_unload(rig: Rig) -> None:
    topic, cnx = await deduplicated(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    for n in range(4):
        send(producer, n)
    await producer.close()
    await rig.broker.topics.unload(topic.name)
    again = await rig.persistent()
    assert (await rig.grant(again, cnx)).last_sequence_id == 3


async def test_what_followed_the_snapshot_is_replayed(rig: Rig) -> None:
    topic, cnx = await deduplicated(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    await rig.clock.sleep(0.01)
    state(topic).take_snapshot()
    send(producer, 1, entry(1, highest_sequence_id=7))
    await rig.clock.sleep(0.01)
    before = state(topic)
    replayed = await MessageDeduplication.open(topic.ledger, topic.settings, rig.clock)
    assert before.cursor.properties == {"p": 0}
    assert replayed.state.last_sequence_id("p") == 7


async def test_a_name_that_is_no_text_is_nobodys(rig: Rig) -> None:
    topic, cnx = await deduplicated(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    stored = entry(5, producer_name="ab")
    broken = stored[:2] + bytes(4) + stored[6:].replace(b"ab", b"\xff\xfe")
    await topic.ledger.append_and_wait(broken)
    send(producer, 1)
    await rig.clock.sleep(0.01)
    replayed = await MessageDeduplication.open(topic.ledger, topic.settings, rig.clock)
    assert replayed.state.last_sequence_id("p") == 1
    assert set(replayed.state.snapshot()) == {"p"}


async def test_snapshots_are_taken_by_count_and_by_time(virtual_clock: VirtualClock) -> None:
    config = BrokerConfig(
        brokerDeduplicationEnabled=True,
        brokerDeduplicationEntriesInterval=3,
        brokerDeduplicationSnapshotIntervalSeconds=10,
    )
    async with Rig(virtual_clock, config=config) as rig:
        topic = await rig.persistent()
        producer = await rig.producer(topic, rig.cnx())
        for n in range(2):
            send(producer, n)
        await rig.clock.sleep(0.01)
        assert state(topic).cursor.properties == {}
        send(producer, 2)
        await rig.clock.sleep(0.01)
        assert state(topic).cursor.properties == {"p": 2}
        send(producer, 3)
        await rig.clock.sleep(5)
        state(topic).maintain(topic.settings)
        assert state(topic).cursor.properties == {"p": 2}
        await rig.clock.sleep(6)
        state(topic).maintain(topic.settings)
        assert state(topic).cursor.properties == {"p": 3}


async def test_switching_off_deletes_the_cursor(rig: Rig) -> None:
    topic = await deduplicated(rig)
    assert "pulsar.dedup" in topic.ledger.cursors
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(is_deduplication_enabled=False)
    )
    await rig.clock.sleep(0.1)
    assert "pulsar.dedup" not in topic.ledger.cursors
    assert list(topic.subscriptions) == []
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx)
    send(producer, 0)
    send(producer, 0)
    await producer.close()
    assert cnx.take() == ["receipt 0 at 0", "receipt 0 at 1"]


async def test_one_that_publishes_while_it_is_switched_on_is_not_forgotten(rig: Rig) -> None:
    topic = await rig.persistent()
    producer = await rig.producer(topic, rig.cnx())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            rig.broker.resources.namespaces.update(
                NAMESPACE, lambda old: old.replace(is_deduplication_enabled=True)
            )
        )
        for n in range(200):
            send(producer, n)
            await asyncio.sleep(0)
    await rig.clock.sleep(0.1)
    dedup = state(topic).state
    assert dedup.last_sequence_id("p") == 199
    dedup.forget_inactive(rig.clock.monotonic_seconds() + 3600, 60.0)
    assert dedup.last_sequence_id("p") == 199


def run_of(*sequence_ids: tuple[int, int | None], **fields: bool) -> list[Send]:
    is_chunk, is_marker = fields.get("is_chunk", False), fields.get("is_marker", False)
    return [(each, highest, 1, is_chunk, is_marker, entry(each)) for each, highest in sequence_ids]


def count_runs(topic: PersistentTopic, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries of each run the ledger takes from now on."""
    taken: list[int] = []
    append_run = topic.ledger.append_run

    def counted(datas: list[bytes], contexts: Sequence[PublishContext]) -> int:
        taken.append(append_run(datas, contexts))
        return taken[-1]

    monkeypatch.setattr(topic.ledger, "append_run", counted)
    topic._producers.set_append(topic.append_function())
    return taken


async def test_a_run_of_new_messages_is_decided_as_a_whole(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, cnx = await deduplicated(rig), rig.cnx()
    producer = await rig.producer(topic, cnx)
    taken = count_runs(topic, monkeypatch)
    send(producer, 0)
    producer.publish_run(run_of((1, None), (2, 6), (7, 7)))
    producer.publish_run(run_of((8, None), (9, None)))
    assert taken == [3, 2]
    state(topic).state.check()
    await rig.clock.sleep(0.01)
    producer.publish_run(run_of((9, None), (10, None)))
    producer.publish_run(run_of((11, None), (11, None)))
    producer.publish_run(run_of((12, None), (13, None), is_marker=True))
    assert taken == [3, 2]
    await producer.close()
    assert sorted(cnx.take()) == sorted(
        [
            *(f"receipt {each} at {place}" for place, each in enumerate((0, 1, 2, 7, 8, 9))),
            "receipt 9 at none",
            "receipt 10 at 6",
            "receipt 11 at 7",
            "error 11 PersistenceError",
            "receipt 12 at 8",
            "receipt 13 at 9",
        ]
    )


@pytest.mark.parametrize("seed", range(10))
async def test_runs_are_answered_as_their_messages_one_by_one(rig: Rig, seed: int) -> None:
    chance = random.Random(seed)
    answers: list[list[str]] = []
    topics = [await deduplicated(rig), await rig.persistent("another")]
    makers = [(each, rig.cnx()) for each in topics]
    producers = [await rig.producer(topic, cnx) for topic, cnx in makers]
    newest = 0
    for _ in range(30):
        ids = []
        for _ in range(chance.randrange(2, 6)):
            newest = max(newest + chance.choice([1, 1, 1, 1, 2, 0, -3]), 0)
            ids.append((newest, chance.choice([None, None, newest + 2, newest - 1])))
        producers[0].publish_run(run_of(*ids))
        for sequence_id, highest in ids:
            send(producers[1], sequence_id, highest=highest)
        if chance.random() < 0.5:
            await rig.clock.sleep(0.01)
    for producer, (topic, cnx) in zip(producers, makers, strict=True):
        await producer.close()
        answers.append(sorted(cnx.take()))
        state(topic).state.check()
    assert answers[0] == answers[1]
    assert len(answers[0]) > 60
