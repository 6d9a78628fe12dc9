"""Topics, subscriptions and sockets as the connection layer sees them, without anything behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.common.position import EARLIEST, LedgerPositions, Position
from pulsar_py.managed_ledger.cursors.waiting_receipts import OnDurable
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandProducer, CommandSend
from pulsar_py.server.connection.connections import Connections
from pulsar_py.server.connection.server_cnx import ServerCnx
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.server.limits.in_flight import PublishBuffer
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LookupResult, LookupType
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.publishing.requests import ProducerGrant, ProducerRequest, SubscribeRequest
from pulsar_py.server.schema_registry import SchemaRegistry
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.wire.commands import FIELD_NAMES, encode, serialize
from pulsar_py.wire.framing import FrameDecoder, encode_message_header

Message = Any  # a command's message, read by its fields

TOPIC = "persistent://public/default/t"


class RecordingTransport(asyncio.Transport):
    """A socket whose client reads only when told to."""

    def __init__(self, protocol: ServerCnx, peer: tuple[str, int]) -> None:
        super().__init__({"peername": peer})
        self.protocol = protocol
        self.sent = bytearray()
        self.writes_count = 0
        self.is_reading_paused = False
        self.is_client_reading = True
        self.is_closing_now = False
        self.was_aborted = False
        self.unread = bytearray()
        self._high = 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del low
        self._high = high or 0

    def get_write_buffer_size(self) -> int:
        return len(self.unread)

    def writelines(self, list_of_data: Any) -> None:
        self.writes_count += 1
        data = b"".join(list_of_data)
        if self.is_client_reading:
            self.sent += data
            return
        self.unread += data
        if len(self.unread) > self._high:
            self.protocol.pause_writing()

    def client_reads_on(self) -> None:
        self.is_client_reading = True
        self.sent += self.unread
        self.unread.clear()
        self.protocol.resume_writing()

    def pause_reading(self) -> None:
        assert not self.is_reading_paused
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        assert self.is_reading_paused
        self.is_reading_paused = False

    def is_closing(self) -> bool:
        return self.is_closing_now

    def close(self) -> None:
        if self.is_closing_now:
            return
        self.is_closing_now = True
        if not self.unread:
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.was_aborted = True
        asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


class StandInProducer:
    def __init__(self, topic: StandInTopic, request: ProducerRequest, name: str) -> None:
        self.topic = topic
        self.request = request
        self.name = name
        self.producer_id = request.producer_id
        self.is_closed = False
        self.lost = False
        self.published: list[tuple[Any, ...]] = []
        self.may_close = asyncio.Event()
        self.may_close.set()

    def publish(self, *arguments: Any) -> None:
        self.published.append(arguments)

    def publish_run(self, sends: Sequence[tuple[Any, ...]]) -> None:
        self.published += sends

    def publish_plain(self, sequence_ids: Sequence[int], datas: list[bytes]) -> None:
        self.published += [
            (sequence_id, None, 1, False, False, data)
            for sequence_id, data in zip(sequence_ids, datas, strict=True)
        ]

    async def close(self) -> None:
        self.is_closed = True
        await self.may_close.wait()

    def on_connection_lost(self) -> None:
        self.is_closed = self.lost = True


class StandInSubscription:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.consumers: list[StandInConsumer] = []
        self.waiting_receipts: list[tuple[OnDurable, int]] = []
        self.holds_receipts = False
        self.write_error: Exception | None = None

    def when_acknowledged_durably(self, on_durable: OnDurable, number: int) -> None:
        self.waiting_receipts.append((on_durable, number))
        if not self.holds_receipts:
            on_durable((number,), self.write_error)

    async def _answer(self, *call: Any) -> None:
        self.calls.append(call)
        if self.error is not None:
            raise self.error

    async def unsubscribe(self, consumer: Any, *, force: bool) -> None:
        await self._answer("unsubscribe", force)

    async def reset_to_position(self, position: Position, ack_set: Sequence[int] | None) -> None:
        await self._answer("reset_to_position", position, ack_set)

    async def reset_to_time(self, timestamp_millis: int) -> None:
        await self._answer("reset_to_time", timestamp_millis)


class StandInConsumer:
    needs_commands = False

    def __init__(self, request: SubscribeRequest) -> None:
        self.request = request
        self.consumer_id = request.consumer_id
        self.reads_compacted = request.read_compacted
        self.subscription = StandInSubscription()
        self.permits: list[int] = []
        self.acknowledged: list[Message] = []
        self.acknowledged_whole: list[LedgerPositions] = []
        self.redelivered: list[Message] = []
        self.pending_acks: dict[tuple[int, int], int] = {}
        self.is_closed = False
        self.ack_receipts: OnDurable | None = None
        self.error: Exception | None = None

    def flow(self, permits_count: int) -> None:
        self.permits.append(permits_count)

    def acknowledge(self, command: Message) -> bool:
        if self.error is not None:
            raise self.error
        self.acknowledged.append(command)
        return True

    def acknowledge_whole(self, positions: LedgerPositions) -> bool:
        if self.error is not None:
            raise self.error
        self.acknowledged_whole.append(positions)
        return True

    def redeliver(self, command: Message, positions: Sequence[Position] | None = None) -> None:
        del positions
        self.redelivered.append(command)

    def close(self) -> None:
        self.is_closed = True


class StandInTopic:
    def __init__(self, name: TopicName) -> None:
        self.name = name
        self.settings = TopicSettings()
        self.is_system = False
        self.producers: dict[str, StandInProducer] = {}
        self.consumers: list[StandInConsumer] = []
        self.subscriptions: set[str] = set()
        self.producer_error: Exception | None = None
        self.is_exclusive_taken = False
        self.last_position = EARLIEST

    @property
    def consumers_count(self) -> int:
        return len(self.consumers)

    async def check_producer_allowed(self, request: ProducerRequest) -> None:
        if self.producer_error is not None:
            raise self.producer_error

    async def add_producer(self, request: ProducerRequest) -> ProducerGrant:
        name = "generated-0-0" if request.name is None else request.name
        producer = StandInProducer(self, request, name)
        self.producers[producer.name] = producer
        is_ready = not self.is_exclusive_taken
        return ProducerGrant(producer, producer.name, 41, None, is_ready)  # type: ignore[arg-type]

    async def subscribe(self, request: SubscribeRequest) -> StandInConsumer:
        consumer = StandInConsumer(request)
        self.consumers.append(consumer)
        self.subscriptions.add(request.subscription_name)
        return consumer

    def last_message_position(self) -> Position:
        return self.last_position


class StandInTopics:
    """A registry whose topics are made when asked for; `gate` holds loading back."""

    def __init__(self) -> None:
        self.topics: dict[str, StandInTopic] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.listed: list[str] = []
        self.partitions_count = 0
        self.error: Exception | None = None
        self.watchers: list[Callable[[Sequence[str], Sequence[str]], None]] = []
        self.partitioned = self  # a stand-in for PartitionedTopics, too

    async def get_or_load(self, name: TopicName, *, create_if_missing: bool) -> StandInTopic:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        if str(name) not in self.topics:
            if not create_if_missing:
                raise TopicNotFoundError(str(name))
            self.topics[str(name)] = StandInTopic(name)
        return self.topics[str(name)]

    async def exists(self, name: TopicName) -> bool:
        return str(name) in self.topics

    async def count_or_create(self, name: TopicName, *, auto_create: bool) -> int:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.partitions_count

    async def list_topics(self, namespace: NamespaceName, mode: Any) -> list[str]:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return sorted(self.listed)

    def watch(self, namespace: NamespaceName, callback: Any) -> Callable[[], None]:
        self.watchers.append(callback)
        return lambda: self.watchers.remove(callback)


class StandInNamespaces:
    def __init__(self) -> None:
        self.error: Exception | None = None
        self.doubt: Exception | None = None
        self.asked: list[tuple[str, bool, str | None]] = []
        self.is_holding = False
        self.settled: Callable[[], None] = lambda: None

    def holds_messages(self) -> bool:
        return self.is_holding

    def when_settled(self, callback: Callable[[], None]) -> None:
        self.settled = callback

    def check_session(self) -> None:
        if self.doubt is not None:
            raise self.doubt

    async def lookup(
        self, name: TopicName, *, authoritative: bool, listener_name: str | None
    ) -> LookupResult:
        self.asked.append((str(name), authoritative, listener_name))
        if self.error is not None:
            raise self.error
        return LookupResult(
            type=LookupType.CONNECT,
            addresses=BrokerAddresses(broker_url="pulsar://here:6650"),
            is_authoritative=True,
            proxy_through_service_url=False,
        )


class Client:
    """What is at the other end of one connection."""

    def __init__(self, cnx: ServerCnx, transport: RecordingTransport) -> None:
        self.cnx = cnx
        self.transport = transport
        self._decoder = FrameDecoder(10_000_000)

    def sends(self, *messages: Message) -> None:
        """All in one segment."""
        self.cnx.data_received(b"".join(encode(message) for message in messages))

    async def receives(self) -> list[Message]:
        """The messages of all commands that came, once nothing moves any more."""
        await settle()
        frames = self._decoder.decode(bytes(self.transport.sent))
        self.transport.sent.clear()
        answers = []
        for frame in frames:
            command = BaseCommand.FromString(frame.command)
            answers.append(getattr(command, FIELD_NAMES[command.type]))
        return answers

    async def asks(self, *messages: Message) -> Message:
        """Send, and take the one answer."""
        self.sends(*messages)
        answers = await self.receives()
        assert answers or not self.is_closed, (
            "the connection was closed; the log says why, a command that may not come is one that "
            "wire/connection_state.py does not name"
        )
        assert len(answers) == 1, answers
        return answers[0]

    @property
    def is_closed(self) -> bool:
        return self.transport.is_closing_now


class Server:
    """A broker's connections above stand-ins."""

    def __init__(
        self,
        clock: VirtualClock,
        settings: ConnectionSettings,
        schemas: SchemaRegistry,
        authenticators: Authenticators | None = None,
    ) -> None:
        self.topics = StandInTopics()
        self.namespaces = StandInNamespaces()
        self.schemas = schemas
        self.connections = Connections(
            topics=self.topics,  # type: ignore[arg-type]
            namespaces=self.namespaces,  # type: ignore[arg-type]
            schemas=schemas,
            publish_buffer=PublishBuffer(0),
            clock=clock,
            settings=settings,
            authenticators=authenticators,
        )
        self._ports = count(50_000)

    def open(self, host: str = "127.0.0.1") -> Client:
        """A socket, and no command yet."""
        cnx = self.connections.new_connection()
        transport = RecordingTransport(cnx, (host, next(self._ports)))
        cnx.connection_made(transport)
        return Client(cnx, transport)

    async def connect(self, version: int = 21, **fields: Any) -> Client:
        """A connection after its handshake."""
        from pulsar_py.proto.PulsarApi_pb2 import CommandConnect  # noqa: PLC0415

        client = self.open()
        client.sends(CommandConnect(client_version="test", protocol_version=version, **fields))
        answers = await client.receives()
        assert answers[0].DESCRIPTOR.name == "CommandConnected", answers
        return client

    def topic(self, name: str = TOPIC) -> StandInTopic:
        return self.topics.topics[name]


async def settle() -> None:
    """Let everything run that needs no time to pass."""
    for _ in range(30):
        await asyncio.sleep(0)


def send_frame(payload: bytes = b"payload", **fields: object) -> bytes:
    """A SEND as clients write it."""
    arguments = {"producer_id": 1, "sequence_id": 0} | fields
    command = serialize(CommandSend(**arguments))  # type: ignore[arg-type]
    return encode_message_header(command, len(payload)) + payload


async def with_producer(server: Server, **connect: object) -> tuple[Client, StandInProducer]:
    """A connection, and the producer with id 1 on it."""
    client = await server.connect(**connect)  # type: ignore[arg-type]
    await client.asks(CommandProducer(topic=TOPIC, producer_id=1, request_id=1, producer_name="p"))
    return client, server.topic().producers["p"]
