from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    ConsumerNotFoundError,
    InvalidTopicNameError,
    NotAllowedError,
    PersistenceError,
    ServiceMetadataError,
    ServiceNotReadyError,
    StorageError,
    TopicNotFoundError,
    UnknownServiceError,
)
from pulsar_py.common.loops.work import MAX_HOLDERS_A_TURN, MAX_UNITS
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAck,
    CommandCloseConsumer,
    CommandConsumerStats,
    CommandFlow,
    CommandGetLastMessageId,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSubscribe,
    CommandUnsubscribe,
    KeyValue,
    MessageIdData,
)
from pulsar_py.server.handlers.handle_consume import handle_subscribe
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.connection.standins import Client, Server, StandInConsumer, settle
from tests.unit.server.topics.rig import Rig, entry, send
from tests.unit.settings.parts import connect

MAX = 2**64 - 1


def subscribe(**fields: object) -> CommandSubscribe:
    arguments = {
        "topic": "t",
        "subscription": "s",
        "subType": CommandSubscribe.Shared,
        "consumer_id": 1,
        "request_id": 1,
    }
    return CommandSubscribe(**arguments | fields)  # type: ignore[arg-type]


def flow(permits: int) -> CommandFlow:
    return CommandFlow(consumer_id=1, messagePermits=permits)


def ack(**fields: object) -> CommandAck:
    arguments = {"consumer_id": 1, "ack_type": CommandAck.Individual}
    return CommandAck(**arguments | fields)  # type: ignore[arg-type]


async def consuming(server: Server) -> tuple[Client, StandInConsumer]:
    client = await server.connect()
    await client.asks(subscribe())
    return client, server.topic().consumers[0]


async def test_consumer_is_created_and_gets_its_permits(server: Server) -> None:
    client, consumer = await consuming(server)
    client.sends(flow(5), flow(2))
    assert consumer.permits == [5, 2]
    assert consumer.request.subscription_name == "s"
    assert consumer.request.connection is client.cnx


async def test_permits_in_the_same_write_are_honoured(server: Server) -> None:
    client = await server.connect()
    client.sends(subscribe(), flow(5), flow(3))
    await client.receives()
    assert server.topic().consumers[0].permits == [8]


async def test_flow_of_nothing_closes_the_connection(server: Server) -> None:
    client = await server.connect()
    client.sends(subscribe(), flow(0))
    assert client.is_closed


async def test_consumer_that_is_there_already_succeeds_again(server: Server) -> None:
    client, _ = await consuming(server)
    assert (await client.asks(subscribe(request_id=2))).request_id == 2
    assert len(server.topic().consumers) == 1


async def test_id_of_a_consumer_still_being_created_is_refused(server: Server) -> None:
    client = await server.connect()
    client.sends(subscribe(), subscribe(request_id=2))
    refused, accepted = await client.receives()
    assert (refused.request_id, refused.error) == (2, ServiceNotReadyError.code)
    assert accepted.request_id == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "a/b"}, InvalidTopicNameError.code),
        ({"metadata": [KeyValue(key="k", value="v" * 1024)]}, ServiceMetadataError.code),
        ({"force_topic_creation": False}, TopicNotFoundError.code),
    ],
)
async def test_bad_subscribes_are_refused(
    server: Server, fields: dict[str, object], code: int
) -> None:
    client = await server.connect()
    error = await client.asks(subscribe(**fields))
    assert (error.request_id, error.error) == (1, code)
    assert not client.cnx.pending_consumers


async def test_closing_while_created_abandons_the_result(server: Server) -> None:
    client = await server.connect()
    server.topics.gate.clear()
    client.sends(subscribe())
    answer = await client.asks(CommandCloseConsumer(consumer_id=1, request_id=2))
    assert answer.request_id == 2
    server.topics.gate.set()
    assert not await client.receives()
    assert not server.topic().consumers
    assert (await client.asks(subscribe(request_id=3))).request_id == 3


