"""A producer's place at its broker: taken, lost, taken again; what waits is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.shared.enums import ProducerAccessMode
from pulsar_py.common.errors import (
    ClientTimeoutError,
    NotAllowedError,
    ProducerBlockedQuotaExceededExceptionError,
    ProducerFencedError,
    TopicTerminatedError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandTopicMigrated, ServerError
from pulsar_py.wire import commands
from tests.producer_parts import TOPIC, confirming, in_turn, payloads, receipt, sent
from tests.scripted_broker import Answer, BrokerEnd, ScriptedBroker, simulated, simulated_client


async def producer_of(client: Client, **options: Any) -> Producer:
    made = await client.create_producer(TOPIC, **options)
    assert isinstance(made, Producer)
    return made


def registrations(broker: ScriptedBroker) -> list[Any]:
    return [command.producer for command in broker.of(BaseCommand.PRODUCER)]


def granted(**options: Any) -> Answer:
    def answer(end: BrokerEnd, command: BaseCommand) -> bytes:
        return commands.producer_success(
            command.producer.request_id, command.producer.producer_name or "given", **options
        )

    return answer


def refused(code: ServerError.ValueType, text: str) -> Answer:
    return lambda end, command: commands.error(command.producer.request_id, code, text)


@simulated
async def test_the_first_registration_says_what_was_asked_for(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        await producer_of(
            client,
            producer_name="mine",
            properties={"a": "b"},
            access_mode=ProducerAccessMode.Exclusive,
            initial_subscription_name="sub",
        )
        (command,) = registrations(broker)
    assert command.topic == TOPIC
    assert command.producer_name == "mine"
    assert command.user_provided_producer_name
    assert command.epoch == 0
    assert [(each.key, each.value) for each in command.metadata] == [("a", "b")]
    assert command.producer_access_mode == 1
    assert command.initial_subscription_name == "sub"
    assert not command.HasField("topic_epoch")
    assert not command.HasField("schema")


@simulated
async def test_the_next_one_shows_what_the_broker_gave(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PRODUCER] = granted(topic_epoch=4)
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        assert producer.producer_name() == "given"
        broker.end.cut()
        await asyncio.sleep(1)
        first, second = registrations(broker)
        assert not first.HasField("producer_name")
        assert second.producer_name == "given"
        assert not second.user_provided_producer_name
        assert (second.epoch, second.topic_epoch) == (1, 4)
        assert producer.is_connected()


@simulated
async def test_pending_messages_are_sent_again_in_order(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = in_turn(confirming(), lambda end, command: None)
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        confirmed = await producer.send(b"0")
        pending = [producer.send_nowait(b"%d" % number) for number in (1, 2, 3)]
        await asyncio.sleep(0.1)
        broker.end.cut()
        await asyncio.sleep(0)
        pending.append(producer.send_nowait(b"4"))
        broker.script[BaseCommand.SEND] = confirming()
        assert [(await each).entry_id for each in pending] == [0, 1, 2, 3]
        assert confirmed.entry_id == 0
    arrived = [each[0] for each in payloads(broker)]
    assert arrived == [b"0", b"1", b"2", b"3", b"1", b"2", b"3", b"4"]
    assert [each.send.sequence_id for each in sent(broker)[4:]] == [1, 2, 3, 4]


@simulated
async def test_a_closed_producer_comes_back_on_the_same_connection(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        result = producer.send_nowait(b"x")
        await asyncio.sleep(0.1)
        broker.script[BaseCommand.SEND] = confirming()
        broker.end.push(commands.close_producer(registrations(broker)[0].producer_id, 2**64 - 1))
        assert (await result).entry_id == 0
        assert len(broker.ends) == 1
        assert payloads(broker) == [[b"x"], [b"x"]]


@simulated
async def test_the_sequence_goes_on_where_the_broker_knows_the_name(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PRODUCER] = granted(last_sequence_id=41)
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(client, producer_name="mine")
        assert producer.last_sequence_id() == 41
        await producer.send(b"x")
        assert sent(broker)[0].send.sequence_id == 42
        initial = await producer_of(client, initial_sequence_id=99)
        assert initial.last_sequence_id() == 99
        await initial.send(b"x")
        assert sent(broker)[1].send.sequence_id == 100


@simulated
async def test_receipts_in_a_row_end_messages_and_batches(broker: ScriptedBroker) -> None:
    """Some were given up meanwhile, and a batch has a sequence id that looks as if it followed."""
    async with simulated_client(broker) as client:
        options = {"batching_enabled": True, "batching_max_publish_delay_ms": 60_000}
        producer = await producer_of(client, send_timeout_millis=10_000, **options)
        given_up = producer.send_nowait(b"0")
        await asyncio.gather(producer.flush(), return_exceptions=True)
        results = []
        for number in (1, 2, 3):
            results.append(producer.send_nowait(b"%d" % number))
            producer.flush_soon()
            await asyncio.sleep(0.1)
        results += [producer.send_nowait(b"4"), producer.send_nowait(b"5")]
        producer.flush_soon()
        await asyncio.sleep(0.1)
        *alone, batch = [each.send for each in sent(broker)]
        assert [each.sequence_id for each in (*alone, batch)] == [0, 1, 2, 3, 4]
        broker.end.push(b"".join(receipt(each, each.sequence_id) for each in (*alone, batch)))
        ids = await asyncio.gather(*results)
        assert [each.entry_id for each in ids] == [1, 2, 3, 4, 4]
        assert isinstance(given_up.exception(), ClientTimeoutError)


@simulated
async def test_a_run_of_receipts_that_nobody_sent_for_closes_the_connection(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        result = producer.send_nowait(b"x")
        last = producer.send_nowait(b"y")
        await asyncio.sleep(0.1)
        first, second = [each.send for each in sent(broker)]
        ahead = receipt(second, 1).replace(b"\x10\x01", b"\x10\x02", 1)  # sequence id 2
        broker.script[BaseCommand.SEND] = confirming()
        broker.end.push(receipt(first, 0) + receipt(second, 1) + ahead)
        assert (await result).entry_id == 0
        assert (await last).entry_id == 1
        assert await producer.send(b"z")


@simulated
async def test_receipts_out_of_step_close_the_connection(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        result = producer.send_nowait(b"x")
        await asyncio.sleep(0.1)
        (first,) = sent(broker)
        first.send.sequence_id = 5
        broker.script[BaseCommand.SEND] = confirming()
        broker.end.push(receipt(first.send, 9))
        assert (await result).entry_id == 0
        assert len(broker.ends) == 2


async def send_one_by_one(
    broker: ScriptedBroker, producer: Producer, contents: Sequence[bytes]
) -> list[MessageId]:
    """Send each when the one before has its receipts, which come one by one."""
    ids = []
    for content in contents:
        before = len(sent(broker))
        result = producer.send_nowait(content)
        await asyncio.sleep(0.01)
        for entry_id, each in list(enumerate(sent(broker)))[before:]:
            broker.end.push(receipt(each.send, entry_id))
            await asyncio.sleep(0.01)
        ids.append(result.result())
    return ids


@simulated
async def test_receipts_that_come_one_by_one_end_messages_and_chunks(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker) as client:
        options = {"chunking_enabled": True, "chunk_max_message_size": 300}
        producer = await producer_of(client, **options)
        contents = [b"0", b"1", b"2" * 700, b"3", b"4"]
        ids = await send_one_by_one(broker, producer, contents)
        assert [each.entry_id for each in ids] == [0, 1, 4, 5, 6]
        assert ids[2].first_chunk.entry_id == 2
        assert producer.last_sequence_id() == 4
        assert producer.pending_count() == client.context.memory_limit.current_bytes == 0
        statistics = producer.statistics()
        assert statistics.total_receipts_received == 5
        assert 10 <= statistics.latency_max_millis < 40


@simulated
async def test_a_receipt_out_of_step_that_comes_alone_closes_the_connection(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        await send_one_by_one(broker, producer, [b"0", b"1"])
        result = producer.send_nowait(b"2")
        await asyncio.sleep(0.01)
        ahead = sent(broker)[-1].send
        ahead.sequence_id = 5
        broker.script[BaseCommand.SEND] = confirming()
        broker.end.push(receipt(ahead, 2))
        assert (await result).entry_id == 0
        assert len(broker.ends) == 2


@simulated
async def test_a_late_receipt_that_comes_alone_is_ignored(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client, send_timeout_millis=100)
        await send_one_by_one(broker, producer, [b"0", b"1"])
        late = producer.send_nowait(b"late")
        with pytest.raises(ClientTimeoutError):
            await late
        result = producer.send_nowait(b"x")
        await asyncio.sleep(0.01)
        *_, first, second = sent(broker)
        broker.end.push(receipt(first.send, 2))
        await asyncio.sleep(0.01)
        assert not result.done()
        broker.end.push(receipt(second.send, 3))
        assert (await result).entry_id == 3
        assert len(broker.ends) == 1


@simulated
async def test_a_late_receipt_is_ignored(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client, send_timeout_millis=100)
        late = producer.send_nowait(b"late")
        with pytest.raises(ClientTimeoutError):
            await late
        result = producer.send_nowait(b"x")
        await asyncio.sleep(0.01)
        first, second = sent(broker)
        broker.end.push(receipt(first.send, 7), receipt(second.send, 8))
        assert (await result).entry_id == 8
        assert len(broker.ends) == 1


def send_error(code: ServerError.ValueType, text: str = "no") -> Answer:
    def answer(end: BrokerEnd, command: BaseCommand) -> bytes:
        send = command.send
        return commands.send_error(send.producer_id, send.sequence_id, code, text)

    return answer


@simulated
async def test_what_is_not_allowed_fails_alone(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = in_turn(send_error(ServerError.NotAllowedError), confirming())
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        refused_one, next_one = producer.send_nowait(b"1"), producer.send_nowait(b"2")
        with pytest.raises(NotAllowedError, match=TOPIC):
            await refused_one
        assert (await next_one).entry_id == 0
        assert len(registrations(broker)) == 1


@pytest.mark.parametrize(
    "code",
    [ServerError.PersistenceError, ServerError.MetadataError, ServerError.ChecksumError],
)
def test_what_may_succeed_later_is_sent_again(code: ServerError.ValueType) -> None:
    @simulated
    async def run(broker: ScriptedBroker) -> None:
        broker.script[BaseCommand.SEND] = in_turn(send_error(code), confirming())
        async with simulated_client(broker) as client:
            producer = await producer_of(client)
            assert (await producer.send(b"x")).entry_id == 0
            assert payloads(broker) == [[b"x"], [b"x"]]
            assert len(registrations(broker)) == 2
            assert "CLOSE_PRODUCER" in broker.types()

    run()


@simulated
async def test_a_terminated_topic_ends_the_producer(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = send_error(ServerError.TopicTerminatedError)
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        results = [producer.send_nowait(b"1"), producer.send_nowait(b"2")]
        for each in results:
            with pytest.raises(TopicTerminatedError):
                await each
        with pytest.raises(TopicTerminatedError):
            producer.send_nowait(b"3")
        assert not producer.is_connected()
        await producer.close()


@simulated
async def test_a_fenced_producer_does_not_come_back(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PRODUCER] = in_turn(
        granted(), refused(ServerError.ProducerFenced, "another one")
    )
    async with simulated_client(broker) as client:
        producer = await producer_of(client, access_mode=ProducerAccessMode.Exclusive)
        result = producer.send_nowait(b"x")
        await asyncio.sleep(0.1)
        broker.end.cut()
        with pytest.raises(ProducerFencedError):
            await result
        await asyncio.sleep(100)
        assert len(registrations(broker)) == 2


@simulated
async def test_a_full_backlog_fails_what_waits_but_not_the_producer(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PRODUCER] = in_turn(
        granted(),
        refused(ServerError.ProducerBlockedQuotaExceededException, "full"),
        granted(),
    )
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        result = producer.send_nowait(b"x")
        await asyncio.sleep(0.1)
        broker.end.cut()
        with pytest.raises(ProducerBlockedQuotaExceededExceptionError):
            await result
        await asyncio.sleep(1)
        broker.script[BaseCommand.SEND] = confirming()
        await producer.send(b"y")


@simulated
async def test_waiting_for_exclusive_access_has_no_time_limit(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PRODUCER] = granted(is_ready=False)
    async with simulated_client(broker, operation_timeout_seconds=5) as client:
        opening = asyncio.get_running_loop().create_task(
            producer_of(client, access_mode=ProducerAccessMode.WaitForExclusive)
        )
        await asyncio.sleep(1000)
        assert not opening.done()
        (command,) = registrations(broker)
        broker.end.push(commands.producer_success(command.request_id, "p", topic_epoch=1))
        producer = await opening
        assert producer.is_connected()


@simulated
async def test_a_migrated_topic_is_followed(broker: ScriptedBroker) -> None:
    other = await ScriptedBroker(host="other").start()
    try:
        other.script[BaseCommand.SEND] = confirming()
        async with simulated_client(broker) as client:
            producer = await producer_of(client)
            (command,) = registrations(broker)
            broker.end.push(
                commands.topic_migrated(
                    command.producer_id,
                    CommandTopicMigrated.Producer,
                    broker_service_url=other.service_url,
                ),
                commands.close_producer(command.producer_id, 2**64 - 1),
            )
            await asyncio.sleep(1)
            await producer.send(b"x")
            assert payloads(other) == [[b"x"]]
    finally:
        other.close()
