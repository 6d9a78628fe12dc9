from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAck,
    CommandCloseProducer,
    CommandConnect,
    CommandFlow,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandPing,
    CommandProducer,
    CommandSubscribe,
    CommandSuccess,
    FeatureFlags,
    MessageIdData,
)
from pulsar_py.server.connection.server_cnx import FULL_READS_IN_A_TURN, MAX_REQUESTS_UNDER_WAY
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.wire import commands
from pulsar_py.wire.framing import encode_message_header
from pulsar_py.wire.receive_memory import LARGE_READ_BYTES, LARGE_READ_FRAMES, READ_BYTES
from tests.unit.server.connection.standins import (
    TOPIC,
    Client,
    Server,
    StandInConsumer,
    StandInProducer,
    send_frame,
    settle,
    with_producer,
)

# --- SEND ----------------------------------------------------------------------------------------


async def test_sends_reach_their_producer_in_order(server: Server) -> None:
    client, producer = await with_producer(server)
    frames = [send_frame(b"a"), send_frame(b"b", sequence_id=5, num_messages=3, is_chunk=True)]
    frames.append(send_frame(b"c", sequence_id=7, highest_sequence_id=9, marker=True))
    client.cnx.data_received(b"".join(frames))
    assert producer.published == [
        (0, None, 1, False, False, b"a"),
        (5, None, 3, True, False, b"b"),
        (7, 9, 1, False, True, b"c"),
    ]


@pytest.mark.parametrize("first", [0, 100, 127, 128, 16_300, 2**21 - 2, 2**63, 2**64 - 300])
@pytest.mark.parametrize("kind", [bytes, memoryview])
async def test_sends_that_differ_in_their_sequence_id_alone_are_told_apart(
    server: Server, first: int, kind: Callable[[bytes], bytes | memoryview]
) -> None:
    client, producer = await with_producer(server)
    ids = [*range(first, first + 300), first + 5, first, first + 130, first + 131]
    frames = [send_frame(b"%d" % sequence_id, sequence_id=sequence_id) for sequence_id in ids]
    for place in (3, 10, 200):
        frames.insert(place, send_frame(b"many", sequence_id=first, num_messages=2))
    client.cnx.data_received(kind(b"".join(frames)))
    plain = [(sequence_id, None, 1, False, False, b"%d" % sequence_id) for sequence_id in ids]
    assert [each for each in producer.published if each[-1] != b"many"] == plain
    many = (first, None, 2, False, False, b"many")
    assert [producer.published[place] for place in (3, 10, 200)] == [many] * 3


async def test_runs_of_several_producers_and_commands_between_keep_their_order(
    server: Server,
) -> None:
    client, producer = await with_producer(server)
    runs: list[list[bytes]] = []
    producer.publish_run = lambda sends: runs.append([send[-1] for send in sends])  # type: ignore[method-assign]
    other = StandInProducer(producer.topic, producer.request, "other")
    other.publish_run = lambda sends: runs.append([b"other", *(send[-1] for send in sends)])  # type: ignore[method-assign]
    client.cnx.producers[9] = other  # type: ignore[assignment]
    frames = [
        *(send_frame(payload) for payload in (b"a", b"b")),
        *(send_frame(payload, producer_id=9) for payload in (b"c", b"d")),
        send_frame(b"e"),
        commands.encode(CommandPing()),
        send_frame(b"f"),
        send_frame(b"in a transaction", txnid_least_bits=1, txnid_most_bits=1),
        send_frame(b"g"),
    ]
    client.cnx.data_received(b"".join(frames))
    assert runs == [[b"a", b"b"], [b"other", b"c", b"d"], [b"e"], [b"f"], [b"g"]]


async def test_many_alike_sends_are_one_call_of_their_producer(server: Server) -> None:
    client, producer = await with_producer(server)
    calls: list[tuple[list[int], list[bytes]]] = []
    producer.publish_plain = lambda ids, datas: calls.append((ids, datas))  # type: ignore[assignment,method-assign]
    ids = range(100, 400)
    payloads = [b"%03d" % each for each in ids]
    frames = [send_frame(payloads[each - 100], sequence_id=each) for each in ids]
    client.cnx.data_received(memoryview(b"".join([*frames, commands.encode(CommandPing())])))
    # From 128 on a sequence id has two bytes.
    assert calls == [
        (list(ids[:28]), payloads[:28]),
        (list(ids[28:]), payloads[28:]),
    ]
    assert [each.DESCRIPTOR.name for each in await client.receives()] == ["CommandPong"]