async def test_closing_takes_the_consumer_from_its_subscription(server: Server) -> None:
    client, consumer = await consuming(server)
    for request_id in (2, 3):
        command = CommandCloseConsumer(consumer_id=1, request_id=request_id)
        assert (await client.asks(command)).request_id == request_id
    assert consumer.is_closed


async def test_acks_are_answered_only_on_request(server: Server) -> None:
    client, consumer = await consuming(server)
    client.sends(ack())
    assert not await client.receives()
    answer = await client.asks(ack(request_id=5))
    assert (answer.consumer_id, answer.request_id, answer.HasField("error")) == (1, 5, False)
    assert len(consumer.acknowledged) == 2


async def test_the_answer_to_an_ack_follows_the_write_of_the_cursor(server: Server) -> None:
    client, consumer = await consuming(server)
    consumer.subscription.holds_receipts = True
    client.sends(ack(request_id=5))
    assert not await client.receives()
    ((on_durable, number),) = consumer.subscription.waiting_receipts
    on_durable([number], None)
    (answer,) = await client.receives()
    assert answer.request_id == 5


async def test_an_ack_that_could_not_be_written_is_answered_with_an_error(server: Server) -> None:
    client, consumer = await consuming(server)
    consumer.subscription.write_error = StorageError("the disk is full")
    answer = await client.asks(ack(request_id=5))
    assert (answer.request_id, answer.error) == (5, PersistenceError.code)
    assert "the disk is full" in answer.message


async def test_ack_that_fails_says_why(server: Server) -> None:
    client, consumer = await consuming(server)
    consumer.error = UnknownServiceError("broken")
    client.sends(ack())
    answer = await client.asks(ack(request_id=5))
    assert (answer.request_id, answer.error) == (5, UnknownServiceError.code)


def group(**fields: object) -> CommandAck:
    """An ACK of twenty neighbours, as clients send it."""
    ids = [MessageIdData(ledgerId=3, entryId=entry_id) for entry_id in range(200, 220)]
    return ack(message_id=ids, **fields)


async def test_a_group_of_neighbours_goes_to_the_consumer_as_it_is(server: Server) -> None:
    client, consumer = await consuming(server)
    client.sends(group())
    assert not await client.receives()
    answer = await client.asks(group(request_id=5))
    assert (answer.consumer_id, answer.request_id, answer.HasField("error")) == (1, 5, False)
    assert not consumer.acknowledged
    for positions in consumer.acknowledged_whole:
        assert positions.ledger_id == 3
        assert positions.entry_ids == range(200, 220)
    assert len(consumer.acknowledged_whole) == 2


async def test_a_group_that_fails_says_why(server: Server) -> None:
    client, consumer = await consuming(server)
    consumer.error = UnknownServiceError("broken")
    client.sends(group())
    answer = await client.asks(group(request_id=5))
    assert (answer.request_id, answer.error) == (5, UnknownServiceError.code)


async def test_the_answer_to_a_group_follows_the_write_of_the_cursor(server: Server) -> None:
    client, consumer = await consuming(server)
    consumer.subscription.write_error = StorageError("the disk is full")
    answer = await client.asks(group(request_id=5))
    assert (answer.request_id, answer.error) == (5, PersistenceError.code)


async def test_who_needs_commands_gets_groups_as_commands(server: Server) -> None:
    client, consumer = await consuming(server)
    consumer.needs_commands = True
    client.sends(group(request_id=5))
    assert consumer.acknowledged == [group(request_id=5)]
    assert not consumer.acknowledged_whole


async def test_a_group_of_an_unknown_consumer_is_dropped(server: Server) -> None:
    client = await server.connect()
    client.sends(group(request_id=5))
    assert not await client.receives()
    assert not client.is_closed


async def test_a_group_before_the_handshake_ends_the_connection(server: Server) -> None:
    client = server.open()
    client.sends(group())
    await client.receives()
    assert client.is_closed


