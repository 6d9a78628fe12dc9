from __future__ import annotations

from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.proto.PulsarApi_pb2 import CommandSubscribe, KeySharedMode
from pulsar_py.server.dispatch.subscribe_request import (
    NO_EPOCH,
    KeySharedMeta,
    SubscribeRequest,
    SubscriptionType,
)
from tests.dispatch_parts import FakeConnection


def command(**fields: object) -> CommandSubscribe:
    result = CommandSubscribe(
        topic="t", subscription="s", subType=CommandSubscribe.Shared, consumer_id=3, request_id=9
    )
    for name, value in fields.items():
        setattr(result, name, value)
    return result


def test_what_is_absent_has_the_protocols_default() -> None:
    connection = FakeConnection()
    request = SubscribeRequest.from_command(command(), connection)
    assert request == SubscribeRequest(
        connection=connection,
        consumer_id=3,
        subscription_name="s",
        subscription_type=SubscriptionType.SHARED,
    )
    assert request.consumer_epoch == NO_EPOCH
    assert request.is_durable
    assert request.force_topic_creation


def test_all_that_is_there_is_taken_over() -> None:
    wire = command(
        consumer_name="c",
        priority_level=2,
        durable=False,
        read_compacted=True,
        initialPosition=CommandSubscribe.Earliest,
        replicate_subscription_state=False,
        start_message_rollback_duration_sec=60,
        consumer_epoch=4,
    )
    wire.start_message_id.ledgerId = 5
    wire.start_message_id.entryId = 6
    wire.start_message_id.batch_index = 7
    wire.keySharedMeta.keySharedMode = KeySharedMode.STICKY
    wire.keySharedMeta.hashRanges.add(start=1, end=2)
    wire.metadata.add(key="k", value="v")
    wire.subscription_properties.add(key="p", value="q")
    request = SubscribeRequest.from_command(wire, FakeConnection(), role="r")
    assert (request.start_position, request.start_batch_index) == (Position(5, 6), 7)
    assert request.key_shared == KeySharedMeta(is_sticky=True, hash_ranges=((1, 2),))
    assert request.starts_at_earliest
    assert request.is_replicated is False
    assert not request.is_durable
    assert (request.metadata, request.subscription_properties) == ({"k": "v"}, {"p": "q"})
    assert (request.consumer_epoch, request.start_rollback_seconds) == (4, 60)
    assert (request.priority_level, request.consumer_name, request.role) == (2, "c", "r")


def test_the_earliest_id_is_unsigned_on_the_wire() -> None:
    wire = command(durable=False)
    wire.start_message_id.ledgerId = 2**64 - 1
    wire.start_message_id.entryId = 2**64 - 1
    assert SubscribeRequest.from_command(wire, FakeConnection()).start_position == EARLIEST


def test_types_have_the_wires_names() -> None:
    assert [each.wire_name for each in SubscriptionType] == [
        "Exclusive",
        "Shared",
        "Failover",
        "Key_Shared",
    ]


def test_a_request_is_wanted_until_its_connection_says_otherwise() -> None:
    assert SubscribeRequest.from_command(command(), FakeConnection()).is_wanted()
    closed = SubscribeRequest.from_command(command(), FakeConnection(), is_wanted=lambda: False)
    assert not closed.is_wanted()
