from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.receiving.received_batch import MIN_WHOLE_BATCH
from pulsar_py.client.shared.enums import ConsumerCryptoFailureAction, ConsumerType
from pulsar_py.common.errors import AlreadyClosedError, ClientTimeoutError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck, EncryptionKeys
from pulsar_py.schema import AvroSchema
from pulsar_py.wire import commands
from tests.scripted_broker import BrokerEnd, ScriptedBroker, simulated
from tests.unit.client.consumer_parts import (
    acks,
    deliver,
    new_client,
    open_consumer,
    permits,
    redeliveries,
    spawn,
)
from tests.unit.client.entries import batch, chunk, command, single


@simulated
async def test_the_queue_is_filled_and_refilled_at_half(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=10)
        await asyncio.sleep(0.01)
        assert permits(broker) == [10]
        deliver(broker, (1, 0), batch([b"x"] * 7))
        for _ in range(4):
            await consumer.receive()
        await asyncio.sleep(0)
        assert permits(broker) == [10]
        await consumer.receive()
        await asyncio.sleep(0.01)
        assert permits(broker) == [10, 5]


@simulated
async def test_a_message_that_is_here_is_taken_without_suspending(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0))
        deliver(broker, (1, 1), batch([b"a", b"b"]))
        await asyncio.sleep(0.01)
        for expected in (b"1:0", b"a", b"b"):
            receiving = consumer.receive()
            with pytest.raises(StopIteration) as stopped:
                receiving.send(None)
            assert stopped.value.value.data() == expected
            acknowledging = consumer.acknowledge(stopped.value.value)
            with pytest.raises(StopIteration):
                acknowledging.send(None)


