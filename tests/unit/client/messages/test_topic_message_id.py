"""Ids that know their topic: routing, seeking, merging."""

from __future__ import annotations

import pytest

from pulsar_py.client.messages.message import Message
from pulsar_py.client.messages.topic_message_id import (
    MultiMessageId,
    TopicMessageId,
    group_by_topic,
    last_of,
    newest_by_topic,
    route,
    seek_targets,
    topic_of,
)
from pulsar_py.common.errors import InvalidMessageError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId

A = "persistent://public/default/a"
B = "persistent://public/default/b"
PARTITIONS = [f"{A}-partition-{index}" for index in range(3)]


def test_an_id_with_its_topic_equals_the_plain_one_but_not_another_topics() -> None:
    plain = MessageId(1, 2, batch_index=3, batch_size=4)
    ours = TopicMessageId.of(A, plain)
    assert ours == plain
    assert hash(ours) == hash(plain)
    assert ours.serialize() == plain.serialize()
    assert ours != TopicMessageId.of(B, plain)
    assert ours == TopicMessageId.of(A, plain)


def test_ids_of_one_topic_have_an_order_and_those_of_two_have_none() -> None:
    assert TopicMessageId(A, 1, 2) < TopicMessageId(A, 1, 3)
    assert TopicMessageId(A, 1, 2) < MessageId(1, 3)
    with pytest.raises(TypeError):
        assert TopicMessageId(A, 1, 2) < TopicMessageId(B, 1, 3)


def test_received_ids_tell_their_topic_and_plain_ones_do_not() -> None:
    assert topic_of(Message.of(b"", topic=B).message_id()) == B
    assert topic_of(TopicMessageId(A, 1, 2)) == A
    assert topic_of(MessageId(1, 2)) is None


def test_ids_are_grouped_and_merged_by_topic() -> None:
    ids = [TopicMessageId(A, 1, 2), TopicMessageId(B, 1, 9), TopicMessageId(A, 1, 1)]
    assert group_by_topic(ids) == {A: [ids[0], ids[2]], B: [ids[1]]}
    assert newest_by_topic(ids) == MultiMessageId({A: ids[0], B: ids[1]})
    with pytest.raises(InvalidMessageError, match="1:2:-1 has no topic"):
        group_by_topic([MessageId(1, 2)])


def test_positions_of_several_topics_are_a_value() -> None:
    value = MultiMessageId({B: MessageId(2, 2), A: MessageId(1, 1)})
    assert list(value) == [A, B]
    assert len(value) == 2
    assert value[B] == MessageId(2, 2)
    assert hash(value) == hash(MultiMessageId({A: MessageId(1, 1), B: MessageId(2, 2)}))
    assert repr(value) == f"MultiMessageId({A}=1:1:-1, {B}=2:2:-1)"


def test_an_id_goes_to_its_topic() -> None:
    assert route(TopicMessageId(B, 1, 2), [A, B]) == B
    assert route(Message.of(b"", topic=A).message_id(), [A, B]) == A


def test_a_plain_id_goes_to_the_only_topic_or_by_its_partition() -> None:
    assert route(MessageId(1, 2), [A]) == A
    assert route(MessageId(1, 2, partition_index=2), PARTITIONS) == PARTITIONS[2]


@pytest.mark.parametrize(
    ("message_id", "topics", "why"),
    [
        (MessageId(1, 2), [A, B], "has no topic, and the consumer has 2"),
        (
            MessageId(1, 2, partition_index=1),
            [*PARTITIONS, B],
            "has no topic, and the consumer has 4",
        ),
        (MessageId(1, 2, partition_index=7), PARTITIONS, "none of the consumer's 3 topics"),
        (TopicMessageId(B, 1, 2), [A], "is of persistent://public/default/b, which is none"),
    ],
)
def test_an_id_that_belongs_nowhere_is_refused(
    message_id: MessageId, topics: list[str], why: str
) -> None:
    with pytest.raises(InvalidMessageError, match=why):
        route(message_id, topics)


@pytest.mark.parametrize("target", [EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, 1_700_000_000_000])
def test_ends_and_times_mean_all_topics(target: MessageId | int) -> None:
    assert seek_targets(target, [A, B]) == {A: target, B: target}


def test_an_id_moves_its_own_topic_alone() -> None:
    target = TopicMessageId(B, 1, 2)
    assert seek_targets(target, [A, B]) == {B: target}


def test_a_mapping_and_a_function_say_topic_by_topic() -> None:
    ids = {A: MessageId(1, 2), B: MessageId(3, 4)}
    assert seek_targets(MultiMessageId(ids), [A, B]) == ids
    assert seek_targets(lambda topic: 5 if topic == A else None, [A, B]) == {A: 5}
    with pytest.raises(InvalidMessageError):
        seek_targets(ids, [A])


def test_last_ids_tell_their_topics() -> None:
    assert [topic_of(each) for each in last_of({A: MessageId(1, 2), B: MessageId(1, 2)})] == [A, B]
