"""Dead letters and retry letters, written by one client and read by the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pulsar_py
from tests.interop.client.sides import (
    TIMEOUT,
    Official,
    Ours,
    Side,
    nothing_comes,
    receive_all,
)

SHARED = {"consumer_type": "ConsumerType.Shared", "negative_ack_redelivery_delay_ms": 100}


def policy(side: Side, max_redeliver_count: int, **options: Any) -> Any:
    return side.module.ConsumerDeadLetterPolicy(max_redeliver_count, **options)


async def reject(consumer: Any, times: int) -> None:
    for _ in range(times):
        consumer.inner.negative_acknowledge(await consumer.receive(TIMEOUT))


async def test_dead_letters_are_read_by_the_other_client(
    writer: Side, reader: Side, topic: str
) -> None:
    letters = await reader.consumer(f"{topic}-sub-DLQ", "letters")
    consumer = await writer.consumer(topic, **SHARED, dead_letter_policy=policy(writer, 1))
    await reader.publish(
        topic, [{"content": b"bad", "partition_key": "k", "properties": {"a": "b"}}]
    )

    await reject(consumer, 2)

    letter = await letters.receive(TIMEOUT)
    assert (letter.data(), letter.partition_key()) == (b"bad", "k")
    assert letter.properties()["a"] == "b"
    assert letter.properties()["REAL_TOPIC"] == topic
    await letters.acknowledge(letter)
    assert await nothing_comes(consumer)


async def test_dead_letters_of_both_say_the_same(
    ours: Ours, official: Official, topic: str
) -> None:
    seen = []
    for side in (ours, official):
        dead = f"{topic}-dead-{side.name}"
        letters = await ours.consumer(dead, "letters")
        consumer = await side.consumer(
            topic,
            side.name,
            **SHARED,
            dead_letter_policy=policy(side, 1, dead_letter_topic=dead),
        )
        if side is ours:
            await ours.publish(topic, [{"content": b"bad", "properties": {"a": "b"}}])
        await reject(consumer, 2)
        letter = await letters.receive(TIMEOUT)
        seen.append({"data": letter.data(), **letter.properties()})
        # The official client crashes the process if a consumer is closed while it takes note of
        # the letter's receipt.
        assert await nothing_comes(consumer)
        await consumer.close()

    mine, theirs = seen
    shared = theirs.keys() & mine.keys()
    assert shared >= {"data", "a", "REAL_TOPIC"}
    for name in shared - {"ORIGIN_MESSAGE_ID", "ORIGIN_MESSAGE_IDY_TIME"}:
        assert mine[name] == theirs[name], name
    assert theirs.keys() <= mine.keys()


async def test_a_letter_s_first_subscription_loses_nothing(
    writer: Side, reader: Side, topic: str
) -> None:
    consumer = await writer.consumer(
        topic,
        **SHARED,
        dead_letter_policy=policy(writer, 1, initial_subscription_name="keep"),
    )
    await reader.publish(topic, [b"bad"])
    await reject(consumer, 2)
    assert await nothing_comes(consumer, 500)

    letters = await reader.consumer(
        f"{topic}-sub-DLQ", "keep", initial_position="InitialPosition.Latest"
    )

    assert (await letters.receive(TIMEOUT)).data() == b"bad"


async def test_a_batch_is_given_up_message_by_message(
    writer: Side, reader: Side, topic: str
) -> None:
    letters = await reader.consumer(f"{topic}-sub-DLQ", "letters")
    consumer = await writer.consumer(topic, **SHARED, dead_letter_policy=policy(writer, 1))
    await reader.publish(topic, [b"1", b"2", b"3"], batching_enabled=True)

    await reject(consumer, 6)

    assert sorted(m.data() for m in await receive_all(letters, 3)) == [b"1", b"2", b"3"]
    assert await nothing_comes(consumer)


async def test_retry_letters_wait_and_end_as_dead_ones(
    ours: Ours, official: Official, topic: str
) -> None:
    retries = await official.consumer(f"{topic}-sub-RETRY", "watch")
    dead = await official.consumer(f"{topic}-sub-DLQ", "watch")
    consumer = await ours.consumer(
        topic,
        consumer_type="ConsumerType.Shared",
        retry_enable=True,
        dead_letter_policy=pulsar_py.ConsumerDeadLetterPolicy(2),
    )
    await official.publish(topic, [{"content": b"later", "properties": {"a": "b"}}])

    for times in (1, 2, 3):
        message = await consumer.receive(TIMEOUT)
        assert message.properties().get("RECONSUMETIMES", "0") == str(times - 1)
        await consumer.reconsume_later(message, delay_millis=0)

    seen = [m.properties() for m in await receive_all(retries, 2)]
    assert [each["RECONSUMETIMES"] for each in seen] == ["1", "2"]
    letter = await dead.receive(TIMEOUT)
    assert letter.data() == b"later"
    assert letter.properties()["a"] == "b"
    assert letter.properties()["REAL_TOPIC"] == topic
    assert letter.properties()["ORIGIN_MESSAGE_ID"]
    assert await nothing_comes(consumer)


async def test_what_another_client_put_into_the_retry_topic_is_consumed(
    ours: Ours, official: Official, topic: str
) -> None:
    consumer = await ours.consumer(
        topic,
        consumer_type="ConsumerType.Shared",
        retry_enable=True,
        dead_letter_policy=pulsar_py.ConsumerDeadLetterPolicy(1),
    )
    dead = await official.consumer(f"{topic}-sub-DLQ", "watch")
    properties = {"RECONSUMETIMES": "1", "REAL_TOPIC": topic, "ORIGIN_MESSAGE_ID": "1:2:-1"}
    await official.publish(f"{topic}-sub-RETRY", [{"content": b"again", "properties": properties}])

    message = await consumer.receive(TIMEOUT)
    assert (message.data(), message.properties()) == (b"again", properties)
    await consumer.reconsume_later(message, delay_millis=0)

    letter = await dead.receive(TIMEOUT)
    assert letter.properties()["ORIGIN_MESSAGE_ID"] == "1:2:-1"
    assert letter.properties()["RECONSUMETIMES"] == "2"
    await asyncio.sleep(0)