@simulated
async def test_many_receivers_and_one_batch(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        waiting = [spawn(consumer.receive()) for _ in range(3)]
        await asyncio.sleep(0.01)
        deliver(broker, (1, 0), batch([b"a", b"b", b"c"]))
        assert [each.data() for each in await asyncio.gather(*waiting)] == [b"a", b"b", b"c"]


@simulated
async def test_time_limits_of_receive(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(ClientTimeoutError, match=r"no message within 2\.5 s"):
            await consumer.receive(2500)
        assert loop.time() - began == pytest.approx(2.5)


@simulated
async def test_unusable_entries_are_reported_and_give_permits_back(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=2)
        damaged = bytearray(single())
        damaged[-1] ^= 1
        deliver(broker, (1, 0), bytes(damaged))
        deliver(broker, (1, 1), single(b"x" * 100, compression=2, uncompressed_size=99))
        deliver(broker, (1, 2), b"rubbish")
        deliver(broker, (1, 3))
        assert (await consumer.receive()).data() == b"1:3"
        await asyncio.sleep(0.01)
        assert [(ack.message_id[0].entryId, ack.validation_error) for ack in acks(broker)] == [
            (0, CommandAck.ChecksumMismatch),
            (1, CommandAck.DecompressionError),
            (2, CommandAck.BatchDeSerializeError),
        ]
        assert sum(permits(broker)) == 2 + 4
        assert consumer.statistics().receive_failures == 3


@simulated
async def test_what_a_thread_takes_in_the_loops_turn_leaves_the_rest_to_the_loop(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=6)
        await asyncio.sleep(0.01)
        receiver = consumer.receiver
        assert receiver.takes_in_turn
        run = receiver.take_in_turn(command((1, 0)), batch([b"a", b"b"]), (1, 0))
        assert [each.data() for each in run] == [b"a", b"b"]
        assert receiver.last is run[-1]
        assert not receiver.has_to_go_on  # two permits of six are to be given back

        damaged = bytearray(single())
        damaged[-1] ^= 1
        assert receiver.take_in_turn(command((1, 1)), bytes(damaged), (1, 1)) == []
        assert receiver.has_to_go_on
        assert not receiver.takes_in_turn  # before that is done
        receiver.go_on()
        await asyncio.sleep(0.01)
        assert [ack.validation_error for ack in acks(broker)] == [CommandAck.ChecksumMismatch]
        assert permits(broker) == [6, 3]
        assert receiver.takes_in_turn
        assert not receiver.has_to_go_on

        deliver(broker, (1, 2))
        await asyncio.sleep(0.01)
        assert not receiver.takes_in_turn  # the loop's message comes first


@simulated
async def test_a_thread_takes_nothing_that_somebody_has_to_see(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        assert not (await open_consumer(client, receiver_queue_size=0)).receiver.takes_in_turn
        avro = await open_consumer(client, schema=AvroSchema(Reading))
        assert not avro.receiver.takes_in_turn
        watched = await open_consumer(client, unacked_messages_timeout_ms=10_000)
        assert not watched.receiver.takes_in_turn
        closed = await open_consumer(client)
        assert closed.receiver.takes_in_turn
        await closed.close()
        assert not closed.receiver.takes_in_turn
        closed.receiver.go_on()  # of a turn before it was closed


@pytest.mark.parametrize(
    ("messages_limit", "bytes_limit", "expected"),
    [
        (100, 99, 40),
        (30, 99, 30),
        (20, 99, 20),
        (5, 99, 5),
        (100, 40, 40),
        (100, 30, 30),
        (9, 7, 7),
    ],
)
def test_a_run_ends_at_its_limits_also_within_a_batch(
    messages_limit: int, bytes_limit: int, expected: int
) -> None:
    simulated(lambda broker: check_run(broker, messages_limit, bytes_limit, expected))()


async def check_run(
    broker: ScriptedBroker, messages_limit: int, bytes_limit: int, expected: int
) -> None:
    payloads = [bytes((number,)) for number in range(40)]
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=10)
        await asyncio.sleep(0.01)
        deliver(broker, (1, 0), batch(payloads[:20]))
        deliver(broker, (1, 1), batch(payloads[20:]))
        await asyncio.sleep(0.01)
        run = await consumer.receive_run(
            1000, messages_limit=messages_limit, bytes_limit=bytes_limit
        )
        assert [each.data() for each in run] == payloads[:expected]
        await asyncio.sleep(0.01)
        given = sum(permits(broker)[1:])
        assert expected - 5 < given <= expected
        rest = [(await consumer.receive()).data() for _ in range(40 - expected)]
        assert rest == payloads[expected:]
        await asyncio.sleep(0.01)
        assert sum(permits(broker)[1:]) == 40


@simulated
async def test_runs_give_large_batches_whole_and_the_rest_together(broker: ScriptedBroker) -> None:
    payloads = [b"x"] * MIN_WHOLE_BATCH
    size = 2 * MIN_WHOLE_BATCH
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=size, keeps_batches=True)
        receiving = spawn(consumer.receive_run(1000, messages_limit=3, bytes_limit=99))
        await asyncio.sleep(0.01)
        deliver(broker, (1, 0))
        assert [each.data() for each in await receiving] == [b"1:0"]
        deliver(broker, (1, 1))
        deliver(broker, (1, 2), batch([b"a", b"b", b"c"]))
        deliver(broker, (1, 3), batch(payloads))
        await asyncio.sleep(0.01)

        async def run(bytes_limit: int = 99) -> list[bytes]:
            messages = await consumer.receive_run(1000, messages_limit=3, bytes_limit=bytes_limit)
            return [each.data() for each in messages]

        assert await run() == [b"1:1", b"a", b"b"]
        assert await run(1) == [b"c"]
        assert await run() == payloads
        assert await run() == []
        await asyncio.sleep(0.01)
        assert permits(broker) == [size, MIN_WHOLE_BATCH + 5]
        assert consumer.statistics().messages_received == MIN_WHOLE_BATCH + 5


@simulated
async def test_a_batch_received_by_time(broker: ScriptedBroker) -> None:
    policy = ConsumerBatchReceivePolicy(3, -1, 1000)
    async with new_client(broker) as client:
        consumer = await open_consumer(client, batch_receive_policy=policy)
        loop = asyncio.get_running_loop()
        deliver(broker, (1, 0))
        messages = await consumer.batch_receive()
        assert ([each.data() for each in messages], loop.time()) == ([b"1:0"], pytest.approx(1))
        deliver(broker, (1, 1), batch([b"a", b"b", b"c", b"d"]))
        messages = await consumer.batch_receive()
        assert [each.data() for each in messages] == [b"a", b"b", b"c"]
        assert loop.time() < 1.5
        assert consumer.statistics().total_messages_received == 4


@simulated
async def test_a_cancelled_batch_is_put_back_with_its_permits(broker: ScriptedBroker) -> None:
    policy = ConsumerBatchReceivePolicy(9, -1, -1)
    async with new_client(broker) as client:
        consumer = await open_consumer(client, batch_receive_policy=policy, receiver_queue_size=100)
        deliver(broker, (1, 0), batch([b"a", b"b"]))
        receiving = spawn(consumer.batch_receive())
        await asyncio.sleep(1)
        receiving.cancel()
        await asyncio.wait([receiving])
        assert consumer._receiver.permits.to_give == 0
        assert [(await consumer.receive()).data() for _ in range(2)] == [b"a", b"b"]


@simulated
async def test_a_redelivery_takes_back_a_batch_in_the_making(broker: ScriptedBroker) -> None:
    policy = ConsumerBatchReceivePolicy(2, -1, -1)
    async with new_client(broker) as client:
        consumer = await open_consumer(client, batch_receive_policy=policy)
        deliver(broker, (1, 0))
        receiving = spawn(consumer.batch_receive())
        await asyncio.sleep(0.1)
        consumer.redeliver_unacknowledged_messages()
        deliver(broker, (1, 0), consumer_epoch=1)
        deliver(broker, (1, 1), consumer_epoch=1)
        assert [each.data() for each in await receiving] == [b"1:0", b"1:1"]


@simulated
async def test_a_queue_of_zero(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=0)
        await asyncio.sleep(0.1)
        assert permits(broker) == []
        with pytest.raises(ClientTimeoutError):
            await consumer.receive(100)
        assert permits(broker) == [1]
        deliver(broker, (1, 0), batch([b"a", b"b", b"c"]))
        assert [(await consumer.receive()).data() for _ in range(3)] == [b"a", b"b", b"c"]
        with pytest.raises(ClientTimeoutError):
            await consumer.receive(100)
        assert permits(broker) == [1, 3]
        broker.end.cut()
        waiting = spawn(consumer.receive())
        await asyncio.sleep(1)
        assert permits(broker) == [1, 3, 1]
        deliver(broker, (1, 1))
        assert (await waiting).data() == b"1:1"


@simulated
async def test_incomplete_chunks_expire(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=2)
        receiving = spawn(consumer.receive())
        deliver(broker, (1, 0), chunk(0, b"aa", count=2, total=4))
        await asyncio.sleep(59)
        assert acks(broker) == []
        await asyncio.sleep(2)
        assert acks(broker)[0].message_id[0].entryId == 0
        assert sum(permits(broker)) == 3, "each chunk but the last gives its permit back"
        deliver(broker, (1, 1))
        assert (await receiving).data() == b"1:1"


@simulated
async def test_what_a_batch_collected_gives_its_permits_back_once(broker: ScriptedBroker) -> None:
    policy = ConsumerBatchReceivePolicy(10, -1, 5_000)
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=10, batch_receive_policy=policy)
        collecting = spawn(consumer.batch_receive())
        deliver(broker, (1, 0), batch([b"x"] * 4))
        await asyncio.sleep(1)
        consumer.redeliver_unacknowledged_messages()
        await asyncio.sleep(1)
        assert permits(broker) == [10], "four are less than half"
        deliver(broker, (1, 0), batch([b"x"] * 4))
        assert len(await collecting) == 4
        assert permits(broker) == [10, 5]


