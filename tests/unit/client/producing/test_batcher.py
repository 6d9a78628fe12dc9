"""What shares an entry and what goes alone, beside a scripted broker in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.producing.batcher import plain_message
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.producing.send_result import PlainSends
from pulsar_py.client.shared.enums import BatchingType
from pulsar_py.common.errors import InvalidMessageError
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.testing.clock import START_WALL_MILLIS
from tests.producer_parts import TOPIC, confirming, connected_with, payloads, sent
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client


async def batching(client: Client, **options: Any) -> Producer:
    made = await client.create_producer(
        TOPIC, **{"batching_enabled": True, "batching_max_publish_delay_ms": 60_000, **options}
    )
    assert isinstance(made, Producer)
    return made


def send_all(producer: Producer, *contents: bytes, **options: Any) -> None:
    for content in contents:
        producer.send_nowait(content, **options)


@simulated
async def test_a_full_batch_goes_out_at_once(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client, batching_max_messages=2)
        send_all(producer, b"1", b"2", b"3")
        await asyncio.sleep(1)
        assert payloads(broker) == [[b"1", b"2"]]
        metadata = sent(broker)[0].entry.metadata
        assert (metadata.sequence_id, metadata.highest_sequence_id) == (0, 1)


@simulated
async def test_bytes_fill_a_batch_and_larger_messages_go_alone(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client, batching_max_allowed_size_in_bytes=10)
        send_all(producer, b"1234", b"5678", b"90ab", b"x" * 11, b"cdef", b"ghijkl")
        await asyncio.sleep(1)
        assert payloads(broker) == [
            [b"1234", b"5678"],
            [b"90ab"],
            [b"x" * 11],
            [b"cdef", b"ghijkl"],
        ]


@simulated
async def test_a_batch_goes_out_after_the_publish_delay(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client, batching_max_publish_delay_ms=100)
        send_all(producer, b"1")
        await asyncio.sleep(0.09)
        send_all(producer, b"2")
        assert payloads(broker) == []
        await asyncio.sleep(0.02)
        assert payloads(broker) == [[b"1", b"2"]]


@simulated
async def test_the_delay_counts_from_the_first_message_of_each_batch(
    broker: ScriptedBroker,
) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(
            client, batching_max_publish_delay_ms=100, batching_max_messages=2
        )
        send_all(producer, b"1")
        await asyncio.sleep(0.05)
        send_all(producer, b"2", b"3")
        await asyncio.sleep(0.09)
        assert payloads(broker) == [[b"1", b"2"]]
        await asyncio.sleep(0.02)
        assert payloads(broker) == [[b"1", b"2"], [b"3"]]


@simulated
async def test_sends_of_one_step_share_a_batch_and_do_not_wait(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client)
        ids = await asyncio.gather(*(producer.send(b"%d" % number) for number in range(3)))
        assert [each.batch_index for each in ids] == [0, 1, 2]
        assert asyncio.get_running_loop().time() < 1
        assert payloads(broker) == [[b"0", b"1", b"2"]]


@simulated
async def test_one_message_goes_out_in_plain_layout(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client)
        message_id = await producer.send(b"1")
        assert (message_id.batch_index, message_id.batch_size) == (-1, 0)
        (only,) = sent(broker)
        assert not only.entry.metadata.HasField("num_messages_in_batch")
        assert not only.send.HasField("highest_sequence_id")


@simulated
async def test_without_batching_messages_of_one_step_go_alone_and_in_order(
    broker: ScriptedBroker,
) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await client.create_producer(TOPIC)
        contents = [b"%d" % number for number in range(150)]
        results = [producer.send_nowait(each) for each in contents]
        ids = await asyncio.gather(*results)
        assert [each.entry_id for each in ids] == list(range(150))
        assert payloads(broker) == [[each] for each in contents]
        entries = [each.entry.metadata for each in sent(broker)]
        assert [each.sequence_id for each in entries] == list(range(150))
        assert producer.last_sequence_id() == 149
        figures = producer.statistics()
        assert figures.messages_sent == figures.receipts_received == 150


@simulated
async def test_what_was_gathered_goes_out_before_a_message_of_another_kind(
    broker: ScriptedBroker,
) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await client.create_producer(TOPIC)
        send_all(producer, b"1", b"2", b"3")
        send_all(producer, b"4", properties={"a": "b"})
        send_all(producer, b"5", b"6")
        send_all(producer, b"x" * (5 * 1024 * 1024 - 1000))
        send_all(producer, b"7", sequence_id=2)
        await producer.flush()
        sizes = [(each.send.sequence_id, len(each.payloads[0])) for each in sent(broker)]
        assert sizes == [
            (0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 5 * 1024 * 1024 - 1000), (2, 1)
        ]  # fmt: skip


def outcomes(sends: Sequence[PlainSends]) -> list[MessageId]:
    """The id of each message, in order."""
    return [
        completion.outcome(first + offset)
        for completion, first, count in sends
        for offset in range(count)
    ]


@simulated
async def test_messages_handed_over_together_keep_their_place(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await client.create_producer(TOPIC)
        send_all(producer, b"0", b"1")
        run = producer.submit_plain_run([b"%d" % number for number in range(2, 150)])
        last = producer.send_nowait(b"150")
        await producer.flush()
        assert payloads(broker) == [[b"%d" % number] for number in range(151)]
        assert [each.send.sequence_id for each in sent(broker)] == list(range(151))
        ids = [each.entry_id for each in outcomes(run)]
        assert ids == list(range(2, 150))
        assert (await last).entry_id == 150
        figures = producer.statistics()
        assert figures.messages_sent == figures.receipts_received == 151
        assert producer.pending_count() == 0


@pytest.mark.parametrize(
    "options",
    [
        {"batching_max_messages": 10},
        {"batching_max_messages": 30, "batching_max_allowed_size_in_bytes": 64},
        {"batching_max_messages": 1},
        {"batching_type": BatchingType.KeyBased, "batching_max_messages": 10},
    ],
)
def test_messages_handed_over_together_are_batched_as_one_by_one(options: dict[str, Any]) -> None:
    simulated(lambda broker: check_batches_of_runs(broker, options))()


async def check_batches_of_runs(broker: ScriptedBroker, options: dict[str, Any]) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    contents = [bytes(number % 19) for number in range(95)]
    contents[40] = bytes(65)  # larger than a batch may be
    async with simulated_client(broker) as client:
        alone = await batching(client, **options)
        send_all(alone, *contents)
        await alone.flush()
        expected = payloads(broker)
        together = await batching(client, **options)
        results = [together.send_nowait(contents[0])._parts]
        for start, end in ((1, 2), (2, 34), (34, 95)):
            run = together.submit_plain_run(contents[start:end])
            assert sum(count for _, _, count in run) == end - start
            results += run
        await together.flush()
        assert payloads(broker)[len(expected) :] == expected
        ids = outcomes(results)
        assert [(each.entry_id, each.batch_index, each.batch_size) for each in ids] == [
            (entry_id, index if len(entry) > 1 else -1, len(entry) if len(entry) > 1 else 0)
            for entry_id, entry in enumerate(expected, ids[0].entry_id)
            for index in range(len(entry))
        ]
        assert together.pending_count() == 0


@simulated
async def test_what_was_gathered_when_the_connection_ended_is_sent_on_the_next(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker) as client:
        producer = await client.create_producer(TOPIC)
        results = [producer.send_nowait(b"%d" % number) for number in range(5)]
        broker.end.cut()
        results += [producer.send_nowait(b"%d" % number) for number in range(5, 8)]
        broker.script[BaseCommand.SEND] = confirming()
        await asyncio.gather(*results)
        assert payloads(broker)[-8:] == [[b"%d" % number] for number in range(8)]


@simulated
async def test_what_was_gathered_when_the_producer_closed_is_sent_or_fails(
    broker: ScriptedBroker,
) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await client.create_producer(TOPIC)
        results = [producer.send_nowait(b"%d" % number) for number in range(5)]
        await producer.close()
        assert payloads(broker) == [[b"%d" % number] for number in range(5)]
        assert [(await each).entry_id for each in results] == list(range(5))


@simulated
async def test_delayed_messages_are_never_batched_and_keep_their_place(
    broker: ScriptedBroker,
) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client)
        send_all(producer, b"1", b"2")
        send_all(producer, b"3", deliver_after=timedelta(seconds=5))
        send_all(producer, b"4", deliver_at=99)
        send_all(producer, b"5", b"6")
        await producer.flush()
        assert payloads(broker) == [[b"1", b"2"], [b"3"], [b"4"], [b"5", b"6"]]
        assert [each.send.sequence_id for each in sent(broker)] == [0, 2, 3, 4]
        delayed = sent(broker)[1].entry.metadata.deliver_at_time
        assert START_WALL_MILLIS + 5000 <= delayed <= START_WALL_MILLIS + 6000
        assert sent(broker)[2].entry.metadata.deliver_at_time == 99


@simulated
async def test_possible_duplicates_go_in_batches_of_their_own(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client, initial_sequence_id=4)
        for sequence_id in (3, 4, 5, 6, 5, 7, 8):
            send_all(producer, b"%d" % sequence_id, sequence_id=sequence_id)
        await producer.flush()
        assert payloads(broker) == [[b"3"], [b"4"], [b"5", b"6"], [b"5"], [b"7", b"8"]]
        assert [each.send.sequence_id for each in sent(broker)] == [3, 4, 5, 5, 7]
        assert producer.last_sequence_id() == 8


@simulated
async def test_what_an_entry_says_for_all_separates_batches(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client)
        send_all(producer, b"1", b"2")
        send_all(producer, b"3", b"4", disable_replication=True)
        send_all(producer, b"5", b"6", replication_clusters=["c"])
        await producer.flush()
        assert payloads(broker) == [[b"1", b"2"], [b"3", b"4"], [b"5", b"6"]]
        assert [list(each.entry.metadata.replicate_to) for each in sent(broker)] == [
            [],
            ["__local__"],
            ["c"],
        ]


@simulated
async def test_batches_by_key_have_runs_of_ids_of_their_own(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client, batching_type=BatchingType.KeyBased)
        results = [
            producer.send_nowait(b"%d" % number, key=key) for number, key in enumerate("ababc")
        ]
        await producer.flush()
        assert payloads(broker) == [[b"0", b"2"], [b"1", b"3"], [b"4"]]
        assert [each.send.sequence_id for each in sent(broker)] == [0, 2, 4]
        assert [each.entry.metadata.partition_key for each in sent(broker)] == ["a", "b", "c"]
        assert [each.result().entry_id for each in results] == [0, 1, 0, 1, 2]


@simulated
async def test_batches_fit_what_the_broker_takes(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = connected_with(10_000)
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client, max_pending_messages=0)
        send_all(producer, *[b"x" * 30] * 2000)
        await producer.flush()
        assert sum(len(each) for each in payloads(broker)) == 2000
        assert all(len(entry) <= 10_000 + 10_240 for entry in broker.entries)


@pytest.mark.parametrize("is_batching", [False, True])
def test_order_holds_whatever_is_sent(is_batching: bool) -> None:  # noqa: FBT001 - a parameter
    @simulated
    async def run(broker: ScriptedBroker) -> None:
        broker.script[BaseCommand.SEND] = confirming()
        async with simulated_client(broker) as client:
            producer = await batching(client, batching_enabled=is_batching, batching_max_messages=3)
            options: list[dict[str, Any]] = [
                {},
                {"key": "k"},
                {"deliver_at": 1},
                {"sequence_id": 50},
            ]
            for number in range(40):
                send_all(producer, b"%d" % number, **options[number * 7 % 4])
            await producer.flush()
            arrived = [int(each) for entry in payloads(broker) for each in entry]
            assert arrived == list(range(40))

    run()


def test_a_plain_message_has_its_payload() -> None:
    assert plain_message(b"x").payload == b"x"
    assert plain_message(b"x").is_plain


@simulated
async def test_a_message_that_cannot_be_encoded_costs_no_other(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await batching(client, max_pending_messages=2)
        accepted = producer.send_nowait(b"1", key="k")
        with pytest.raises(InvalidMessageError):
            producer.send_nowait(b"2", key="\ud800")
        await producer.send(b"3", {"name": "text"})
        assert (await accepted).batch_index == 0
        assert payloads(broker) == [[b"1", b"3"]]
