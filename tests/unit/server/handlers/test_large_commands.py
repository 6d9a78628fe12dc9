"""Commands of many bytes: in parts and in order, or refused with an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.common.loops.work import MAX_IDS_A_TURN, MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandAddPartitionToTxn,
    CommandLookupTopic,
    CommandPing,
    CommandPong,
    CommandProducer,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSubscribe,
    ServerError,
)
from pulsar_py.wire.commands import encode
from tests.unit.server.connection.standins import TOPIC, Client, Server, send_frame, with_producer

IDS = 25_000


def subscribe() -> CommandSubscribe:
    return CommandSubscribe(
        topic=TOPIC, subscription="s", subType=CommandSubscribe.Shared, consumer_id=1, request_id=1
    )


async def with_consumer(server: Server) -> tuple[Client, Any]:
    client = await server.connect()
    await client.asks(subscribe())
    return client, client.cnx.consumers[1]


async def answers_to(client: Client) -> list[Any]:
    """What came, once the connection is read again."""
    for _ in range(10 * IDS // MAX_IDS_A_TURN):
        if client.cnx.is_reading_paused:
            await asyncio.sleep(0)
    return await client.receives()


def ack_of(count: int, **fields: Any) -> CommandAck:
    ack = CommandAck(consumer_id=1, ack_type=CommandAck.Individual, request_id=9, **fields)
    for entry_id in range(count):
        ack.message_id.add(ledgerId=1, entryId=entry_id)
    return ack


async def test_ack_of_many_ids_is_served_in_parts_and_answered_once(server: Server) -> None:
    client, consumer = await with_consumer(server)
    client.sends(ack_of(IDS))
    assert not consumer.acknowledged, "nothing of it before others had a turn"
    (answer,) = await answers_to(client)
    assert (answer.DESCRIPTOR.name, answer.request_id) == ("CommandAckResponse", 9)
    assert not answer.HasField("error")
    assert max(len(part.message_id) for part in consumer.acknowledged) <= MAX_IDS_A_TURN
    entry_ids = [each.entryId for part in consumer.acknowledged for each in part.message_id]
    assert entry_ids == list(range(IDS))


async def test_redeliver_of_many_ids_is_served_in_parts(server: Server) -> None:
    client, consumer = await with_consumer(server)
    command = CommandRedeliverUnacknowledgedMessages(consumer_id=1, consumer_epoch=5)
    for entry_id in range(IDS):
        command.message_ids.add(ledgerId=1, entryId=entry_id)
    client.sends(command)
    assert await answers_to(client) == []
    parts = consumer.redelivered
    assert max(len(part.message_ids) for part in parts) <= MAX_IDS_A_TURN
    assert {part.consumer_epoch for part in parts} == {5}
    assert [each.entryId for part in parts for each in part.message_ids] == list(range(IDS))


async def test_what_comes_behind_a_long_command_waits_for_it(server: Server) -> None:
    client, producer = await with_producer(server)
    client.sends(subscribe())
    await answers_to(client)
    order: list[str] = []
    consumer = client.cnx.consumers[1]
    take = consumer.acknowledge
    consumer.acknowledge = lambda part: order.append("ack") or take(part)  # type: ignore[union-attr]
    producer.publish_run = lambda sends: order.extend("send" for _ in sends)  # type: ignore[method-assign]
    data = encode(ack_of(IDS)) + send_frame() + encode(CommandPing())
    client.cnx.data_received(data)
    assert client.transport.is_reading_paused
    client.cnx.data_received(send_frame())
    answers = await answers_to(client)
    assert order == ["ack"] * (IDS // MAX_IDS_A_TURN) + ["send", "send"]
    assert [each.DESCRIPTOR.name for each in answers] == ["CommandAckResponse", "CommandPong"]
    assert not client.transport.is_reading_paused


async def test_other_connections_are_served_between_the_parts(server: Server) -> None:
    client, consumer = await with_consumer(server)
    other = await server.connect()
    client.sends(ack_of(IDS))
    seen = []
    take = consumer.acknowledge

    def acknowledge(part: CommandAck) -> bool:
        other.sends(CommandPing())
        seen.append(other.transport.writes_count)
        return bool(take(part))

    consumer.acknowledge = acknowledge
    await answers_to(client)
    assert len(seen) == len(set(seen)), "each PONG was written before the next part"


async def test_first_part_that_fails_is_the_answer_and_the_end(server: Server) -> None:
    client, consumer = await with_consumer(server)
    consumer.error = NotAllowedError("no")
    (answer,) = await _asked(client, ack_of(IDS))
    assert (answer.error, answer.message) == (ServerError.NotAllowedError, "no")


async def test_ids_behind_one_that_ends_the_command_are_ignored(server: Server) -> None:
    client, consumer = await with_consumer(server)
    consumer.acknowledge = lambda part: consumer.acknowledged.append(part) or False
    (answer,) = await _asked(client, ack_of(IDS))
    assert not answer.HasField("error")
    assert len(consumer.acknowledged) == 1


async def test_cumulative_ack_of_many_ids_is_ignored_as_a_whole(server: Server) -> None:
    client, consumer = await with_consumer(server)
    command = ack_of(IDS)
    command.ack_type = CommandAck.Cumulative
    (answer,) = await _asked(client, command)
    assert not answer.HasField("error")
    assert consumer.acknowledged == []


async def test_transactional_ack_of_many_ids_is_refused(server: Server) -> None:
    client, consumer = await with_consumer(server)
    (answer,) = await _asked(client, ack_of(IDS, txnid_most_bits=0, txnid_least_bits=1))
    assert answer.error == ServerError.NotAllowedError
    assert consumer.acknowledged == []


async def test_consumer_closed_meanwhile_ends_the_command(server: Server) -> None:
    client, consumer = await with_consumer(server)

    def acknowledge(part: CommandAck) -> bool:
        consumer.acknowledged.append(part)
        consumer.is_closed = True
        del client.cnx.consumers[1]
        return True

    consumer.acknowledge = acknowledge
    assert await _asked(client, ack_of(IDS)) == []
    assert len(consumer.acknowledged) == 1


async def test_connection_lost_meanwhile_ends_the_command(server: Server) -> None:
    client, consumer = await with_consumer(server)
    client.sends(ack_of(IDS))
    client.cnx.close()
    await answers_to(client)
    assert consumer.acknowledged == []


async def test_broken_command_of_many_bytes_closes_the_connection(server: Server) -> None:
    client, consumer = await with_consumer(server)
    command = ack_of(IDS)
    command.ClearField("consumer_id")
    body = command.SerializePartialToString()
    data = b"\x08" + bytes([BaseCommand.ACK]) + b"\x52" + _varint(len(body)) + body
    client.cnx.data_received((len(data) + 4).to_bytes(4) + len(data).to_bytes(4) + data)
    await answers_to(client)
    assert client.is_closed
    assert consumer.acknowledged == []


def _varint(number: int) -> bytes:
    return bytes([number & 127 | 128, number >> 7 & 127 | 128, number >> 14])


def _many(command: Any, field: str, **values: Any) -> Any:
    for _ in range(MAX_UNITS):
        getattr(command, field).add(**values)
    return command


def _ranges() -> CommandSubscribe:
    command = subscribe()
    command.keySharedMeta.keySharedMode = 1  # type: ignore[assignment]
    _many(command.keySharedMeta, "hashRanges", start=1, end=2)
    return command


def _seek(words_count: int) -> CommandSeek:
    command = CommandSeek(consumer_id=1, request_id=1)
    command.message_id.ledgerId = command.message_id.entryId = 1
    command.message_id.ack_set.extend([1] * words_count)
    return command


TOO_MUCH = {
    "metadata of a consumer": lambda: _many(subscribe(), "metadata", key="", value=""),
    "subscription properties": lambda: _many(
        subscribe(), "subscription_properties", key="k", value="v"
    ),
    "hash ranges": _ranges,
    "metadata of a producer": lambda: _many(
        CommandProducer(topic=TOPIC, producer_id=1, request_id=1), "metadata", key="k", value="v"
    ),
    "properties of a lookup": lambda: _many(
        CommandLookupTopic(topic=TOPIC, request_id=1), "properties", key="k", value="v"
    ),
    "partitions of a transaction": lambda: CommandAddPartitionToTxn(
        request_id=1, partitions=["p"] * (MAX_UNITS + 1)
    ),
    "ack set of a seek": lambda: _seek(100_000),
}


@pytest.mark.parametrize("what", TOO_MUCH)
async def test_more_than_may_be_looked_at_is_refused_with_an_answer(
    server: Server, what: str
) -> None:
    client = await server.connect()
    (answer,) = await _asked(client, TOO_MUCH[what]())
    assert (answer.request_id, answer.error) == (1, ServerError.NotAllowedError)
    assert f"{MAX_UNITS} that are allowed" in answer.message
    assert not client.is_closed


async def test_ack_with_an_absurd_ack_set_is_answered(server: Server) -> None:
    client, consumer = await with_consumer(server)
    command = ack_of(1)
    command.message_id[0].ack_set.extend([1] * 100_000)
    (answer,) = await _asked(client, command)
    assert (answer.DESCRIPTOR.name, answer.error) == (
        "CommandAckResponse",
        ServerError.NotAllowedError,
    )
    assert consumer.acknowledged == []


async def test_seek_with_more_words_than_a_batch_can_have_is_answered(server: Server) -> None:
    client, consumer = await with_consumer(server)
    (answer,) = await _asked(client, _seek(5000))
    assert answer.error == ServerError.NotAllowedError
    assert answer.message == "ack set of 5000 words, allowed are 4096"
    assert consumer.subscription.calls == []


async def test_long_texts_are_served_as_they_are(server: Server) -> None:
    client = await server.connect()
    command = subscribe()
    command.consumer_name = "n" * 500_000
    (answer,) = await _asked(client, command)
    assert answer.DESCRIPTOR.name == "CommandSuccess"


async def test_many_small_commands_of_one_read_leave_others_turns(server: Server) -> None:
    client, consumer = await with_consumer(server)
    client.cnx.data_received(encode(ack_of(500)) * 20)
    assert 0 < len(consumer.acknowledged) < 20
    answers = await answers_to(client)
    assert len(consumer.acknowledged) == len(answers) == 20


async def test_redelivery_of_everything_goes_in_turns_where_it_is_much(server: Server) -> None:
    client, consumer = await with_consumer(server)
    consumer.pending_acks = {(1, entry_id): 1 for entry_id in range(IDS)}
    asked: list[Any] = []
    consumer.redeliver = lambda _, positions: asked.append(positions)
    assert await _asked(client, CommandRedeliverUnacknowledgedMessages(consumer_id=1)) == []
    assert max(map(len, asked)) <= MAX_IDS_A_TURN
    assert [entry_id for some in asked for _, entry_id in some] == list(range(IDS))


async def _asked(client: Client, command: Any) -> list[Any]:
    client.sends(command)
    answers = await answers_to(client)
    assert not any(isinstance(each, CommandPong) for each in answers)
    return answers
