"""What tests of topics stand on: a broker in memory, and connections that write down what they get."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.metadata.initialization import initialize_cluster
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, MessageMetadata, ServerError
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest, SubscriptionType
from pulsar_py.server.limits.in_flight import InFlightPublishes
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.publishing.producer import Producer
from pulsar_py.server.publishing.requests import ProducerGrant, ProducerRequest
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.topic import Topic
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from pulsar_py.wire.framing import FrameDecoder
from pulsar_py.wire.payload import encode_entry

NAMESPACE = NamespaceName("public", "default")


def name_of(local_name: str, *, domain: str = "persistent") -> TopicName:
    return TopicName.parse(f"{domain}://public/default/{local_name}")


class FakeCnx:
    """A client's connection: keeps the commands it is sent."""

    def __init__(self, rig: Rig, *, address: str = "/127.0.0.1:50000") -> None:
        self.remote_address = address
        self.client_version = "test"
        self.protocol_version = 21
        self.supports_broker_entry_metadata = False
        self.is_connected = True
        self.is_writable = True
        self.is_alive = True
        self.received: list[BaseCommand] = []
        self.closed_producers: list[int] = []
        self.closed_consumers: list[int] = []
        self.probes_count = 0
        self._decoder = FrameDecoder(10_000_000)
        self.pauses: list[str] = []
        self.in_flight = InFlightPublishes(
            rig.broker.publish_buffer,
            max_entries=1000,
            on_pause=lambda: self.pauses.append("pause"),
            on_resume=lambda: self.pauses.append("resume"),
        )

    def send(self, frame: bytes) -> None:
        if self.is_connected:
            self.write([frame])

    def write(self, buffers: Sequence[Any]) -> None:
        if not self.is_connected:
            return
        for frame in self._decoder.decode(b"".join(buffers)):
            self.received.append(BaseCommand.FromString(frame.command))

    def when_writable(self, callback: Callable[[], None]) -> None:
        callback()

    async def check_liveness(self) -> bool:
        self.probes_count += 1
        return self.is_alive

    def close(self) -> None:
        self.is_connected = False

    def producer_closed_by_broker(self, producer_id: int) -> None:
        self.closed_producers.append(producer_id)

    def consumer_closed_by_broker(self, consumer_id: int) -> None:
        self.closed_consumers.append(consumer_id)

    def take(self) -> list[str]:
        """What came since the last call, one line a command."""
        lines = [_line(command) for command in self.received]
        self.received.clear()
        return lines


def _line(command: BaseCommand) -> str:
    kind = BaseCommand.Type.Name(command.type)
    if command.HasField("send_receipt"):
        receipt = command.send_receipt
        ledger = receipt.message_id.ledgerId
        where = "none" if ledger == 2**64 - 1 else str(receipt.message_id.entryId)
        return f"receipt {receipt.sequence_id} at {where}"
    if command.HasField("send_error"):
        error = command.send_error
        return f"error {error.sequence_id} {_code(error.error)}"
    if command.HasField("message"):
        return f"message {command.message.message_id.entryId}"
    return kind


def _code(value: int) -> str:
    return ServerError.Name(value)  # type: ignore[arg-type]


class Rig:
    """A BrokerService without listeners, on stores in memory."""

    def __init__(
        self,
        clock: Clock,
        *,
        config: BrokerConfig | None = None,
        metadata: MetadataStore | None = None,
        ledgers: LedgerStore | None = None,
        is_of_cluster: bool = False,
    ) -> None:
        self.clock = clock
        self.is_of_cluster = is_of_cluster
        self.config = config or BrokerConfig()
        self._given = (metadata, ledgers)
        self._producer_ids = itertools.count(1)

    async def __aenter__(self) -> Self:
        metadata, ledgers = self._given
        self.metadata = metadata or MemoryMetadataStore(self.clock)
        self.ledgers: LedgerStore = ledgers or await Bookie.start(
            MemoryDisk(),
            clock=self.clock,
            ledger_ids=CountedLedgerIds(),
            settings=BookieSettings(is_volatile=True),
        )
        await self.start_broker()
        return self

    async def start_broker(self) -> None:
        self.broker = BrokerService(
            self.config,
            ledger_store=self.ledgers,
            metadata=self.metadata,
            configuration_metadata=self.metadata,
            clock=self.clock,
            chance=random.Random(1),
            is_of_cluster=self.is_of_cluster,
        )
        await initialize_cluster(
            self.broker.resources,
            "standalone",
            service_url="http://localhost:8080",
            broker_service_url="pulsar://localhost:6650",
            bundles_count=4,
        )
        await self.broker.start()
        addresses = BrokerAddresses(
            broker_url="pulsar://localhost:6650", http_url="http://localhost:8080"
        )
        self.broker.set_addresses(LocalAddresses(default=addresses, is_loopback=True))

    async def restart(self) -> None:
        """Close the broker and start another one on the same stores."""
        await self.broker.close()
        await self.start_broker()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.broker.close()
        await self.ledgers.close()
        await self.metadata.close()

    def cnx(self, address: str = "/127.0.0.1:50000") -> FakeCnx:
        return FakeCnx(self, address=address)

    async def topic(self, name: str | TopicName, *, create: bool = True) -> Topic:
        full = name_of(name) if isinstance(name, str) else name
        await self.broker.namespaces.lookup(full)
        return await self.broker.topics.get_or_load(full, create_if_missing=create)

    async def persistent(self, name: str = "t") -> PersistentTopic:
        topic = await self.topic(name)
        assert isinstance(topic, PersistentTopic)
        return topic

    def request(self, cnx: FakeCnx, name: str | None = "p", **fields: Any) -> ProducerRequest:
        fields.setdefault("producer_id", next(self._producer_ids))
        return ProducerRequest(connection=cnx, in_flight=cnx.in_flight, name=name, **fields)

    async def grant(
        self, topic: Topic, cnx: FakeCnx, name: str | None = "p", **fields: Any
    ) -> ProducerGrant:
        return await topic.add_producer(self.request(cnx, name, **fields))

    async def producer(
        self, topic: Topic, cnx: FakeCnx, name: str | None = "p", **fields: Any
    ) -> Producer:
        return (await self.grant(topic, cnx, name, **fields)).producer


def entry(sequence_id: int = 0, payload: bytes = b"m", **fields: Any) -> bytes:
    """What follows the command in a SEND."""
    fields.setdefault("producer_name", "p")
    fields.setdefault("publish_time", 1_700_000_000_000)
    keys = fields.pop("encryption_keys", ())
    metadata = MessageMetadata(sequence_id=sequence_id, **fields)
    for key in keys:
        metadata.encryption_keys.add(key=key, value=b"v")
    return encode_entry(metadata, payload)


def send(producer: Producer, sequence_id: int, data: bytes | None = None, **fields: Any) -> None:
    """One SEND."""
    producer.publish(
        sequence_id,
        fields.get("highest"),
        fields.get("messages_count", 1),
        fields.get("is_chunk", False),
        fields.get("is_marker", False),
        entry(sequence_id) if data is None else data,
    )


def subscribe_request(
    cnx: FakeCnx,
    subscription: str = "sub",
    kind: SubscriptionType = SubscriptionType.EXCLUSIVE,
    **fields: Any,
) -> SubscribeRequest:
    fields.setdefault("consumer_id", 1)
    return SubscribeRequest(
        connection=cnx, subscription_name=subscription, subscription_type=kind, **fields
    )
