"""Dead letters and retry letters: names, properties, and what is on its way."""

from __future__ import annotations

import pytest

from pulsar_py.client.consuming.dead_letter import (
    ConsumerDeadLetterPolicy,
    MoveOutcome,
    MoveQueue,
    dead_letter_properties,
    dead_letter_topic_of,
    plan_reconsume,
    retry_letter_topic_of,
)
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.message_id import MessageId

TOPIC = "persistent://public/default/orders"
POLICY = ConsumerDeadLetterPolicy(2).with_names(TOPIC, "sub")


def test_topics_are_named_after_topic_and_subscription() -> None:
    assert retry_letter_topic_of("orders", "sub") == f"{TOPIC}-sub-RETRY"
    assert dead_letter_topic_of("orders", "sub") == f"{TOPIC}-sub-DLQ"


def test_partitions_share_their_topics_letters() -> None:
    assert retry_letter_topic_of(f"{TOPIC}-partition-3", "sub") == f"{TOPIC}-sub-RETRY"
    assert dead_letter_topic_of(f"{TOPIC}-partition-3", "sub") == f"{TOPIC}-sub-DLQ"


def test_names_given_are_kept_and_made_full() -> None:
    policy = ConsumerDeadLetterPolicy(1, "dead", "first", retry_letter_topic="later")
    named = policy.with_names(TOPIC, "sub")
    assert named.dead_letter_topic == "persistent://public/default/dead"
    assert named.retry_letter_topic == "persistent://public/default/later"
    assert named.initial_subscription_name == "first"


def test_a_policy_needs_at_least_one_redelivery() -> None:
    with pytest.raises(InvalidConfigurationError, match="max_redeliver_count is 0"):
        ConsumerDeadLetterPolicy(0)


def test_a_copy_says_where_it_came_from() -> None:
    copied = dead_letter_properties(
        {"mine": "1"},
        topic=f"{TOPIC}-partition-1",
        subscription_name="sub",
        message_id=MessageId(7, 8, partition_index=1),
    )
    assert copied == {
        "mine": "1",
        "REAL_TOPIC": TOPIC,
        "REAL_SUBSCRIPTION": "sub",
        "ORIGIN_MESSAGE_ID": "7:8:1",
        "ORIGIN_MESSAGE_IDY_TIME": "7:8:1",
    }


def test_a_copy_of_a_copy_says_where_the_first_one_came_from() -> None:
    first = dead_letter_properties(
        {}, topic=TOPIC, subscription_name="sub", message_id=MessageId(1, 1)
    )
    again = dead_letter_properties(
        first, topic=f"{TOPIC}-sub-RETRY", subscription_name="sub", message_id=MessageId(9, 9)
    )
    assert again == first


def test_reconsuming_counts_and_delays() -> None:
    first = plan_reconsume(POLICY, {"mine": "1"}, delay_millis=3000)
    assert (first.topic, first.is_dead, first.delay_millis) == (f"{TOPIC}-sub-RETRY", False, 3000)
    assert first.properties == {"mine": "1", "RECONSUMETIMES": "1", "DELAY_TIME": "3000"}

    second = plan_reconsume(POLICY, first.properties, delay_millis=-1)
    assert (second.properties["RECONSUMETIMES"], second.delay_millis) == ("2", 0)


def test_reconsuming_beyond_the_limit_makes_a_dead_letter() -> None:
    plan = plan_reconsume(POLICY, {"RECONSUMETIMES": "2"}, delay_millis=3000)
    assert (plan.topic, plan.is_dead, plan.delay_millis) == (f"{TOPIC}-sub-DLQ", True, 0)
    assert plan.properties["RECONSUMETIMES"] == "3"


def test_custom_properties_win_over_the_messages() -> None:
    plan = plan_reconsume(POLICY, {"a": "1", "b": "1"}, custom_properties={"b": "2"})
    assert (plan.properties["a"], plan.properties["b"]) == ("1", "2")


def test_a_foreign_count_begins_anew() -> None:
    plan = plan_reconsume(POLICY, {"RECONSUMETIMES": "often"})
    assert plan.properties["RECONSUMETIMES"] == "1"


def test_a_message_is_moved_once_however_often_it_comes() -> None:
    queue: MoveQueue[str] = MoveQueue(10)
    message_id = MessageId(1, 2, batch_index=3)
    assert queue.offer(message_id, "a") is MoveOutcome.TAKEN
    assert queue.offer(message_id, "a again") is MoveOutcome.DUPLICATE
    assert queue.take(5) == ["a"]
    assert queue.offer(message_id, "being published") is MoveOutcome.DUPLICATE
    assert message_id in queue

    queue.on_done(message_id)
    assert message_id not in queue
    assert queue.offer(message_id, "failed, and came again") is MoveOutcome.TAKEN


def test_messages_of_one_batch_are_several() -> None:
    queue: MoveQueue[int] = MoveQueue(10)
    for index in range(3):
        assert queue.offer(MessageId(1, 2, batch_index=index), index) is MoveOutcome.TAKEN
    assert queue.take(2) == [0, 1]
    assert queue.take(2) == [2]


def test_what_is_on_its_way_is_bounded() -> None:
    queue: MoveQueue[int] = MoveQueue(2)
    assert queue.offer(MessageId(1, 0), 0) is MoveOutcome.TAKEN
    assert queue.offer(MessageId(1, 1), 1) is MoveOutcome.TAKEN
    assert queue.offer(MessageId(1, 2), 2) is MoveOutcome.FULL
    queue.take(1)
    assert queue.offer(MessageId(1, 2), 2) is MoveOutcome.FULL, "it is published, not done"
    queue.on_done(MessageId(1, 0))
    assert queue.offer(MessageId(1, 2), 2) is MoveOutcome.TAKEN
    assert len(queue) == 2