async def test_a_group_that_many_consumers_may_hold_is_served_in_turns(server: Server) -> None:
    client, consumer = await consuming(server)
    consumer.subscription.consumers = [consumer] * (MAX_HOLDERS_A_TURN // 20 + 1)
    client.sends(group())
    assert not consumer.acknowledged
    await settle()
    assert sum(len(each.message_id) for each in consumer.acknowledged) == 20
    assert not consumer.acknowledged_whole


@pytest.mark.parametrize("half", ["txnid_least_bits", "txnid_most_bits"])
async def test_half_a_transaction_id_makes_an_ack_transactional(server: Server, half: str) -> None:
    client, consumer = await consuming(server)
    answer = await client.asks(ack(request_id=5, **{half: 1}))
    assert answer.error == NotAllowedError.code
    assert consumer.acknowledged == []


async def test_transactional_acks_are_refused(server: Server) -> None:
    client, consumer = await consuming(server)
    client.sends(ack(txnid_least_bits=1, txnid_most_bits=2))
    answer = await client.asks(ack(request_id=5, txnid_least_bits=1, txnid_most_bits=2))
    assert (answer.error, answer.txnid_most_bits) == (NotAllowedError.code, 2)
    assert not consumer.acknowledged


async def test_redelivery_reaches_the_consumer(server: Server) -> None:
    client, consumer = await consuming(server)
    client.sends(CommandRedeliverUnacknowledgedMessages(consumer_id=1, consumer_epoch=4))
    assert [each.consumer_epoch for each in consumer.redelivered] == [4]


async def test_what_has_no_answer_is_dropped_for_unknown_consumers(server: Server) -> None:
    client = await server.connect()
    client.sends(flow(0), ack(request_id=5), CommandRedeliverUnacknowledgedMessages(consumer_id=1))
    assert not await client.receives()
    assert not client.is_closed


@pytest.mark.parametrize(
    "command",
    [
        CommandUnsubscribe(consumer_id=1, request_id=4),
        CommandSeek(consumer_id=1, request_id=4, message_publish_time=5),
        CommandGetLastMessageId(consumer_id=1, request_id=4),
    ],
)
async def test_requests_for_unknown_consumers_are_refused(
    server: Server, command: CommandSeek
) -> None:
    client = await server.connect()
    error = await client.asks(command)
    assert (error.request_id, error.error) == (4, ServiceMetadataError.code)


async def test_unsubscribing_ends_the_consumer(server: Server) -> None:
    client, consumer = await consuming(server)
    consumer.subscription.error = ServiceMetadataError("others are connected")
    error = await client.asks(CommandUnsubscribe(consumer_id=1, request_id=4))
    assert error.error == ServiceMetadataError.code
    assert 1 in client.cnx.consumers
    consumer.subscription.error = None
    answer = await client.asks(CommandUnsubscribe(consumer_id=1, request_id=5, force=True))
    assert answer.request_id == 5
    assert 1 not in client.cnx.consumers
    assert consumer.subscription.calls == [("unsubscribe", False), ("unsubscribe", True)]


async def test_seeking_by_id_or_time_and_id_wins(server: Server) -> None:
    client, consumer = await consuming(server)
    earliest = MessageIdData(ledgerId=MAX, entryId=MAX)
    batch = MessageIdData(ledgerId=3, entryId=4, ack_set=[6])
    for command in (
        CommandSeek(consumer_id=1, request_id=4, message_id=earliest, message_publish_time=5),
        CommandSeek(consumer_id=1, request_id=4, message_id=batch),
        CommandSeek(consumer_id=1, request_id=4, message_publish_time=5),
    ):
        assert (await client.asks(command)).request_id == 4
    assert consumer.subscription.calls == [
        ("reset_to_position", EARLIEST, None),
        ("reset_to_position", Position(3, 4), [6]),
        ("reset_to_time", 5),
    ]


async def test_seeking_nowhere_or_in_vain_is_an_error(server: Server) -> None:
    client, consumer = await consuming(server)
    error = await client.asks(CommandSeek(consumer_id=1, request_id=4))
    assert error.error == ServiceMetadataError.code
    consumer.subscription.error = UnknownServiceError("broken")
    error = await client.asks(CommandSeek(consumer_id=1, request_id=5, message_publish_time=1))
    assert (error.request_id, error.error) == (5, UnknownServiceError.code)


async def test_last_message_id_of_a_topic_without_messages(server: Server) -> None:
    client, _ = await consuming(server)
    answer = await client.asks(CommandGetLastMessageId(consumer_id=1, request_id=4))
    last = answer.last_message_id
    assert (answer.request_id, last.ledgerId, last.entryId, last.batch_index) == (4, MAX, MAX, -1)


async def test_last_message_id_is_answered_though_the_consumer_closes_meanwhile(
    server: Server,
) -> None:
    client, _ = await consuming(server)
    client.sends(CommandGetLastMessageId(consumer_id=1, request_id=4))
    client.sends(CommandCloseConsumer(consumer_id=1, request_id=5))
    await settle()
    assert {answer.request_id for answer in await client.receives()} == {4, 5}


async def test_stats_of_an_unknown_consumer_are_refused_in_their_answer(server: Server) -> None:
    client = await server.connect()
    answer = await client.asks(CommandConsumerStats(consumer_id=1, request_id=4))
    assert (answer.request_id, answer.error_code) == (4, ConsumerNotFoundError.code)


async def test_consumer_closed_by_the_broker_is_unknown(server: Server) -> None:
    client, consumer = await consuming(server)
    client.cnx.consumer_closed_by_broker(1)
    (closed,) = await client.receives()
    assert (closed.consumer_id, closed.request_id) == (1, MAX)
    client.sends(flow(5))
    await settle()
    assert not consumer.permits
    assert not consumer.is_closed


async def test_last_message_id_is_the_last_one_that_may_be_dispatched(
    virtual_clock: VirtualClock,
) -> None:
    """Held back behind a message, in front of a batch, behind a marker, at the begin, and not."""
    async with Rig(virtual_clock) as rig:
        topic = await rig.persistent()
        producer = await rig.producer(topic, rig.cnx())
        for n, data in enumerate(
            [entry(0), entry(1, marker_type=21), entry(2), entry(3, num_messages_in_batch=5)]
        ):
            send(producer, n, data, is_marker=n == 1)
        await producer.close()
        client = await connect(rig)
        await client.asks(
            CommandSubscribe(
                topic="t",
                subscription="s",
                subType=CommandSubscribe.Exclusive,
                consumer_id=1,
                request_id=1,
            )
        )
        ledger_id = topic.last_message_position().ledger_id
        told = []
        for held_back_after in (-1, 0, 1, 2, 3, None):
            topic.move_max_read_position(
                LATEST if held_back_after is None else Position(ledger_id, held_back_after)
            )
            answer = await client.asks(CommandGetLastMessageId(consumer_id=1, request_id=4))
            last = answer.last_message_id
            told.append((last.entryId, last.batch_index))
        assert told == [(MAX, -1), (0, -1), (0, -1), (2, -1), (3, 4), (3, 4)]


@pytest.mark.parametrize("where", ["metadata", "subscription_properties", "hash_ranges"])
async def test_what_a_subscribe_holds_is_asserted_to_be_little(server: Server, where: str) -> None:
    """Larger commands are refused before they get here."""
    client = await server.connect()
    command = subscribe()
    if where == "hash_ranges":
        for number in range(MAX_UNITS + 1):
            command.keySharedMeta.hashRanges.add(start=number, end=number)
    else:
        for _ in range(MAX_UNITS + 1):
            getattr(command, where).add(key="", value="")
    with pytest.raises(AssertionError, match="10001 units at once"):
        handle_subscribe(client.cnx, command)


async def test_no_consumer_is_let_in_once_it_is_doubtful_who_owns_the_topic(
    server: Server,
) -> None:
    client = await server.connect()
    server.namespaces.doubt = ServiceNotReadyError("in doubt")
    error = await client.asks(subscribe())
    assert (error.request_id, error.error) == (1, ServiceNotReadyError.code)
    assert server.topic().consumers[0].is_closed
    assert not client.cnx.consumers
    server.namespaces.doubt = None
    assert (await client.asks(subscribe(request_id=2))).request_id == 2
