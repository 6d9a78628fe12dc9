"""One connection: handshake, requests, news, keep-alive, and brokers that misbehave."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock, patch

import pytest

from pulsar_py.client.brokers.client_cnx import ClientCnx, CnxSettings
from pulsar_py.client.messages.message import EntryKey
from pulsar_py.client.security.authentication import AuthenticationToken
from pulsar_py.common.errors import (
    AuthenticationError,
    ClientTimeoutError,
    ConnectError,
    ConnectionClosedError,
    RemoteProtocolError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandProducer,
    FeatureFlags,
    ServerError,
)
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.wire import client_commands, commands
from pulsar_py.wire.versions import Feature
from tests.scripted_broker import ScriptedBroker, simulated
from tests.wire_client import stored_entry

TOPIC = "persistent://a/b/c"


class Recorder:
    """A handler of any kind that writes down what it is told."""

    def __init__(self) -> None:
        self.news: list[tuple[object, ...]] = []
        self.is_awaited = False

    def on_send_receipt(self, *values: int) -> None:
        self.news.append(("receipt", *values))

    def on_lone_receipt(self, *values: int) -> None:
        self.news.append(("lone receipt", *values))

    def on_send_receipts(self, *values: int) -> None:
        self.news.append(("receipts", *values))

    def on_send_error(self, *values: object) -> None:
        self.news.append(("send error", *values))

    def on_message(
        self, message: CommandMessage, headers_and_payload: bytes, key: EntryKey | None = None
    ) -> None:
        _, entry_id = key or (0, message.message_id.entryId)
        self.news.append(("message", entry_id, len(headers_and_payload)))

    def on_batch_end(self) -> None:
        self.news.append(("batch end",))

    def on_close_producer(self, cnx: ClientCnx, *urls: str | None) -> None:
        self.news.append(("close", *urls))

    on_close_consumer = on_close_producer

    def on_topic_migrated(self, cnx: ClientCnx, *urls: str | None) -> None:
        self.news.append(("migrated", *urls))

    def on_active_consumer_change(self, *, is_active: bool) -> None:
        self.news.append(("active", is_active))

    def on_reached_end_of_topic(self) -> None:
        self.news.append(("end of topic",))

    def on_topic_list_update(self, *values: object) -> None:
        self.news.append(("topics", *values))

    def on_connection_closed(self, cnx: ClientCnx) -> None:
        self.news.append(("connection closed",))


class Connected:
    """A connection to a scripted broker, for the time of a block."""

    def __init__(self, broker: ScriptedBroker, **settings: object) -> None:
        self.tasks = TaskOwner("test")
        ids = iter(range(1000))
        self.cnx = ClientCnx(
            CnxSettings(remote_address=broker.address, **settings),
            clock=VirtualClock(),
            tasks=self.tasks,
            new_request_id=lambda: next(ids),
        )
        self.broker = broker

    async def open(self) -> ClientCnx:
        host, port = self.broker.address.split(":")
        await asyncio.get_running_loop().create_connection(lambda: self.cnx, host, int(port))
        await self.cnx.handshake.run()
        return self.cnx

    async def __aenter__(self) -> ClientCnx:
        return await self.open()

    async def __aexit__(self, *error: object) -> None:
        self.cnx.close()
        await self.tasks.close()


@simulated
async def test_the_handshake_says_who_we_are_and_learns_the_brokers_limits(
    broker: ScriptedBroker,
) -> None:
    flags = FeatureFlags(supports_topic_watchers=True)
    broker.script[BaseCommand.CONNECT] = lambda end, command: commands.connected(
        "x", 19, 1024, flags
    )
    async with Connected(broker, proxy_to_broker="b:1") as cnx:
        (connect,) = broker.of(BaseCommand.CONNECT)
        assert connect.connect.auth_method_name == "none"
        assert connect.connect.proxy_to_broker_url == "b:1"
        assert connect.connect.feature_flags.supports_auth_refresh
        assert cnx.is_connected
        assert (cnx.protocol_version, cnx.max_message_size) == (19, 1024)
        assert cnx.feature_flags.supports_topic_watchers
        assert cnx.supports(Feature.ACK_RESPONSE)
        assert not cnx.supports(Feature.TOPIC_MIGRATED)


@simulated
async def test_a_broker_that_refuses_the_connection_is_quoted(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = lambda end, command: commands.error(
        commands.NO_REQUEST_ID, ServerError.AuthenticationError, "bad token"
    )
    with pytest.raises(AuthenticationError, match="bad token"):
        await Connected(broker).open()


@simulated
async def test_a_broker_that_hangs_up_in_the_handshake_fails_it(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = lambda end, command: end.cut()
    with pytest.raises(ConnectError, match="broker:"):
        await Connected(broker).open()


@simulated
async def test_challenges_are_answered_with_fresh_credentials(broker: ScriptedBroker) -> None:
    tokens = iter(["one", "two", "three"])
    authentication = AuthenticationToken(lambda: next(tokens))
    challenge = commands.auth_challenge(
        "token", b"PulsarAuthRefresh", server_version="x", protocol_version=21
    )
    polite = broker.script[BaseCommand.CONNECT]
    broker.script[BaseCommand.CONNECT] = lambda end, command: challenge
    broker.script[BaseCommand.AUTH_RESPONSE] = polite
    async with Connected(broker, authentication=authentication) as cnx:
        broker.script[BaseCommand.AUTH_RESPONSE] = lambda end, command: None
        broker.end.push(challenge)
        await asyncio.sleep(1)

        sent = [each.connect.auth_data for each in broker.of(BaseCommand.CONNECT)]
        sent += [each.authResponse.response.auth_data for each in broker.of(_AUTH_RESPONSE)]
        assert sent == [b"one", b"two", b"three"]
        assert cnx.is_connected


_AUTH_RESPONSE = BaseCommand.AUTH_RESPONSE


@simulated
async def test_credentials_that_cannot_be_had_close_the_connection(broker: ScriptedBroker) -> None:
    tokens = iter(["one"])
    async with Connected(
        broker, authentication=AuthenticationToken(lambda: next(tokens, None))
    ) as cnx:
        broker.end.push(
            commands.auth_challenge("token", b"x", server_version="x", protocol_version=21)
        )
        await asyncio.sleep(1)
        assert not cnx.is_connected


@simulated
async def test_an_answer_goes_to_its_request(broker: ScriptedBroker) -> None:
    async with Connected(broker) as cnx:
        frame = client_commands.partitioned_metadata(TOPIC, 5)
        answer = await cnx.request(5, frame, subject=TOPIC)
        assert answer.partitionMetadataResponse.request_id == 5
        assert cnx.is_idle


@simulated
async def test_a_refusal_is_raised_with_the_subject(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PARTITIONED_METADATA] = lambda end, command: commands.error(
        5, ServerError.TopicNotFound, "nope"
    )
    async with Connected(broker) as cnx:
        with pytest.raises(TopicNotFoundError, match=f"{TOPIC}: nope"):
            await cnx.request(5, client_commands.partitioned_metadata(TOPIC, 5), subject=TOPIC)
        assert cnx.is_connected


@simulated
async def test_no_answer_is_a_time_out_that_names_all(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: None
    async with Connected(broker) as cnx:
        frame = client_commands.lookup(TOPIC, 5)
        with pytest.raises(ClientTimeoutError, match=f"{TOPIC}: broker:.* LOOKUP in 2 s"):
            await cnx.request(5, frame, timeout_seconds=2, subject=TOPIC)
        assert asyncio.get_running_loop().time() == 2
        broker.end.push(commands.lookup_failed(5, ServerError.TopicNotFound, "late"))
        await asyncio.sleep(1)
        assert cnx.is_connected


@simulated
async def test_a_cancelled_request_leaves_nothing(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: None
    async with Connected(broker) as cnx:
        task = asyncio.get_running_loop().create_task(
            cnx.request(5, client_commands.lookup(TOPIC, 5))
        )
        await asyncio.sleep(1)
        assert not cnx.is_idle
        task.cancel()
        await asyncio.wait([task])
        assert cnx.is_idle


@simulated
async def test_a_waiting_producer_is_told_and_then_waits_for_ever(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PRODUCER] = lambda end, command: commands.producer_success(
        5, "p", is_ready=False
    )
    queued = []
    async with Connected(broker) as cnx:
        frame = commands.encode(CommandProducer(topic=TOPIC, producer_id=1, request_id=5))
        task = asyncio.get_running_loop().create_task(
            cnx.request_producer(5, frame, on_queued=lambda: queued.append(True))
        )
        await asyncio.sleep(10_000)
        assert queued == [True]
        assert not task.done()
        broker.end.push(commands.producer_success(5, "p", topic_epoch=3))
        assert (await task).producer_success.topic_epoch == 3


@simulated
async def test_the_end_of_the_connection_ends_requests_and_tells_handlers(
    broker: ScriptedBroker,
) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: end.cut()
    recorder = Recorder()
    async with Connected(broker) as cnx:
        cnx.register_producer(1, recorder)
        with pytest.raises(ConnectionClosedError, match=f"{TOPIC}: connection to broker:"):
            await cnx.request(5, client_commands.lookup(TOPIC, 5), subject=TOPIC)
        assert recorder.news == [("connection closed",)]
        with pytest.raises(ConnectionClosedError):
            await cnx.request(6, client_commands.lookup(TOPIC, 6))
        with pytest.raises(ConnectionClosedError):
            cnx.register_consumer(2, recorder)
        cnx.send(commands.ping())  # dropped
        await cnx.drain()
        await cnx.wait_closed()


@simulated
async def test_news_of_one_piece_of_data_comes_in_order_and_then_its_end(
    broker: ScriptedBroker,
) -> None:
    producer, consumer = Recorder(), Recorder()
    encoder = commands.SendReceiptEncoder()
    entry = stored_entry(b"body")
    async with Connected(broker) as cnx:
        cnx.register_producer(1, producer)
        cnx.register_consumer(2, consumer)
        broker.end.push(
            encoder.encode(1, 10, 7, 8)
            + commands.MessageEncoder(2).encode(7, 9, len(entry))
            + entry
            + encoder.encode(1, 11, -1, -1, 15)
            + encoder.encode(1, 12, 7, 9, 2**64 - 1)
            + encoder.encode(99, 11, 7, 9)
            + commands.send_error(1, 12, ServerError.ChecksumError, "sum")
        )
        await asyncio.sleep(0.1)

    assert producer.news == [
        ("receipt", 10, 0, 7, 8),
        ("receipt", 11, 15, -1, -1),
        ("receipt", 12, -1, 7, 9),
        ("send error", 12, ServerError.ChecksumError, "sum"),
        ("batch end",),
        ("connection closed",),
    ]
    assert consumer.news == [("message", 9, len(entry)), ("batch end",), ("connection closed",)]


@simulated
async def test_what_comes_alone_is_like_the_last_one_and_what_a_thread_waits_for_comes_last(
    broker: ScriptedBroker,
) -> None:
    producer, consumer = Recorder(), Recorder()
    news = producer.news = consumer.news
    encoder, messages = commands.SendReceiptEncoder(), commands.MessageEncoder(2)
    entry = stored_entry(b"body")
    expected: list[tuple[object, ...]] = []
    async with Connected(broker) as cnx:
        cnx.register_producer(1, producer)
        cnx.register_consumer(2, consumer)
        consumer.on_batch_end = lambda: news.append(("handed over",))
        for number in range(126, 134):  # 128 takes a byte more
            consumer.is_awaited = number > 130
            message = messages.encode(7, number, len(entry)) + entry
            broker.end.push(encoder.encode(1, number, 7, number) + message)
            receipt = ("lone receipt", number, 0, 7, number)
            handed_over = [("message", number, len(entry)), ("handed over",)]
            if number in {126, 128}:  # nothing like them came before
                expected += [("receipt", number, 0, 7, number), handed_over[0]]
                expected += [("batch end",), handed_over[1]]
            elif consumer.is_awaited:
                expected += [receipt, *handed_over]
            else:
                expected += [*handed_over, receipt]
            await asyncio.sleep(0.1)
        assert news == expected


@simulated
async def test_a_receipt_without_anything_else_is_handed_over_alone(
    broker: ScriptedBroker,
) -> None:
    producer, encoder = Recorder(), commands.SendReceiptEncoder()
    async with Connected(broker) as cnx:
        cnx.register_producer(1, producer)
        for number in range(126, 130):  # 128 takes a byte more
            broker.end.push(encoder.encode(1, number, 7, number))
            await asyncio.sleep(0.1)
        broker.end.push(encoder.encode(1, 130, 8, 130))  # of another ledger
        await asyncio.sleep(0.1)
        broker.end.push(encoder.encode(1, 131, 8, 131) * 2)
        await asyncio.sleep(0.1)
        cnx.unregister_producer(1)
        broker.end.push(encoder.encode(1, 132, 8, 132))
        await asyncio.sleep(0.1)
        assert cnx.is_connected
    assert producer.news == [
        ("receipt", 126, 0, 7, 126),
        ("batch end",),
        ("lone receipt", 127, 0, 7, 127),
        ("receipt", 128, 0, 7, 128),
        ("batch end",),
        ("lone receipt", 129, 0, 7, 129),
        ("receipt", 130, 0, 8, 130),
        ("batch end",),
        ("receipt", 131, 0, 8, 131),
        ("receipt", 131, 0, 8, 131),
        ("batch end",),
    ]


@simulated
async def test_receipts_in_a_row_are_handed_over_together(broker: ScriptedBroker) -> None:
    one, other = Recorder(), Recorder()
    encoder = commands.SendReceiptEncoder()
    async with Connected(broker) as cnx:
        cnx.register_producer(1, one)
        cnx.register_producer(2, other)
        broker.end.push(
            encoder.encode_run(1, 7, 20, list(range(10, 40)), [None] * 30)
            + encoder.encode(2, 5, 8, 0)
            + encoder.encode(2, 6, 8, 1)
            + encoder.encode(1, 40, 7, 50)
            + encoder.encode(1, 41, 7, 52)
        )
        await asyncio.sleep(0.1)

    assert one.news == [
        ("receipt", 10, 0, 7, 20),
        ("receipts", 11, 0, 7, 21, 29),
        ("receipt", 40, 0, 7, 50),
        ("receipt", 41, 0, 7, 52),
        ("batch end",),
        ("connection closed",),
    ]
    assert other.news[:2] == [("receipt", 5, 0, 8, 0), ("receipts", 6, 0, 8, 1, 1)]


@simulated
async def test_a_ping_is_answered(broker: ScriptedBroker) -> None:
    async with Connected(broker):
        broker.end.push(commands.ping())
        await asyncio.sleep(1)
        assert broker.types()[-1] == "PONG"


@simulated
async def test_an_idle_connection_asks_and_stays(broker: ScriptedBroker) -> None:
    async with Connected(broker) as cnx:
        await asyncio.sleep(200)
        assert cnx.is_connected
        assert broker.types().count("PING") == 6


@simulated
async def test_a_frame_that_never_ends_is_given_up_though_pings_are_answered(
    broker: ScriptedBroker,
) -> None:
    async with Connected(broker) as cnx:
        broker.end.push((5_000_000).to_bytes(4) + (10).to_bytes(4))
        await asyncio.sleep(61)
        assert not cnx.is_connected
        assert broker.types().count("PING") == 1


@simulated
async def test_a_long_frame_may_come_slowly(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PING] = lambda end, command: None
    async with Connected(broker) as cnx:
        broker.end.push((100_000).to_bytes(4) + (10).to_bytes(4))
        for _ in range(20):
            broker.end.push(bytes(1024))
            await asyncio.sleep(20)
        assert cnx.is_connected


@simulated
async def test_a_broker_that_stops_answering_is_given_up(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PING] = lambda end, command: None
    recorder = Recorder()
    async with Connected(broker) as cnx:
        cnx.register_consumer(1, recorder)
        await asyncio.sleep(59)
        assert cnx.is_connected
        await asyncio.sleep(2)
        assert not cnx.is_connected
        assert recorder.news == [("connection closed",)]


GARBAGE = {
    "a frame of 2 GB": b"\x7f\xff\xff\xff",
    "a command longer than its frame": b"\x00\x00\x00\x08\x00\x00\x00\x09" + b"x" * 4,
    "no protobuf": b"\x00\x00\x00\x08\x00\x00\x00\x04\xff\xff\xff\xff",
    "a command of clients": commands.encode(
        CommandProducer(topic="t", producer_id=1, request_id=1)
    ),
    "a message without entry": commands.MessageEncoder(1).encode(1, 2, 0),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_ends_the_connection_with_a_reason(name: str) -> None:
    @simulated
    async def test(broker: ScriptedBroker) -> None:
        broker.script[BaseCommand.LOOKUP] = lambda end, command: GARBAGE[name]
        async with Connected(broker) as cnx:
            with pytest.raises(ConnectionClosedError, match=f"{TOPIC}: .*broke the protocol"):
                await cnx.request(5, client_commands.lookup(TOPIC, 5), subject=TOPIC)
            assert not cnx.is_connected

    test()


@simulated
async def test_an_answer_of_another_kind_ends_the_connection(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.LOOKUP] = lambda end, command: commands.success(5)
    async with Connected(broker) as cnx:
        with pytest.raises(RemoteProtocolError, match=f"{TOPIC}: .* SUCCESS where LOOKUP_RESPONSE"):
            await cnx.request(5, client_commands.lookup(TOPIC, 5), subject=TOPIC)
        assert not cnx.is_connected


@simulated
async def test_a_handler_that_fails_costs_the_connection_and_is_logged(
    broker: ScriptedBroker,
) -> None:
    class Faulty(Recorder):
        def on_reached_end_of_topic(self) -> None:
            raise ZeroDivisionError

    async with Connected(broker) as cnx:
        cnx.register_consumer(1, Faulty())
        broker.end.push(commands.reached_end_of_topic(1))
        await asyncio.sleep(1)
        assert not cnx.is_connected


@simulated
async def test_writes_of_one_tick_go_out_in_order_together(broker: ScriptedBroker) -> None:
    async with Connected(broker) as cnx:
        for permits in range(1, 6):
            cnx.write((client_commands.flow(permits, permits),))
        cnx.send(commands.ping())
        await asyncio.sleep(0.1)
        assert broker.types()[1:] == ["FLOW"] * 5 + ["PING"]


@simulated
async def test_what_is_written_through_does_not_overtake(broker: ScriptedBroker) -> None:
    async with Connected(broker) as cnx:
        cnx.write((commands.ping()[:3],))
        cnx.write_through((commands.ping()[3:],))
        await asyncio.sleep(0.1)
        cnx.write_through((commands.ping()[:3],))
        cnx.write_through((commands.ping()[3:],))
        await asyncio.sleep(0.1)
        assert [each.type for each in broker.received[-2:]] == [BaseCommand.PING] * 2
        cnx.close()
        cnx.write_through((commands.ping(),))


@simulated
async def test_what_is_written_through_goes_out_at_once_after_each_read(
    broker: ScriptedBroker,
) -> None:
    async with Connected(broker) as cnx:
        for _ in range(3):
            written: list[bytes] = []
            with patch.object(cnx._transport, "writelines", side_effect=written.extend):
                cnx.write_through((b"1",))
                assert written == [b"1"]
                cnx.write_through((b"2",))
                cnx.send(b"3")
                cnx.write_through((b"4",))
                assert written == [b"1"]
                await asyncio.sleep(0)
                assert written == [b"1", b"2", b"3", b"4"]
                cnx.write_through((b"5",))
                await asyncio.sleep(0)
                cnx.write_through((b"6",))  # neither read nor flushed since
                assert written[4:] == [b"5"]
                await asyncio.sleep(0)
                assert written[4:] == [b"5", b"6"]
                cnx.write_through((b"7",))
            broker.end.transport.write(commands.pong())
            await asyncio.sleep(0.1)


@simulated
async def test_who_gathers_until_the_flush_is_asked_once_and_in_order(
    broker: ScriptedBroker,
) -> None:
    async with Connected(broker) as cnx:
        written: list[bytes] = []
        with patch.object(cnx._transport, "writelines", side_effect=written.extend):
            cnx.before_flush(lambda: cnx.write((b"2",)))
            assert not cnx.writes_through
            cnx.write_through((b"1",))
            cnx.before_flush(lambda: cnx.write((b"3",)))
            assert written == []
            await asyncio.sleep(0)
            assert written == [b"1", b"2", b"3"]
            cnx.before_flush(lambda: cnx.write((b"4",)))
            cnx.flush()
            assert written == [b"1", b"2", b"3", b"4"]
            await asyncio.sleep(0)
            assert written == [b"1", b"2", b"3", b"4"]
        asked: list[bool] = []
        cnx.before_flush(lambda: asked.append(cnx.is_connected))
        cnx.close()
        cnx.before_flush(lambda: asked.append(cnx.is_connected))
        await asyncio.sleep(0)
        assert asked == [True, False]


class Direct:
    """The socket that a thread writes to; takes so many bytes of what it gets."""

    def __init__(self, transport: object, taken_bytes: int) -> None:
        self.transport = transport
        self.taken_bytes = taken_bytes

    def send(self, buffers: list[bytes]) -> bytes:
        return b"".join(buffers)[self.taken_bytes :]

    def close(self) -> None:
        """It has nothing to close."""


@simulated
async def test_a_thread_writes_only_where_nothing_has_to_be_written_before(
    broker: ScriptedBroker,
) -> None:
    async with Connected(broker) as cnx:
        assert not cnx.writes_alone  # this loop has no turns
        transport = Mock(get_write_buffer_size=lambda: 0)
        cnx._direct = Direct(transport, 3)
        assert cnx.writes_alone
        transport.get_write_buffer_size = lambda: 1
        assert not cnx.writes_alone
        transport.get_write_buffer_size = lambda: 0
        cnx.write((b"1",))
        assert not cnx.writes_alone
        written: list[bytes] = []
        with patch.object(cnx, "_transport", Mock(writelines=written.extend)):
            await asyncio.sleep(0)
            assert written == [b"1"]
            cnx.write_alone((b"abc",))
            assert not cnx.writes_alone  # one after each read or flush
            cnx.write((b"2",))
            await asyncio.sleep(0)
            cnx.write_alone((b"abcd", b"e"))
            cnx.write((b"3",))
            cnx._direct = None
            await asyncio.sleep(0)
        assert written == [b"1", b"2", b"de", b"3"]


@simulated
async def test_a_broker_that_does_not_read_makes_writers_wait(broker: ScriptedBroker) -> None:
    async with Connected(broker) as cnx:
        await cnx.drain()
        broker.end.transport.pause_reading()
        block = bytes(client_commands.flow(1, 1)) * 4000
        while cnx.is_writable:
            cnx.write((block,))
            await asyncio.sleep(0.01)
        waiter = asyncio.get_running_loop().create_task(cnx.drain())
        await asyncio.sleep(1)
        assert not waiter.done()
        broker.end.transport.resume_reading()
        await waiter
        assert cnx.is_writable


@simulated
async def test_what_was_queued_before_close_still_arrives(broker: ScriptedBroker) -> None:
    async with Connected(broker) as cnx:
        cnx.send(client_commands.flow(1, 1))
        cnx.close("done")
        await cnx.wait_closed()
        await asyncio.sleep(1)
        assert broker.types() == ["CONNECT", "FLOW"]
