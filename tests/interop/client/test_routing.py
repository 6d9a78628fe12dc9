"""Partitions and Key_Shared: the same key goes to the same place, whichever client sends it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from tests.interop.client.sides import (
    Official,
    Ours,
    Side,
    data_of,
    next_of,
    nothing_comes,
    receive_all,
)

KEYS = ["", "a", "k1", "Schlüssel", "日本", "x" * 300] + [f"key-{i}" for i in range(30)]


async def partitions_by_key(consumer: object, count: int) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for message in await receive_all(consumer, count):
        partition = int(message.topic_name().rpartition("-")[2])
        found.setdefault(message.partition_key(), set()).add(partition)
    return found


async def test_a_key_goes_to_the_same_partition_from_both(
    ours: Ours, official: Official, partitioned_topic: Callable[[int], str]
) -> None:
    topic = partitioned_topic(7)
    consumer = await ours.consumer(topic)
    keys = [key for key in KEYS if key]  # an empty key is none to the official client

    for side in (ours, official):
        await side.publish(
            topic, [{"content": side.name.encode(), "partition_key": k} for k in keys]
        )

    found = await partitions_by_key(consumer, 2 * len(keys))
    assert {key: len(partitions) for key, partitions in found.items()} == dict.fromkeys(keys, 1)
    assert len(set.union(*found.values())) == 7


async def test_a_partition_of_a_topic_is_a_topic_to_both(
    writer: Side, reader: Side, partitioned_topic: Callable[[int], str]
) -> None:
    topic = partitioned_topic(2)
    consumer = await reader.consumer(topic)
    for partition in range(2):
        await writer.publish(f"{topic}-partition-{partition}", [b"p%d" % partition])

    assert sorted(await data_of(consumer, 2)) == [b"p0", b"p1"]
    partitions = await reader.client.get_topic_partitions(topic)
    assert partitions == [f"{topic}-partition-{i}" for i in range(2)]


async def test_messages_without_key_are_spread(
    writer: Side, reader: Side, partitioned_topic: Callable[[int], str]
) -> None:
    topic = partitioned_topic(3)
    consumer = await reader.consumer(topic)

    await writer.publish(topic, [b"m%d" % i for i in range(30)])

    messages = await receive_all(consumer, 30)
    assert sorted(m.data() for m in messages) == sorted(b"m%d" % i for i in range(30))
    assert len({m.topic_name() for m in messages}) == 3


async def test_ids_of_partitions_are_alike(
    ours: Ours, official: Official, partitioned_topic: Callable[[int], str]
) -> None:
    topic = partitioned_topic(3)
    consumers = [await side.consumer(topic, side.name) for side in (ours, official)]
    await ours.publish(topic, [{"content": k.encode(), "partition_key": k} for k in KEYS if k])

    mine, theirs = [
        {m.data(): m.message_id() for m in await receive_all(consumer, len(KEYS) - 1)}
        for consumer in consumers
    ]

    for data, message_id in mine.items():
        assert message_id.partition_index == theirs[data].partition()
        assert message_id.serialize() == theirs[data].serialize()


async def test_a_growing_topic_is_noticed_and_keys_agree_again(
    ours: Ours, official: Official, address: object, partitioned_topic: Callable[[int], str]
) -> None:
    topic = partitioned_topic(2)
    options = {"auto_update_partitions_interval_seconds": 1}
    consumer = await ours.consumer(topic, **options)
    producer = await ours.producer(topic, **options)
    path = "/admin/v2/" + topic.replace("://", "/") + "/partitions"
    address.rest("POST", path, b"5")  # type: ignore[attr-defined]
    while await producer.partitions_count() < 5:
        await asyncio.sleep(0.05)

    for key in KEYS[1:]:
        await producer.send(b"ours", partition_key=key)
    await official.publish(topic, [{"content": b"o", "partition_key": k} for k in KEYS[1:]])

    found = await partitions_by_key(consumer, 2 * len(KEYS[1:]))
    assert {len(partitions) for partitions in found.values()} == {1}
    assert len(set.union(*found.values())) == 5


async def test_key_shared_consumers_of_both_share_the_keys(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    consumers = [
        await side.consumer(topic, consumer_type="ConsumerType.KeyShared")
        for side in (ours, official)
    ]
    keys = [f"key-{i}" for i in range(40)]

    await writer.publish(
        topic,
        [{"content": b"%d" % turn, "partition_key": key} for turn in range(3) for key in keys],
        batching_enabled=True,
        batching_type="BatchingType.KeyBased",
    )

    got: list[dict[str, list[bytes]]] = [{}, {}]
    for place, consumer in zip(got, consumers, strict=True):
        while (message := await next_of(consumer)) is not None:
            place.setdefault(message.partition_key(), []).append(message.data())
    assert not got[0].keys() & got[1].keys()
    assert got[0].keys()
    assert got[1].keys()
    assert got[0] | got[1] == {key: [b"0", b"1", b"2"] for key in keys}


async def test_an_ordering_key_goes_before_the_key(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    consumers = [
        await side.consumer(topic, consumer_type="ConsumerType.KeyShared")
        for side in (ours, official)
    ]

    await writer.publish(
        topic,
        [
            {"content": b"m", "partition_key": f"key-{i}", "ordering_key": "one for all"}
            for i in range(20)
        ],
    )

    counts = []
    for consumer in consumers:
        count = 0
        while not await nothing_comes(consumer):
            count += 1
        counts.append(count)
    assert sorted(counts) == [0, 20]


async def test_failover_goes_from_one_client_to_the_other(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    consumers = [
        await side.consumer(
            topic, consumer_type="ConsumerType.Failover", consumer_name=name, receiver_queue_size=1
        )
        for side, name in ((ours, "a"), (official, "b"))
    ]
    await asyncio.sleep(1.2)  # a change of the active one takes a second
    await writer.publish(topic, [b"1"])
    first = await next_of(consumers[0])
    active, idle = consumers if first is not None else reversed(consumers)
    first = first or await next_of(active)
    assert first is not None
    await writer.publish(topic, [b"2"])
    assert await nothing_comes(idle)
    assert await data_of(active, 1) == [b"2"]

    await active.close()
    await writer.publish(topic, [b"3"])

    assert await data_of(idle, 1) == [b"3"]


async def test_shared_consumers_of_both_get_each_message_once(
    writer: Side, ours: Ours, official: Official, topic: str
) -> None:
    consumers = [
        await side.consumer(topic, consumer_type="ConsumerType.Shared", receiver_queue_size=10)
        for side in (ours, official)
    ]
    await writer.publish(topic, [b"%d" % i for i in range(100)])

    got: list[bytes] = []
    for consumer in consumers * 10:
        while len(got) < 100 and (message := await next_of(consumer)) is not None:
            got.append(message.data())

    assert sorted(got, key=int) == [b"%d" % i for i in range(100)]


async def test_patterns_find_what_the_other_client_made(
    writer: Side, reader: Side, topic: str
) -> None:
    for name in ("a1", "a2", "b1"):
        await writer.publish(f"{topic}-{name}", [name.encode()])

    consumer = await reader.consumer(re.compile(f"{topic}-a.*"), pattern_auto_discovery_period=1)

    assert sorted(await data_of(consumer, 2)) == [b"a1", b"a2"]
    if reader.name == "ours":  # the official client's own discovery misses later topics
        await writer.publish(f"{topic}-a3", [b"a3"])
        assert await data_of(consumer, 1) == [b"a3"]
