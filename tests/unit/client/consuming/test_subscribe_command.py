from __future__ import annotations

from pulsar_py.client.consuming import subscribe_command
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.key_shared_policy import ConsumerKeySharedPolicy
from pulsar_py.client.shared.enums import (
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    SubscriptionMode,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import CommandSubscribe, MessageIdData
from pulsar_py.wire.commands import read_command


def subscribe(start: MessageId | None = None, **options: object) -> CommandSubscribe:
    frame = subscribe_command.subscribe(
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
    return read_command(frame[8:]).subscribe


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
    rollback = subscribe(start_message_rollback_duration_seconds=60, **mode)
    assert rollback.start_message_rollback_duration_sec == 60


def test_key_shared_always_says_how() -> None:
    found = subscribe(consumer_type=ConsumerType.KeyShared)
    assert found.HasField("keySharedMeta")
    sticky = ConsumerKeySharedPolicy(KeySharedMode.Sticky, sticky_ranges=[(1, 2)])
    found = subscribe(consumer_type=ConsumerType.KeyShared, key_shared_policy=sticky)
    assert found.keySharedMeta.hashRanges[0].end == 2