@simulated
async def test_incomplete_chunks_outlast_an_outage(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=2)
        receiving = spawn(consumer.receive())
        deliver(broker, (1, 0), chunk(0, b"aa", count=2, total=4))
        await asyncio.sleep(1)
        subscribed = broker.script.pop(BaseCommand.SUBSCRIBE)
        broker.end.cut()
        await asyncio.sleep(200)
        broker.script[BaseCommand.SUBSCRIBE] = subscribed
        await asyncio.sleep(70)
        assert acks(broker) == [], "all of it is delivered again"
        for chunk_id, payload in enumerate((b"aa", b"bb")):
            deliver(broker, (1, chunk_id), chunk(chunk_id, payload, count=2, total=4))
        assert (await receiving).data() == b"aabb"


@simulated
async def test_incomplete_chunks_do_not_expire_without_permits(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=1)
        receiving = spawn(consumer.receive())
        deliver(broker, (1, 0), chunk(0, b"aa", count=2, total=4))
        deliver(broker, (1, 1), batch([b"x", b"y", b"z"]))
        assert (await receiving).data() == b"x"
        await asyncio.sleep(500)
        assert acks(broker) == []
        assert (await consumer.receive()).data() == b"y"
        assert (await consumer.receive()).data() == b"z"
        deliver(broker, (1, 2), chunk(1, b"bb", count=2, total=4))
        assert (await consumer.receive()).data() == b"aabb"


