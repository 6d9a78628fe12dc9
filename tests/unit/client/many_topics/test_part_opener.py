"""Parts are alike but for their share and their beginning; in virtual time."""

from __future__ import annotations

from typing import Any

from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
from pulsar_py.client.many_topics.part_opener import PartOpener, policy_of
from pulsar_py.client.many_topics.topic_parts import PartRequest
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition, SubscriptionMode
from pulsar_py.common.message_id import LATEST_MESSAGE_ID
from tests.simulated_client import World, simulated

TOPIC = "persistent://public/default/t"


def an_opener(world: World, start: Any = None, **options: Any) -> PartOpener:
    config = ConsumerConfig(consumer_name="me", **options)
    policy = policy_of(config, TOPIC, "sub")
    context = world.client.context
    return PartOpener(context, "sub", config, policy=policy, start_message_id=start)


def test_without_retry_the_policy_names_itself_after_each_topic() -> None:
    policy = ConsumerDeadLetterPolicy(3)
    config = ConsumerConfig(consumer_type=ConsumerType.Shared, dead_letter_policy=policy)
    assert policy_of(config, TOPIC, "sub") is policy
    assert policy_of(ConsumerConfig(), TOPIC, "sub") is None


def test_with_retry_all_topics_share_the_first_ones_letters() -> None:
    policy = policy_of(ConsumerConfig(retry_enable=True), TOPIC, "sub")
    assert policy is not None
    assert policy.max_redeliver_count == 16
    assert policy.retry_letter_topic == f"{TOPIC}-sub-RETRY"
    assert policy.dead_letter_topic == f"{TOPIC}-sub-DLQ"


def test_a_part_has_its_share_of_the_queue() -> None:
    async def work(world: World) -> None:
        opener = an_opener(world, max_total_receiver_queue_size_across_partitions=10)
        await world.send(TOPIC)
        part = await opener.open(PartRequest(TOPIC, 5, is_late=False))
        await world.send(TOPIC, *(str(n) for n in range(20)))
        assert part.statistics().receiver_queue_size == 2
        assert part.consumer_name() == "me"
        await part.close()

    simulated(work)


def test_what_came_up_late_is_read_from_its_beginning() -> None:
    async def work(world: World) -> None:
        await world.send(TOPIC, "old")
        for mode in SubscriptionMode:
            opener = an_opener(
                world,
                LATEST_MESSAGE_ID,
                subscription_mode=mode,
                initial_position=InitialPosition.Latest,
            )
            late = await opener.open(PartRequest(TOPIC, 1, is_late=True))
            assert (await late.receive(1000)).data() == b"old"
            await late.unsubscribe()
            usual = await opener.open(PartRequest(TOPIC, 1, is_late=False))
            assert not await usual.has_message_available()
            await usual.unsubscribe()

    simulated(work)


def test_letters_are_attached_where_there_is_a_policy() -> None:
    async def work(world: World) -> None:
        request = PartRequest(TOPIC, 1, is_late=False)
        plain = await an_opener(world).open(request)
        assert plain.redelivery_filter is None
        await plain.close()
        shared = await an_opener(
            world, consumer_type=ConsumerType.Shared, dead_letter_policy=ConsumerDeadLetterPolicy(3)
        ).open(request)
        assert shared.redelivery_filter is not None
        await shared.close()
        ordered = await an_opener(world, retry_enable=True).open(request)
        assert ordered.redelivery_filter is None, "no redeliveries are counted there"
        await ordered.close()

    simulated(work)
