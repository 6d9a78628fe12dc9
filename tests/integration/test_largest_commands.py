"""One command, however large, does not keep others waiting: counted, not timed.

What is counted is calls that one turn of the loop makes, of Python functions and of C's: each id,
pair, range or name that is looked at costs a few. A second connection publishes meanwhile.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import cast

import pytest

from benchmarks.large_frames import VARIABLE_KINDS, LargestCommand
from benchmarks.largest_commands import REQUEST_ID, largest_commands
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.handlers.command_table import COMMANDS
from pulsar_py.standalone import Broker
from pulsar_py.wire.commands import FIELD_NAMES
from tests.counting_loop import CountingLoop
from tests.wire_client import WireClient, encode, send_frame, stored_entry

TOPIC = "persistent://public/default/largest"
SENT_TOPIC = "persistent://public/default/sent"
OTHER_TOPIC = "persistent://public/default/other"
ENTRIES = 2_000
MARKERS = 8_000
MAX_MESSAGE_BYTES = 1 << 19
MAX_CALLS_A_TURN = 10 * MAX_UNITS
"""Calls that looking at a unit costs, at most, times the units; 512 KiB hold 87,000 ids."""

NAMES = [each.name for each in largest_commands(TOPIC, 0, 1, max_message_bytes=1 << 14)]


@lru_cache(maxsize=1)  # building them costs more than serving one, and brokers give one id
def rows_of(ledger_id: int) -> dict[str, LargestCommand]:
    """All commands for the topic's ledger by name."""
    rows = largest_commands(TOPIC, ledger_id, ENTRIES, max_message_bytes=MAX_MESSAGE_BYTES)
    return {each.name: each for each in rows}


async def publish(client: WireClient, topic: str, count: int) -> int:
    """Publish and wait for the receipts; the ledger of the last."""
    await client.lookup(topic)
    await client.create_producer(topic)
    receipts: list[BaseCommand] = []
    done = asyncio.Event()

    def on_receipt(command: BaseCommand) -> None:
        receipts.append(command)
        if len(receipts) == count:
            done.set()

    client.on_receipt = on_receipt
    for sequence_id in range(count):
        client.writer.write(send_frame(1, sequence_id, b"x"))
    await done.wait()
    return receipts[-1].send_receipt.message_id.ledgerId


async def play(name: str) -> tuple[LargestCommand, int, int, list[BaseCommand]]:
    """Send one command; with it the calls of the busiest turn, what others published, all answers."""
    loop = cast("CountingLoop", asyncio.get_running_loop())
    config = BrokerConfig(maxMessageSize=MAX_MESSAGE_BYTES)
    async with asyncio.timeout(120), Broker(config=config) as broker:
        host, _, port = broker.service_url.removeprefix("pulsar://").rpartition(":")
        other = await WireClient.connect(host, int(port))
        ledger_id = await publish(other, TOPIC, ENTRIES)
        await other.close()
        row = rows_of(ledger_id)[name]
        client, other = await clients_of(row, host, int(port))
        published = 0

        def on_receipt(command: BaseCommand) -> None:
            nonlocal published
            published += 1
            other.writer.write(send_frame(1, command.send_receipt.sequence_id + 1, b"y"))

        other.on_receipt = on_receipt
        other.writer.write(send_frame(1, 0, b"y"))
        loop.count()
        try:
            client.writer.write(row.frame + encode(BaseCommand(type=BaseCommand.PING, ping={})))
            answers = await answers_before_pong(client)
        finally:
            loop.stop_counting()
        most_calls = loop.most_calls
        other.on_receipt = None
        await client.close()
        await other.close()
        return row, most_calls, published, answers