@pytest.mark.parametrize(
    "fields",
    [
        {"producer_id": 9},
        {"txnid_least_bits": 1, "txnid_most_bits": 1},
        {"num_messages": 3},
        {"highest_sequence_id": 20},
        {"marker": True},
    ],
)
async def test_many_sends_that_are_alike_but_not_plain_are_served_as_each(
    server: Server, fields: dict[str, Any]
) -> None:
    answers = []
    for kind in (bytes, memoryview):
        client, producer = await with_producer(server)
        producer.publish_plain = None  # type: ignore[assignment,method-assign]
        data = b"".join(send_frame(b"x", sequence_id=each, **fields) for each in range(10, 40))
        client.cnx.data_received(kind(data))
        await settle()
        received = [] if client.is_closed else await client.receives()
        answers.append((producer.published, client.is_closed, [str(each) for each in received]))
    assert answers[0] == answers[1]
    assert answers[0] != ([], False, [])


async def test_many_alike_sends_behind_a_long_command_wait_for_it(server: Server) -> None:
    client, producer = await with_producer(server)
    sends = b"".join(send_frame(b"%02d" % each, sequence_id=each) for each in range(10, 40))
    client.cnx._begin(iter([None]))  # work of one more step
    client.cnx.data_received(memoryview(sends))
    assert producer.published == []
    await settle()
    assert [each[-1] for each in producer.published] == [b"%02d" % each for each in range(10, 40)]


async def test_sends_before_an_unreadable_one_are_published(server: Server) -> None:
    client, producer = await with_producer(server)
    unreadable = encode_message_header(b"\x08\x06\x32\x7f", 1) + b"x"
    client.cnx.data_received(send_frame(b"a") + send_frame(b"b") + unreadable + send_frame(b"c"))
    assert [each[-1] for each in producer.published] == [b"a", b"b"]
    assert client.is_closed


async def test_sends_cut_anywhere_are_the_same_sends(server: Server) -> None:
    client, producer = await with_producer(server)
    for byte in send_frame(b"whole"):
        client.cnx.data_received(bytes((byte,)))
    assert [each[-1] for each in producer.published] == [b"whole"]


async def test_unreadable_send_closes_the_connection(server: Server) -> None:
    client, _ = await with_producer(server)
    client.cnx.data_received(encode_message_header(b"\x08\x06\x32\x7f", 1) + b"x")
    assert client.is_closed


# --- commands ------------------------------------------------------------------------------------


async def test_commands_before_the_handshake_close_the_connection(server: Server) -> None:
    client = server.open()
    client.sends(CommandFlow(consumer_id=1, messagePermits=1))
    assert client.is_closed


async def test_ping_is_answered_before_the_handshake(server: Server) -> None:
    client = server.open()
    assert (await client.asks(CommandPing())).DESCRIPTOR.name == "CommandPong"
    answer = await client.asks(CommandConnect(client_version="x"))
    assert answer.DESCRIPTOR.name == "CommandConnected"


