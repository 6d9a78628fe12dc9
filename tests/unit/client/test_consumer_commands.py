from __future__ import annotations

from pulsar_py.client import consumer_commands
from pulsar_py.client.ack_grouping import PendingAcks
from pulsar_py.client.consumer_config import ConsumerConfig
from pulsar_py.client.enums import ConsumerType, InitialPosition, KeySharedMode, SubscriptionMode
from pulsar_py.client.key_shared_policy import ConsumerKeySharedPolicy
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandSubscribe,
    MessageIdData,
)
from pulsar_py.wire.commands import read_command


def command_of(frame: bytes) -> BaseCommand:
    return read_command(frame[8:])


def subscribe(start: MessageId | None = None, **options: object) -> CommandSubscribe:
    return command_of(
        consumer_commands.subscribe(
            ConsumerConfig(**options),
            topic="t",
            subscription_name="s",
            consumer_name="c",
            consumer_id=3,
            request_id=4,
            consumer_epoch=5,
            start_message_id=start,
            schema=None,
        )
    ).subscribe


def test_subscribe_says_what_was_configured() -> None:
    found = subscribe(
        consumer_type=ConsumerType.Failover,
        initial_position=InitialPosition.Earliest,
        priority_level=2,
        is_read_compacted=True,
        properties={"a": "b"},
        subscription_properties={"c": "d"},
        force_topic_creation=False,
        replicate_subscription_state_enabled=True,
    )
    assert (found.topic, found.subscription, found.consumer_name) == ("t", "s", "c")
    assert (found.consumer_id, found.request_id, found.consumer_epoch) == (3, 4, 5)
    assert found.subType == CommandSubscribe.Failover
    assert found.initialPosition == CommandSubscribe.Earliest
    assert (found.priority_level, found.read_compacted, found.durable) == (2, True, True)
    assert [(each.key, each.value) for each in found.metadata] == [("a", "b")]
    assert [(each.key, each.value) for each in found.subscription_properties] == [("c", "d")]
    assert found.replicate_subscription_state
    assert not found.force_topic_creation
    assert not found.HasField("keySharedMeta")


def test_only_non_durable_ones_have_a_start() -> None:
    assert not subscribe(MessageId(1, 2)).HasField("start_message_id")
    mode = {"subscription_mode": SubscriptionMode.NonDurable}
    found = subscribe(MessageId(1, 2, batch_index=3, batch_size=9), **mode)
    assert found.start_message_id == MessageIdData(ledgerId=1, entryId=2, batch_index=3)
    assert subscribe(EARLIEST_MESSAGE_ID, **mode).start_message_id.ledgerId == 2**64 - 1
    chunked = MessageId(1, 9, first_chunk=MessageId(1, 5))
    assert subscribe(chunked, **mode).start_message_id.entryId == 5
    rollback = subscribe(start_message_rollback_duration_seconds=60, **mode)
    assert rollback.start_message_rollback_duration_sec == 60


def test_key_shared_always_says_how() -> None:
    found = subscribe(consumer_type=ConsumerType.KeyShared)
    assert found.HasField("keySharedMeta")
    sticky = ConsumerKeySharedPolicy(KeySharedMode.Sticky, sticky_ranges=[(1, 2)])
    found = subscribe(consumer_type=ConsumerType.KeyShared, key_shared_policy=sticky)
    assert found.keySharedMeta.hashRanges[0].end == 2


def test_acks_of_a_flush() -> None:
    pending = PendingAcks(((1, 5), 0b100), {(1, 7): 0, (2, 0): 1 << 64})
    frames = consumer_commands.acks(3, pending, iter([10, 11]))
    cumulative, individual = (command_of(frame).ack for frame in frames)
    assert cumulative.ack_type == CommandAck.Cumulative
    assert list(cumulative.message_id[0].ack_set) == [0b100]
    assert (cumulative.request_id, individual.request_id) == (10, 11)
    ids = [(each.ledgerId, each.entryId, list(each.ack_set)) for each in individual.message_id]
    assert ids == [(1, 7, []), (2, 0, [0, 1])]
    without = consumer_commands.acks(3, PendingAcks(None, {(1, 7): 0}), None)
    assert not command_of(without[0]).ack.HasField("request_id")
    before_first = consumer_commands.acks(3, PendingAcks(((1, -1), 0), {}), None)
    assert command_of(before_first[0]).ack.message_id[0].entryId == 2**64 - 1


def test_an_unusable_entry_is_acknowledged_with_the_reason() -> None:
    found = command_of(consumer_commands.validation_ack(3, (1, 2), CommandAck.ChecksumMismatch)).ack
    assert found.validation_error == CommandAck.ChecksumMismatch
    assert found.message_id[0].entryId == 2


def test_redeliveries_are_cut_into_commands() -> None:
    frames = consumer_commands.redeliver(3, [(1, each) for each in range(2500)])
    counts = [
        len(command_of(frame).redeliverUnacknowledgedMessages.message_ids) for frame in frames
    ]
    assert counts == [1000, 1000, 500]
    (all_of_them,) = consumer_commands.redeliver(3, (), consumer_epoch=2)
    found = command_of(all_of_them).redeliverUnacknowledgedMessages
    assert (len(found.message_ids), found.consumer_epoch) == (0, 2)


def test_seek_into_a_batch_and_to_the_first_chunk() -> None:
    found = consumer_commands.seek_id(MessageId(1, 2, batch_index=2, batch_size=4))
    assert list(found.ack_set) == [0b1100]
    assert not consumer_commands.seek_id(MessageId(1, 2, batch_index=0, batch_size=4)).ack_set
    assert consumer_commands.seek_id(MessageId(1, 9, first_chunk=MessageId(1, 5))).entryId == 5