async def clients_of(row: LargestCommand, host: str, port: int) -> tuple[WireClient, WireClient]:
    """One whose consumer holds all entries, one that may publish."""
    client = await WireClient.connect(host, port)
    await client.lookup(TOPIC)
    kind = cast("CommandSubscribe.SubType.ValueType", row.subscription_type)
    await client.subscribe(TOPIC, "s", kind)
    await client.lookup(SENT_TOPIC)
    await client.create_producer(SENT_TOPIC)
    await client.subscribe(SENT_TOPIC, "s", CommandSubscribe.Shared, consumer_id=3)
    client.flow(1, consumer_id=3)
    client.flow(ENTRIES)
    for _ in range(ENTRIES):
        await client.pushed.get()
    other = await WireClient.connect(host, port)
    await other.lookup(OTHER_TOPIC)
    await other.create_producer(OTHER_TOPIC)
    return client, other


async def answers_before_pong(client: WireClient) -> list[BaseCommand]:
    """All that came until the PONG, or until the broker closed the connection, save messages."""
    assert client._task is not None
    answers: list[BaseCommand] = []
    while not (client._task.done() and client.pushed.empty()):
        coming = asyncio.ensure_future(client.pushed.get())
        await asyncio.wait([coming, client._task], return_when=asyncio.FIRST_COMPLETED)
        if not coming.done():
            coming.cancel()
            continue
        command = coming.result().command
        if command.type == BaseCommand.PONG:
            break
        if command.type != BaseCommand.MESSAGE:
            answers.append(command)
    return answers


def test_each_command_whose_size_is_up_to_the_client_has_its_largest_form() -> None:
    rows = largest_commands(TOPIC, 0, 1, max_message_bytes=1 << 14)
    served = {*COMMANDS, BaseCommand.SEND}  # SEND has no row in the table
    assert {row.kind for row in rows} == VARIABLE_KINDS & served


@pytest.mark.parametrize("name", NAMES)
def test_largest_command_is_served_in_small_turns_and_answered(name: str) -> None:
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        row, most_calls, published, answers = runner.run(play(name))
    assert most_calls <= MAX_CALLS_A_TURN
    assert published, "the other connection was served"
    if row.answer is None or row.answer == BaseCommand.CONNECTED:
        return
    ids = [
        getattr(getattr(each, FIELD_NAMES[each.type]), "request_id", REQUEST_ID) for each in answers
    ]
    # What a task answers, and a receipt, which follows its write, may come behind the PONG.
    assert ids in ([REQUEST_ID], []), answers


async def ask_for_the_last_message() -> tuple[int, BaseCommand]:
    """The calls of the busiest turn while markers at a topic's end are passed, and the answer."""
    loop = cast("CountingLoop", asyncio.get_running_loop())
    async with asyncio.timeout(120), Broker() as broker:
        host, _, port = broker.service_url.removeprefix("pulsar://").rpartition(":")
        client = await WireClient.connect(host, int(port))
        await client.lookup(TOPIC)
        await client.create_producer(TOPIC)
        await client.subscribe(TOPIC, "s")
        receipts: asyncio.Queue[BaseCommand] = asyncio.Queue()
        client.on_receipt = receipts.put_nowait
        send = BaseCommand(type=BaseCommand.SEND)
        send.send.producer_id, send.send.marker = 1, True
        client.writer.write(send_frame(1, 0, b"x"))
        for sequence_id in range(1, MARKERS + 1):
            send.send.sequence_id = sequence_id
            client.writer.write(encode(send, stored_entry(b"", sequence_id, marker_type=20)))
        for _ in range(MARKERS + 1):
            await receipts.get()
        ask = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID)
        ask.getLastMessageId.consumer_id = 1
        ask.getLastMessageId.request_id = client.next_request_id()
        loop.count()
        try:
            answer = await client.request(ask, ask.getLastMessageId.request_id)
        finally:
            loop.stop_counting()
        await client.close()
        return loop.most_calls, answer


def test_markers_at_the_end_of_a_topic_are_passed_in_small_turns() -> None:
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        most_calls, answer = runner.run(ask_for_the_last_message())
    assert answer.getLastMessageIdResponse.last_message_id.entryId == 0
    assert most_calls <= MAX_CALLS_A_TURN