async def test_commands_of_the_other_direction_close_the_connection(server: Server) -> None:
    client = await server.connect()
    client.sends(CommandSuccess(request_id=1))
    assert client.is_closed


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x05\x00\x00\x00\x01\xff"]
)
async def test_garbage_closes_the_connection_with_one_line(
    server: Server, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    client = await server.connect()
    with caplog.at_level(logging.WARNING):
        client.cnx.data_received(data)
        client.cnx.data_received(data)
    assert client.is_closed
    assert [record.message for record in caplog.records] == ["connection refused"]


async def test_frame_beyond_the_limit_closes_the_connection(server: Server) -> None:
    client, producer = await with_producer(server)
    client.cnx.data_received(send_frame(bytes(1_010_241)))
    assert client.is_closed
    assert not producer.published


async def test_what_breaks_in_a_handler_becomes_an_error(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client = await server.connect()
    server.topics.error = ZeroDivisionError("a fault")
    lookup = CommandGetTopicsOfNamespace(namespace="public/default", request_id=7)
    error = await client.asks(lookup)
    words = "the broker failed, its log has the details: a fault"
    assert (error.request_id, error.message) == (7, words)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert not client.is_closed


async def test_what_breaks_in_a_handler_without_answer_closes_the_connection(
    server: Server,
) -> None:
    client = await server.connect()
    await client.asks(
        CommandSubscribe(
            topic=TOPIC, subscription="s", consumer_id=1, request_id=1, subType="Shared"
        )
    )
    client.cnx.consumers[1].flow = None  # type: ignore[assignment, method-assign]
    client.sends(CommandFlow(consumer_id=1, messagePermits=1))
    assert client.is_closed


# --- output --------------------------------------------------------------------------------------


async def test_answers_of_one_tick_go_out_in_one_write(server: Server) -> None:
    client = await server.connect()
    before = client.transport.writes_count
    client.sends(*[CommandPing()] * 10)
    client.cnx.write([b"", commands.pong()])
    assert len(await client.receives()) == 11
    assert client.transport.writes_count == before + 1


async def test_is_not_writable_while_the_client_does_not_read(
    server: Server, settings: ConnectionSettings
) -> None:
    client = await server.connect()
    called: list[str] = []
    client.cnx.when_writable(lambda: called.append("at once"))
    await settle()
    assert called == ["at once"]
    client.transport.is_client_reading = False
    client.cnx.send(bytes(settings.output_high_water_bytes + 1))
    assert not client.cnx.is_writable
    client.cnx.when_writable(lambda: called.append("later"))
    await settle()
    assert not client.cnx.is_writable
    assert called == ["at once"]
    client.cnx.send(b"x")
    await settle()
    client.transport.client_reads_on()
    assert client.cnx.is_writable
    assert called == ["at once", "later"]


async def test_waiters_are_called_when_a_full_queue_went_out_at_once(
    server: Server, settings: ConnectionSettings
) -> None:
    client = await server.connect()
    called: list[bool] = []
    client.cnx.write([bytes(settings.output_high_water_bytes)])
    client.cnx.when_writable(lambda: called.append(client.cnx.is_writable))
    assert not client.cnx.is_writable
    await settle()
    assert called == [True]


async def test_answers_nobody_reads_stop_the_requests(
    server: Server, settings: ConnectionSettings
) -> None:
    client = await server.connect()
    client.transport.is_client_reading = False
    client.cnx.send(bytes(3 * settings.output_high_water_bytes))
    await settle()
    assert client.transport.is_reading_paused
    client.transport.client_reads_on()
    assert not client.transport.is_reading_paused


async def test_nothing_goes_out_after_the_end(server: Server) -> None:
    client = await server.connect()
    called: list[bool] = []
    client.cnx.close()
    client.cnx.send(commands.pong())
    client.cnx.write([commands.pong()])
    client.cnx.when_writable(lambda: called.append(client.cnx.is_connected))
    assert not await client.receives()
    assert called == [False]


# --- back-pressure -------------------------------------------------------------------------------


async def test_reading_pauses_while_too_much_is_in_flight(server: Server) -> None:
    client, producer = await with_producer(server)
    in_flight = producer.request.in_flight
    for _ in range(in_flight.max_entries):
        in_flight.started(10)
    assert client.transport.is_reading_paused
    assert client.cnx.is_reading_paused
    in_flight.finished(in_flight.max_entries // 2, 10 * in_flight.max_entries // 2)
    assert not client.transport.is_reading_paused


@pytest.mark.parametrize(
    ("payload_bytes", "read_bytes"),
    [(1000, READ_BYTES), (LARGE_READ_FRAMES[0], LARGE_READ_BYTES)],
    ids=["small frames", "large frames"],
)
async def test_full_reads_one_after_the_other_leave_a_turn_to_others(
    server: Server, payload_bytes: int, read_bytes: int
) -> None:
    client, producer = await with_producer(server)
    count = (2 * FULL_READS_IN_A_TURN + 1) * read_bytes // payload_bytes
    payload = bytes(payload_bytes)
    stream = b"".join(send_frame(payload, sequence_id=number) for number in range(count))
    position, full_reads_count, pauses_at = 0, 0, []
    while position < len(stream):
        lent = client.cnx.get_buffer(-1)
        piece = stream[position : position + len(lent)]
        lent[: len(piece)] = piece
        client.cnx.buffer_updated(len(piece))
        position += len(piece)
        full_reads_count += len(piece) == len(lent)
        if client.transport.is_reading_paused:
            pauses_at.append(full_reads_count)
            assert not client.cnx.is_held_back
            await settle()
            assert not client.transport.is_reading_paused
    assert pauses_at == [FULL_READS_IN_A_TURN, 2 * FULL_READS_IN_A_TURN]
    assert [each[0] for each in producer.published] == list(range(count))


async def test_reads_that_fill_a_part_of_the_memory_never_end_the_turn(server: Server) -> None:
    client, _ = await with_producer(server)
    client.cnx.get_buffer(-1)[:READ_BYTES] = send_frame(bytes(LARGE_READ_BYTES // 2 - 100))[
        :READ_BYTES
    ]
    client.cnx.buffer_updated(READ_BYTES)  # the first of a large frame, and a full one
    for _ in range(FULL_READS_IN_A_TURN):
        assert len(client.cnx.get_buffer(-1)) == LARGE_READ_BYTES
        client.cnx.buffer_updated(1000)
        assert not client.transport.is_reading_paused


async def with_consumer(server: Server) -> tuple[Client, StandInProducer, StandInConsumer]:
    """A connection with a producer and a consumer, both with id 1."""
    client, producer = await with_producer(server)
    subscribe = CommandSubscribe(
        topic=TOPIC, subscription="s", subType=1, consumer_id=1, request_id=2
    )
    await client.asks(subscribe)
    return client, producer, server.topic().consumers[0]


@pytest.mark.parametrize("limit", ["entries", "memory"])
async def test_consumers_go_on_beside_a_producer_that_is_held_back(
    server: Server, limit: str
) -> None:
    server.connections.publish_buffer.limit = 1000
    client, producer, consumer = await with_consumer(server)
    in_flight = producer.request.in_flight
    count, size = (in_flight.max_entries, 0) if limit == "entries" else (1, 1000)
    for _ in range(count):
        in_flight.started(size)
    ack = CommandAck(
        consumer_id=1,
        ack_type=CommandAck.Individual,
        message_id=[MessageIdData(ledgerId=1, entryId=1)],
        request_id=3,
    )
    client.cnx.data_received(
        b"".join(send_frame(b"%d" % number, sequence_id=number) for number in range(300))
        + commands.encode(CommandPing())
        + commands.encode(ack)
        + commands.encode(CommandFlow(consumer_id=1, messagePermits=7))
        + commands.encode(CommandCloseProducer(producer_id=1, request_id=4))
    )
    answers = [each.DESCRIPTOR.name for each in await client.receives()]
    assert answers == ["CommandPong", "CommandAckResponse"]
    assert consumer.permits == [7]
    assert len(consumer.acknowledged) == 1
    assert producer.published == []
    assert not client.cnx.is_reading_paused
    assert server.connections.paused_count == 1
    in_flight.finished(count, size * count)
    answers = [each.DESCRIPTOR.name for each in await client.receives()]
    assert answers == ["CommandSuccess"]
    assert [each[-1] for each in producer.published] == [b"%d" % n for n in range(300)]
    assert server.connections.paused_count == 0
    assert server.connections.waiting_budget.bytes_count == 0


async def test_publishes_that_wait_stop_again_at_a_limit_and_keep_their_order(
    server: Server,
) -> None:
    client, producer, _ = await with_consumer(server)
    in_flight = producer.request.in_flight
    in_flight.max_entries, in_flight.resume_entries = 10, 5
    producer.publish_run = lambda sends: [producer.publish(*send) for send in sends]  # type: ignore[assignment,method-assign,return-value]
    published: list[bytes] = []

    def publish(*send: Any) -> None:
        published.append(send[-1])
        in_flight.started(10)

    producer.publish = publish  # type: ignore[method-assign]
    wanted = [b"%03d" % number + bytes(30_000) for number in range(60)]
    for payload in wanted:  # each behind the ones that wait, though there is room at times
        client.cnx.data_received(send_frame(payload))
        await settle()
        assert len(published) <= 10 + 3
    while len(published) < 60:
        in_flight.finished(in_flight.entries_count, 10 * in_flight.entries_count)
        before = len(published)
        await settle()
        assert 0 < len(published) - before <= 10 + 3
    assert published == wanted


async def test_a_client_that_sends_too_much_beside_its_limit_is_not_read(server: Server) -> None:
    client, producer, _ = await with_consumer(server)
    in_flight = producer.request.in_flight
    for _ in range(in_flight.max_entries):
        in_flight.started(10)
    for _ in range(8):
        assert not client.transport.is_reading_paused
        client.cnx.data_received(send_frame(bytes(1_000_000)) + send_frame(bytes(100_000)))
    assert client.transport.is_reading_paused
    in_flight.finished(in_flight.max_entries, 10 * in_flight.max_entries)
    await settle()
    assert not client.transport.is_reading_paused
    assert len(producer.published) == 16
    for _ in range(in_flight.max_entries):
        in_flight.started(10)
    client.cnx.data_received(send_frame())
    assert server.connections.waiting_budget.bytes_count > 0
    client.cnx.connection_lost(None)
    assert server.connections.waiting_budget.bytes_count == 0


async def test_a_client_is_read_again_though_others_wait_with_all_there_may_be(
    server: Server,
) -> None:
    client, producer, _ = await with_consumer(server)
    budget = server.connections.waiting_budget
    budget.bytes_count = budget.max_bytes
    in_flight = producer.request.in_flight
    for _ in range(in_flight.max_entries):
        in_flight.started(10)
    assert client.transport.is_reading_paused
    in_flight.finished(in_flight.max_entries, 10 * in_flight.max_entries)
    await settle()
    assert not client.transport.is_reading_paused
    assert server.connections.paused_count == 0


async def test_a_producer_that_is_closed_while_its_sends_wait_costs_no_connection(
    server: Server,
) -> None:
    client, producer, _ = await with_consumer(server)
    in_flight = producer.request.in_flight
    for _ in range(in_flight.max_entries):
        in_flight.started(10)
    client.cnx.data_received(send_frame(b"before"))
    client.cnx.producer_closed_by_broker(1)
    client.cnx.data_received(send_frame(b"late"))
    for _ in range(2):
        client.cnx.closed_producers.on_interval()
    client.sends(CommandProducer(topic=TOPIC, producer_id=1, request_id=9, producer_name="p2"))
    await settle()
    client.cnx.data_received(send_frame(b"again"))
    in_flight.finished(in_flight.max_entries, 10 * in_flight.max_entries)
    answers = [each.DESCRIPTOR.name for each in await client.receives()]
    assert answers == ["CommandCloseProducer", "CommandProducerSuccess"]
    assert not client.is_closed
    assert producer.published == []
    assert [each[-1] for each in server.topic().producers["p2"].published] == [b"again"]


async def test_what_waits_behind_its_limit_does_not_make_a_client_alive(server: Server) -> None:
    client, producer, _ = await with_consumer(server)
    in_flight = producer.request.in_flight
    for _ in range(in_flight.max_entries):
        in_flight.started(10)
    client.cnx.data_received(send_frame())
    client.cnx.keep_alive.is_waiting = True
    is_alive = asyncio.get_running_loop().create_task(client.cnx.check_liveness())
    await settle()
    in_flight.finished(in_flight.max_entries, 10 * in_flight.max_entries)
    await settle()
    assert len(producer.published) == 1
    assert client.cnx.keep_alive.is_waiting
    assert not is_alive.done()
    client.cnx.data_received(commands.pong())
    assert await is_alive


async def test_reading_goes_on_only_when_no_reason_is_left(
    server: Server, settings: ConnectionSettings
) -> None:
    client, producer = await with_producer(server)
    in_flight = producer.request.in_flight
    for _ in range(in_flight.max_entries):
        in_flight.started(10)
    client.transport.is_client_reading = False
    client.cnx.send(bytes(3 * settings.output_high_water_bytes))
    await settle()
    in_flight.finished(in_flight.max_entries, 10 * in_flight.max_entries)
    assert client.transport.is_reading_paused
    client.transport.client_reads_on()
    assert not client.transport.is_reading_paused


async def test_reading_pauses_while_too_many_requests_are_under_way(server: Server) -> None:
    client = await server.connect()
    server.topics.gate.clear()
    lookups = (
        CommandGetTopicsOfNamespace(namespace="public/default", request_id=index)
        for index in range(MAX_REQUESTS_UNDER_WAY)
    )
    client.sends(*lookups)
    await settle()
    assert client.transport.is_reading_paused
    server.topics.gate.set()
    assert len(await client.receives()) == MAX_REQUESTS_UNDER_WAY
    assert not client.transport.is_reading_paused


# --- life ----------------------------------------------------------------------------------------


async def test_end_of_the_connection_ends_all_that_is_on_it(server: Server) -> None:
    client, producer = await with_producer(server)
    subscribe = CommandSubscribe(
        topic=TOPIC, subscription="s", consumer_id=1, request_id=2, subType="Shared"
    )
    await client.asks(subscribe)
    server.topics.gate.clear()
    client.sends(
        CommandProducer(topic=TOPIC, producer_id=2, request_id=3, producer_name="late"),
        CommandSubscribe(
            topic=TOPIC, subscription="s", consumer_id=2, request_id=4, subType="Shared"
        ),
    )
    await settle()
    client.cnx.connection_lost(None)
    server.topics.gate.set()
    await settle()
    assert producer.lost
    assert [consumer.is_closed for consumer in server.topic().consumers] == [True]
    assert list(server.topic().producers) == ["p"]
    assert server.connections.count == 0


async def test_client_below_version_5_is_disconnected_where_others_are_told(
    server: Server,
) -> None:
    client, producer = await with_producer(server, version=4)
    client.cnx.producer_closed_by_broker(1)
    assert client.is_closed
    assert not producer.lost
    other = await server.connect(version=4)
    other.cnx.consumer_closed_by_broker(1)
    assert other.is_closed


async def test_liveness_is_asked_once_for_all_who_want_to_know(server: Server) -> None:
    client = await server.connect()
    questions = [asyncio.ensure_future(client.cnx.check_liveness()) for _ in range(3)]  # noqa: TID251
    assert [answer.DESCRIPTOR.name for answer in await client.receives()] == ["CommandPing"]
    client.sends(CommandPing())
    assert await asyncio.gather(*questions) == [True, True, True]


async def test_client_that_does_not_answer_is_gone(
    server: Server, settings: ConnectionSettings
) -> None:
    client, producer = await with_producer(server)
    before = asyncio.get_running_loop().time()
    assert not await client.cnx.check_liveness()
    waited = asyncio.get_running_loop().time() - before
    assert waited == settings.liveness_check_timeout_seconds
    assert producer.lost
    assert not await client.cnx.check_liveness()


async def test_client_whose_bytes_are_not_read_counts_as_alive(server: Server) -> None:
    client, producer = await with_producer(server)
    for _ in range(producer.request.in_flight.max_entries):
        producer.request.in_flight.started(1)
    assert await client.cnx.check_liveness()


async def test_client_that_knows_no_ping_counts_as_alive(server: Server) -> None:
    client = await server.connect(version=0)
    assert await client.cnx.check_liveness()


async def test_broker_metadata_goes_to_clients_that_ask_where_it_is_exposed(
    server: Server,
) -> None:
    flags = FeatureFlags(supports_broker_entry_metadata=True)
    client = await server.connect(feature_flags=flags)
    assert not client.cnx.supports_broker_entry_metadata
    assert client.cnx.client_version == "test"
    assert client.cnx.remote_address.startswith("/127.0.0.1:5")
    assert "127.0.0.1" in repr(client.cnx)


async def test_lookup_and_eof_at_once_are_fine(server: Server) -> None:
    client = await server.connect()
    client.sends(CommandLookupTopic(topic=TOPIC, request_id=1))
    assert not client.cnx.eof_received()
    client.cnx.connection_lost(ConnectionResetError())
    await settle()
    assert server.connections.count == 0


async def test_nothing_is_writable_until_the_broker_knows_what_it_owns(server: Server) -> None:
    client = await server.connect()
    server.connections.start()
    called: list[str] = []
    server.namespaces.is_holding = True
    assert not client.cnx.is_writable
    client.cnx.when_writable(lambda: called.append("later"))
    await settle()
    assert called == []
    server.namespaces.is_holding = False
    server.namespaces.settled()
    await settle()
    assert called == ["later"]
    assert client.cnx.is_writable


async def test_a_closed_connection_is_not_writable(server: Server) -> None:
    client = await server.connect()
    assert client.cnx.is_writable
    client.cnx.close()
    assert not client.cnx.is_writable