@simulated
async def test_incomplete_chunks_do_not_expire_out_of_turn(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(
            client, receiver_queue_size=2, consumer_type=ConsumerType.Failover
        )
        broker.end.push(commands.active_consumer_change(0, is_active=True))
        receiving = spawn(consumer.receive())
        deliver(broker, (1, 0), chunk(0, b"aa", count=2, total=4))
        await asyncio.sleep(1)
        assert consumer.is_active
        broker.end.push(commands.active_consumer_change(0, is_active=False))
        await asyncio.sleep(500)
        assert acks(broker) == []
        receiving.cancel()


@simulated
async def test_what_cannot_be_decrypted_is_asked_for_again(broker: ScriptedBroker) -> None:
    keys = [EncryptionKeys(key="k", value=b"wrapped")]
    secret = single(b"secret", encryption_keys=keys, encryption_param=b"iv")
    async with new_client(broker) as client:
        consumer = await open_consumer(
            client,
            consumer_type=ConsumerType.Shared,
            negative_ack_redelivery_delay_ms=1000,
            crypto_failure_action=ConsumerCryptoFailureAction.FAIL,
        )
        deliver(broker, (1, 0), secret)
        deliver(broker, (1, 1))
        assert (await consumer.receive()).data() == b"1:1"
        await asyncio.sleep(2)
        assert redeliveries(broker) == [[0]]


@simulated
async def test_what_is_taken_over_is_not_delivered(broker: ScriptedBroker) -> None:
    taken: list[bytes] = []

    def takes_over(message: Message) -> bool:
        if message.redelivery_count() < 2:
            return False
        taken.append(message.data())
        return True

    async with new_client(broker) as client:
        consumer = await open_consumer(client, consumer_type=ConsumerType.Shared)
        consumer.redelivery_filter = takes_over
        assert consumer.redelivery_filter is takes_over
        deliver(broker, (1, 0), redelivery_count=2)
        deliver(broker, (1, 1), redelivery_count=1)
        assert (await consumer.receive()).data() == b"1:1"
        assert taken == [b"1:0"]


@simulated
async def test_what_is_taken_over_goes_when_it_comes_though_nobody_receives(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=2)
        taken: list[bytes] = []

        def takes_over(message: Message) -> bool:
            if message.data() == b"1:1":
                return False
            taken.append(message.data())
            return True

        consumer.redelivery_filter = takes_over
        for entry_id in range(3):
            deliver(broker, (1, entry_id))
        await asyncio.sleep(0.01)
        assert taken == [b"1:0"]
        assert (await consumer.receive()).data() == b"1:1"
        assert consumer.receive_nowait() is None
        assert taken == [b"1:0", b"1:2"]
        await asyncio.sleep(0.01)
        assert sum(permits(broker)) == 2 + 3


@simulated
async def test_on_ready_tells_of_messages_and_of_the_end(broker: ScriptedBroker) -> None:
    calls: list[None] = []
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        consumer.receiver.on_ready = lambda: calls.append(None)
        deliver(broker, (1, 0))
        await asyncio.sleep(0.01)
        assert len(calls) == 1
        assert consumer.receive_nowait().data() == b"1:0"
        assert consumer.receive_nowait() is None
        await consumer.close()
        assert len(calls) > 1
        with pytest.raises(AlreadyClosedError):
            consumer.receive_nowait()


@simulated
async def test_a_pause_gives_no_permits(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=2)
        consumer.pause()
        deliver(broker, (1, 0))
        deliver(broker, (1, 1))
        await consumer.receive()
        await consumer.receive()
        await asyncio.sleep(0.1)
        assert permits(broker) == [2]
        consumer.resume()
        await asyncio.sleep(0.1)
        assert permits(broker) == [2, 2]


@dataclass
class Reading:
    celsius: int


@simulated
async def test_schemas_are_fetched_when_entries_come_and_not_when_somebody_asks(
    broker: ScriptedBroker,
) -> None:
    schema = AvroSchema(Reading)

    def definition(_end: BrokerEnd, command: BaseCommand) -> bytes:
        asked = command.getSchema
        wire = schema.schema_info().to_wire()
        return commands.get_schema_response(asked.request_id, wire, asked.schema_version)

    broker.script[BaseCommand.GET_SCHEMA] = definition
    async with new_client(broker) as client:
        consumer = await open_consumer(client, schema=schema)
        # Two versions: the second one's message is not the first in the queue.
        for number, version in enumerate((b"\0", b"\0", b"\1")):
            payload = schema.encode(Reading(number))
            deliver(broker, (1, number), single(payload, schema_version=version))
        await asyncio.sleep(0.1)
        received = [consumer.receive_nowait() for _ in range(3)]
        assert [each and each.value() for each in received] == [Reading(n) for n in range(3)]
        assert len(broker.of(BaseCommand.GET_SCHEMA)) == 2


@simulated
async def test_a_schema_that_could_not_be_had_early_is_asked_for_again(
    broker: ScriptedBroker,
) -> None:
    schema = AvroSchema(Reading)
    is_known = False

    def definition(_end: BrokerEnd, command: BaseCommand) -> bytes | None:
        asked = command.getSchema
        if not is_known:
            return None
        wire = schema.schema_info().to_wire()
        return commands.get_schema_response(asked.request_id, wire, asked.schema_version)

    broker.script[BaseCommand.GET_SCHEMA] = definition
    async with new_client(broker, operation_timeout_seconds=2) as client:
        consumer = await open_consumer(client, schema=schema)
        deliver(broker, (1, 0), single(schema.encode(Reading(1)), schema_version=b"\0"))
        await asyncio.sleep(5)
        is_known = True
        assert (await consumer.receive()).value() == Reading(1)
