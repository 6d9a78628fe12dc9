"""How far a reader has to come to have seen everything."""

from __future__ import annotations

from pulsar_py.client.messages.topic_message_id import TopicMessageId
from pulsar_py.client.reading.catch_up import CatchUp
from pulsar_py.common.message_id import MessageId


def test_empty_topics_are_read_already() -> None:
    assert CatchUp([TopicMessageId("a", -1, -1), TopicMessageId("b", 3, -1)], {}).is_done


def test_each_topic_has_to_be_reached() -> None:
    missing = CatchUp([TopicMessageId("a", 1, 5), TopicMessageId("b", 2, 0)], {})
    assert not missing.on_read("a", MessageId(1, 4))
    assert not missing.on_read("a", MessageId(1, 5))
    assert not missing.on_read("other", MessageId(9, 9))
    assert missing.on_read("b", MessageId(3, 0)), "beyond it is as good"
    assert missing.is_done


def test_a_batch_has_to_be_read_to_its_last_message() -> None:
    missing = CatchUp([TopicMessageId("a", 1, 5, batch_index=2)], {})
    assert not missing.on_read("a", MessageId(1, 5, batch_index=1))
    assert missing.on_read("a", MessageId(1, 5, batch_index=2))


def test_what_was_read_before_counts() -> None:
    assert CatchUp([TopicMessageId("a", 1, 5)], {"a": MessageId(1, 5)}).is_done
    assert not CatchUp([TopicMessageId("a", 1, 5)], {"a": MessageId(1, 4)}).is_done
