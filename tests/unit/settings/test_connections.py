"""Settings of connections, lookups, HTTP and the command line, as clients see them."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.admin.http_connection import HttpConnection
from pulsar_py.admin.http_messages import NO_CONTENT, Response
from pulsar_py.admin.http_server import HttpServer
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandConnect,
    CommandFlow,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandNewTxn,
    CommandProducer,
    CommandSend,
    CommandSubscribe,
    FeatureFlags,
    Schema,
    ServerError,
)
from pulsar_py.server.broker_settings import connection_settings
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.handlers import handle_lookup
from pulsar_py.server.limits import topic_list_budget
from pulsar_py.server.schema_registry import SchemaRegistry
from pulsar_py.server.security.authentication import (
    Authenticated,
    Authenticators,
    ClientCredentials,
)
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from pulsar_py.web import http_limits
from pulsar_py.wire.commands import serialize
from pulsar_py.wire.framing import encode_message_header
from pulsar_py.wire.payload import parse_broker_entry_metadata
from tests.unit.server.connection.standins import Client, Server
from tests.unit.server.topics.rig import Rig, entry, name_of
from tests.unit.settings.parts import broker, connect

TOPIC = "persistent://public/default/t"


def names(answers: list[object]) -> list[str]:
    return [each.DESCRIPTOR.name for each in answers]  # type: ignore[attr-defined]


async def publishing(rig: Rig, topic: str = TOPIC) -> Client:
    """A connection with producer 1."""
    client = await connect(rig)
    await rig.topic(name_of(topic.rpartition("/")[2], domain=topic.partition(":")[0]))
    await client.asks(CommandProducer(topic=topic, producer_id=1, request_id=1, producer_name="p"))
    return client


def send(client: Client, sequence_id: int, payload: bytes = b"m") -> None:
    command = serialize(CommandSend(producer_id=1, sequence_id=sequence_id))
    data = entry(sequence_id, payload)
    client.cnx.data_received(encode_message_header(command, len(data)) + data)


@pytest.mark.setting("keepAliveIntervalSeconds")
async def test_how_long_peers_may_be_silent(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, keepAliveIntervalSeconds=2) as rig:
        client = await connect(rig)
        await rig.clock.sleep(2.5)
        assert names(await client.receives()) == ["CommandPing"]
        await rig.clock.sleep(2.5)
        assert client.transport.was_aborted


@pytest.mark.setting("connectionLivenessCheckTimeoutMillis")
async def test_how_long_a_probed_peer_has_to_answer(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, connectionLivenessCheckTimeoutMillis=1000) as rig:
        client = await connect(rig)
        before = rig.clock.monotonic_seconds()
        assert not await client.cnx.check_liveness()
        assert rig.clock.monotonic_seconds() - before == pytest.approx(1)


@pytest.mark.setting("maxPendingPublishRequestsPerConnection")
async def test_messages_of_a_connection_without_receipt(virtual_clock: VirtualClock) -> None:
    store = SimulatedLedgerStore()
    settings = {"maxPendingPublishRequestsPerConnection": 2}
    async with broker(virtual_clock, ledgers=store, **settings) as rig:
        client = await publishing(rig)
        store.is_holding = True
        send(client, 0)
        assert not client.transport.is_reading_paused
        send(client, 1)
        assert client.transport.is_reading_paused
        store.release()


@pytest.mark.setting("maxMessagePublishBufferSizeInMB")
async def test_megabytes_of_the_broker_without_receipt(virtual_clock: VirtualClock) -> None:
    store = SimulatedLedgerStore()
    async with broker(virtual_clock, ledgers=store, maxMessagePublishBufferSizeInMB=1) as rig:
        client = await publishing(rig)
        store.is_holding = True
        send(client, 0, bytes(1_000_000))
        assert not client.transport.is_reading_paused
        send(client, 1, bytes(100_000))
        assert client.transport.is_reading_paused
        store.release()


@pytest.mark.setting("maxConcurrentNonPersistentMessagePerConnection")
async def test_non_persistent_messages_in_work(virtual_clock: VirtualClock) -> None:
    settings = {"maxConcurrentNonPersistentMessagePerConnection": 1}
    async with broker(virtual_clock, **settings) as rig:
        client = await publishing(rig, TOPIC.replace("persistent", "non-persistent"))
        send(client, 0)
        send(client, 1)
        receipts = await client.receives()
        stored = {each.sequence_id: each.message_id.ledgerId for each in receipts}
        assert stored == {0: 0, 1: 2**64 - 1}


def topic_list(request_id: int) -> CommandGetTopicsOfNamespace:
    return CommandGetTopicsOfNamespace(namespace="public/default", request_id=request_id)


def lookup(request_id: int) -> CommandLookupTopic:
    return CommandLookupTopic(topic=TOPIC, request_id=request_id)


@pytest.mark.setting("maxConcurrentLookupRequest")
async def test_lookups_in_work(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock, maxConcurrentLookupRequest=1) as rig:
        client = await connect(rig)
        client.sends(lookup(1), lookup(2))
        await rig.clock.sleep(0.1)
        errors = {each.request_id: each.error for each in await client.receives()}
        assert errors == {1: 0, 2: ServerError.TooManyRequests}


@pytest.mark.setting(
    "maxTopicListInFlightHeapMemSizeMB",
    "maxTopicListInFlightHeapMemSizePermitsAcquireQueueSize",
    "maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis",
)
async def test_bytes_of_topic_lists(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "maxTopicListInFlightHeapMemSizeMB": 1,
        "maxTopicListInFlightHeapMemSizePermitsAcquireQueueSize": 1,
        "maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis": 2000,
    }
    async with broker(virtual_clock, **settings) as rig:
        await rig.topic("t")
        slow, other = await connect(rig), await connect(rig)
        budget = rig.broker.connections.topic_lists
        monkeypatch.setattr(topic_list_budget, "LISTED_BYTES", 1024 * 1024)
        monkeypatch.setattr(handle_lookup, "SENT_BYTES", -1)  # nobody takes anything
        slow.sends(topic_list(1))
        await rig.clock.sleep(0.1)
        assert names(await slow.receives()) == ["CommandGetTopicsOfNamespaceResponse"]
        assert budget.in_flight_bytes > 1024 * 1024
        other.sends(topic_list(1), topic_list(2))
        await rig.clock.sleep(0.1)
        (full,) = await other.receives()
        assert (full.request_id, full.error) == (2, ServerError.TooManyRequests)
        await rig.clock.sleep(2)
        (late,) = await other.receives()
        assert (late.request_id, late.error) == (1, ServerError.TooManyRequests)
        monkeypatch.setattr(handle_lookup, "SENT_BYTES", 1 << 30)
        await rig.clock.sleep(0.1)
        assert budget.in_flight_bytes == 0
        assert (await other.asks(topic_list(3))).topics == [TOPIC]


@pytest.mark.setting("transactionCoordinatorEnabled")
async def test_who_wants_transactions_is_told_that_they_are_missing(
    virtual_clock: VirtualClock,
) -> None:
    async with broker(virtual_clock, transactionCoordinatorEnabled=True) as rig:
        client = await connect(rig)
        answer = await client.asks(CommandNewTxn(request_id=1, tc_id=0))
        assert "not supported by this version" in answer.message


@pytest.mark.setting(
    "brokerEntryMetadataInterceptors", "exposingBrokerEntryMetadataToClientEnabled"
)
async def test_what_stands_in_front_of_entries(virtual_clock: VirtualClock) -> None:
    settings = {
        "brokerEntryMetadataInterceptors": frozenset({"a.AppendIndexMetadataInterceptor"}),
        "exposingBrokerEntryMetadataToClientEnabled": True,
    }
    async with broker(virtual_clock, **settings) as rig:
        await rig.topic("t")
        client = await connect(rig, feature_flags=FeatureFlags(supports_broker_entry_metadata=True))
        await client.asks(
            CommandSubscribe(topic=TOPIC, subscription="s", subType=0, consumer_id=1, request_id=1)
        )
        client.sends(CommandFlow(consumer_id=1, messagePermits=10))
        send(await publishing(rig), 0)
        await rig.clock.sleep(0.01)
        sent = bytes(client.transport.sent)
        metadata = parse_broker_entry_metadata(sent[sent.rindex(b"\x0e\x02") :])
        assert metadata is not None
        assert metadata.index == 0


@pytest.mark.setting("schemaCompatibilityStrategy")
async def test_what_a_new_schema_has_to_respect(virtual_clock: VirtualClock) -> None:
    strategy = SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE
    async with broker(virtual_clock, schemaCompatibilityStrategy=strategy) as rig:
        await rig.topic("t")
        client = await connect(rig)
        for number, kind in enumerate((Schema.String, Schema.Int32), 1):
            command = CommandProducer(topic=TOPIC, producer_id=number, request_id=number)
            command.schema.name = "s"
            command.schema.type = kind
            command.schema.schema_data = b""
            answer = await client.asks(command)
            assert names([answer]) == ["CommandProducerSuccess"]


class Expiring:
    """An authentication method whose credentials hold for ten seconds."""

    method_name = "expiring"

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def new_state(self, credentials: ClientCredentials) -> Expiring:
        del credentials
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated:
        return Authenticated(auth_data.decode(), self._clock.wall_time_millis() + 10_000)


@pytest.mark.setting("authenticationRefreshCheckSeconds")
async def test_how_long_a_client_may_take_to_refresh_its_credentials(
    virtual_clock: VirtualClock,
) -> None:
    ledgers = await Bookie.start(
        MemoryDisk(),
        clock=virtual_clock,
        ledger_ids=CountedLedgerIds(),
        settings=BookieSettings(is_volatile=True),
    )
    server = Server(
        virtual_clock,
        connection_settings(BrokerConfig(authenticationRefreshCheckSeconds=6)),
        SchemaRegistry(MemoryMetadataStore(virtual_clock), ledgers, virtual_clock),
        Authenticators({"expiring": Expiring(virtual_clock)}),
    )
    server.connections.start()
    client = server.open()
    flags = FeatureFlags(supports_auth_refresh=True)
    await client.asks(
        CommandConnect(
            client_version="test",
            protocol_version=21,
            auth_method_name="expiring",
            auth_data=b"me",
            feature_flags=flags,
        )
    )
    await asyncio.sleep(9)
    assert "CommandAuthChallenge" not in names(await client.receives())
    await asyncio.sleep(2)
    assert "CommandAuthChallenge" in names(await client.receives())
    await asyncio.sleep(4)
    assert not client.is_closed
    await asyncio.sleep(3)
    assert client.is_closed
    await server.connections.close()
    await ledgers.close()


@pytest.mark.setting("httpServerIdleTimeout")
async def test_how_long_http_connections_may_be_idle(virtual_clock: VirtualClock) -> None:
    async def nothing(*_: object) -> Response:
        return NO_CONTENT

    limits = http_limits(BrokerConfig(httpServerIdleTimeout=5000))
    server = HttpServer(nothing, clock=virtual_clock, limits=limits)
    connection = HttpConnection(server)
    transport = WebTransport()
    connection.connection_made(transport)
    connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await asyncio.sleep(4.9)
    assert transport.answers.startswith(b"HTTP/1.1 204")
    assert not transport.was_aborted
    await asyncio.sleep(6)
    assert transport.was_aborted
    await server.close()


class WebTransport(asyncio.Transport):
    """A socket of HTTP that takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = b""
        self.was_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.answers += bytes(data)

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.was_aborted

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        self.was_aborted = True
