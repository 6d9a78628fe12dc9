"""What tests of dispatch share: a client's end, a topic on real stores, and commands to say.

`FakeConnection` keeps what it is given; everything between it and the disk in memory is real.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from msgspec.structs import replace

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import LATEST, Position
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandRedeliverUnacknowledgedMessages,
    MessageMetadata,
)
from pulsar_py.server.delayed.delayed_index import DelayedIndexParts
from pulsar_py.server.dispatch.dispatch_throttle import DispatchThrottle
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest, SubscriptionType
from pulsar_py.server.hooks.installed_filters import InstalledFilter
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.persistent_subscription import (
    PersistentSubscription,
    Subscription,
)
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.shared.settings import BookieSettings
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from pulsar_py.wire.framing import FrameDecoder
from pulsar_py.wire.payload import encode_entry

MAX_FRAME_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Received:
    """One MESSAGE."""

    consumer_id: int
    ledger_id: int
    entry_id: int
    redelivery_count: int
    ack_set: tuple[int, ...]
    consumer_epoch: int | None
    data: bytes


@dataclass(eq=False)
class FakeConnection:
    """Implements ClientConnection; `commands` and `messages` are what the client would have."""

    protocol_version: int = 21
    supports_broker_entry_metadata: bool = False
    is_writable: bool = True
    is_connected: bool = True
    is_responsive: bool = True
    client_version: str = "test"
    remote_address: str = "/127.0.0.1:1"
    commands: list[BaseCommand] = field(default_factory=list)
    messages: list[Received] = field(default_factory=list)
    writes_count: int = 0
    liveness_checks_count: int = 0
    consumers_closed: list[int] = field(default_factory=list)
    on_close: list[Callable[[], None]] = field(default_factory=list)
    _waiting: list[Callable[[], None]] = field(default_factory=list)

    def send(self, frame: bytes) -> None:
        self._take(frame)

    def write(self, buffers: Sequence[Buffer]) -> None:
        self.writes_count += 1
        self._take(b"".join(buffers))

    def _take(self, data: bytes) -> None:
        if not self.is_connected:
            return
        for frame in FrameDecoder(MAX_FRAME_BYTES).decode(data):
            command = BaseCommand.FromString(frame.command)
            if command.type == BaseCommand.MESSAGE:
                message = command.message
                self.messages.append(
                    Received(
                        message.consumer_id,
                        message.message_id.ledgerId,
                        message.message_id.entryId,
                        message.redelivery_count,
                        tuple(message.ack_set),
                        message.consumer_epoch if message.HasField("consumer_epoch") else None,
                        bytes(frame.headers_and_payload or b""),
                    )
                )
            else:
                self.commands.append(command)

    def when_writable(self, callback: Callable[[], None]) -> None:
        self._waiting.append(callback)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def become_writable(self) -> None:
        self.is_writable = True
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    async def check_liveness(self) -> bool:
        self.liveness_checks_count += 1
        if not self.is_responsive:
            self.close()
        return self.is_connected

    def close(self) -> None:
        self.is_connected = False
        for callback in self.on_close:
            callback()

    def producer_closed_by_broker(self, producer_id: int) -> None:
        raise NotImplementedError

    def consumer_closed_by_broker(self, consumer_id: int) -> None:
        self.consumers_closed.append(consumer_id)
        if self.protocol_version < 5:
            self.close()

    def entry_ids(self, consumer_id: int | None = None) -> list[int]:
        """Entry ids of the messages of a consumer, or of all, in order."""
        return [
            each.entry_id
            for each in self.messages
            if consumer_id is None or each.consumer_id == consumer_id
        ]

    def active_changes(self) -> list[tuple[int, bool]]:
        """(consumer id, is active) of each ACTIVE_CONSUMER_CHANGE."""
        return [
            (each.active_consumer_change.consumer_id, each.active_consumer_change.is_active)
            for each in self.commands
            if each.type == BaseCommand.ACTIVE_CONSUMER_CHANGE
        ]

    def ends_of_topic(self) -> list[int]:
        """Consumer id of each REACHED_END_OF_TOPIC."""
        return [
            each.reachedEndOfTopic.consumer_id
            for each in self.commands
            if each.type == BaseCommand.REACHED_END_OF_TOPIC
        ]


@dataclass(eq=False)
class TimedConnection(FakeConnection):
    """A connection that notes when each message came."""

    clock: Clock = field(kw_only=True)
    times_millis: list[int] = field(default_factory=list)  # of each of `messages`

    def _take(self, data: bytes) -> None:
        super()._take(data)
        now_millis = self.clock.wall_time_millis()
        self.times_millis += [now_millis] * (len(self.messages) - len(self.times_millis))

    def arrivals(self) -> dict[int, int]:
        """When each entry came first, by entry id."""
        first: dict[int, int] = {}
        for each, time_millis in zip(self.messages, self.times_millis, strict=True):
            first.setdefault(each.entry_id, time_millis)
        return first


def message(
    body: bytes = b"m", *, batch: int | None = None, sequence_id: int = 0, **fields: Any
) -> bytes:
    """An entry as a producer sends it; `batch` is a number of messages."""
    metadata = MessageMetadata(producer_name="p", sequence_id=sequence_id, publish_time=1, **fields)
    if batch is not None:
        metadata.num_messages_in_batch = batch
    return encode_entry(metadata, body)


class Ledgers:
    """A managed ledger opener on stores in memory."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._ids = CountedLedgerIds()

    async def start(self, *, is_cold: bool = False) -> None:
        """`is_cold`: nothing is ever cached, each read awaits the store."""
        self.store: LedgerStore
        if is_cold:
            self.store = simulated = SimulatedLedgerStore()
            simulated.is_cold = True
        else:
            self.store = await Bookie.start(
                MemoryDisk(),
                clock=self.clock,
                ledger_ids=self._ids,
                settings=BookieSettings(is_volatile=True),
            )
        self.opener = ManagedLedgerOpener(
            self.store,
            MemoryMetadataStore(self.clock),
            self.clock,
            chance=random.Random(1),
            cache_size_bytes=0 if is_cold else 64 * 1024 * 1024,
        )

    async def close(self) -> None:
        await self.opener.close()
        await self.store.close()


class Topic:
    """A SubscriptionOwner with one managed ledger."""

    def __init__(self, clock: Clock, name: str = "persistent://public/default/t") -> None:
        self.clock = clock
        self.name = TopicName.parse(name)
        self.dispatch_settings = DispatchSettings(failover_delay_millis=0)
        self.subscriptions: dict[str, Subscription] = {}
        self.max_position = LATEST
        self.throttle: DispatchThrottle | None = None
        self.delayed_index: DelayedIndexParts | None = None
        self.filters: Sequence[InstalledFilter] = ()
        self._ledgers = Ledgers(clock)

    @property
    def consumers_count(self) -> int:
        return sum(len(each.consumers) for each in self.subscriptions.values())

    def same_address_consumers_count(self, address: str) -> int:
        return sum(
            address in consumer.connection.remote_address
            for each in self.subscriptions.values()
            for consumer in each.consumers
        )

    @property
    def store(self) -> LedgerStore:
        """Where the ledgers are."""
        return self._ledgers.store

    @property
    def opener(self) -> ManagedLedgerOpener:
        """What opens its ledger."""
        return self._ledgers.opener

    def max_read_position(self) -> Position:
        return self.max_position

    def dispatch_throttle(self, subscription: str) -> DispatchThrottle | None:
        del subscription
        return self.throttle

    def user_filters(self) -> Sequence[InstalledFilter]:
        return self.filters

    def forget_subscription(self, subscription: Subscription) -> None:
        if self.subscriptions.get(subscription.name) is subscription:
            del self.subscriptions[subscription.name]

    def set(self, **settings: Any) -> None:
        """Change settings of dispatch."""
        self.dispatch_settings = replace(self.dispatch_settings, **settings)

    async def open(self, *, is_cold: bool = False) -> Self:
        await self._ledgers.start(is_cold=is_cold)
        self.ledger = await self._ledgers.opener.open(
            self.name.managed_ledger_name, ManagedLedgerConfig()
        )
        return self

    async def close(self) -> None:
        for subscription in list(self.subscriptions.values()):
            await subscription.close()
        await self._ledgers.close()

    async def publish(self, *entries: bytes) -> list[Position]:
        """Append entries one by one."""
        return [await self.ledger.append_and_wait(entry) for entry in entries]

    async def publish_many(self, count: int) -> list[Position]:
        return await self.publish(*[message(b"m%d" % index) for index in range(count)])

    async def subscription(
        self, name: str = "sub", *, is_durable: bool = True
    ) -> PersistentSubscription:
        """The subscription of that name, from the earliest message on."""
        existing = self.subscriptions.get(name)
        if isinstance(existing, PersistentSubscription):
            return existing
        if is_durable:
            cursor = await self.ledger.open_cursor(name, InitialPosition.EARLIEST)
        else:
            cursor = self.ledger.new_non_durable_cursor(name, InitialPosition.EARLIEST)
        subscription = PersistentSubscription(
            self,
            name,
            self.ledger,
            cursor,
            clock=self.clock,
            delayed_index=self.delayed_index,
        )
        self.subscriptions[name] = subscription
        return subscription

    async def consume(
        self,
        consumer_id: int = 1,
        kind: SubscriptionType = SubscriptionType.SHARED,
        *,
        permits: int = 0,
        connection: FakeConnection | None = None,
        subscription: str = "sub",
        **request: Any,
    ) -> Consumer:
        """A consumer that has joined and sent FLOW."""
        owner = await self.subscription(subscription, is_durable=request.get("is_durable", True))
        consumer = new_consumer(owner, consumer_id, kind, connection, **request)
        await owner.add_consumer(consumer)
        if permits:
            consumer.flow(permits)
        return consumer


def new_consumer(
    subscription: Subscription,
    consumer_id: int = 1,
    kind: SubscriptionType = SubscriptionType.SHARED,
    connection: FakeConnection | None = None,
    **request: Any,
) -> Consumer:
    """A consumer that has not joined yet; closing its connection closes it."""
    connection = connection or FakeConnection()
    consumer = Consumer(
        SubscribeRequest(
            connection=connection,
            consumer_id=consumer_id,
            subscription_name=subscription.name,
            subscription_type=kind,
            **request,
        ),
        subscription,
    )
    connection.on_close.append(consumer.close)
    return consumer


def received(consumer: Consumer) -> list[int]:
    """Entry ids of the messages that a consumer was sent, in order."""
    connection = consumer.connection
    assert isinstance(connection, FakeConnection)
    return connection.entry_ids(consumer.consumer_id)


def messages_of(consumer: Consumer) -> list[Received]:
    """The messages that a consumer was sent."""
    connection = consumer.connection
    assert isinstance(connection, FakeConnection)
    return [each for each in connection.messages if each.consumer_id == consumer.consumer_id]


def ack(
    consumer: Consumer,
    *entry_ids: int,
    ledger_id: int | None = None,
    ack_set: Sequence[int] = (),
    cumulative: bool = False,
    **fields: Any,
) -> None:
    """ACK of entries of the ledger of the first message the consumer got, or of `ledger_id`."""
    if ledger_id is None:
        ledger_id = messages_of(consumer)[0].ledger_id if messages_of(consumer) else 1
    kind = CommandAck.Cumulative if cumulative else CommandAck.Individual
    command = CommandAck(consumer_id=consumer.consumer_id, ack_type=kind, **fields)
    for entry_id in entry_ids:
        command.message_id.add(ledgerId=ledger_id, entryId=entry_id, ack_set=ack_set)
    consumer.acknowledge(command)


def ack_command(consumer_id: int, ledger_id: int, entry_id: int) -> CommandAck:
    """ACK of one entry."""
    command = CommandAck(consumer_id=consumer_id, ack_type=CommandAck.Individual)
    command.message_id.add(ledgerId=ledger_id, entryId=entry_id)
    return command


def redeliver(consumer: Consumer, *entry_ids: int, epoch: int | None = None) -> None:
    """REDELIVER of entries of the ledger of the first message the consumer got; none is all."""
    command = CommandRedeliverUnacknowledgedMessages(consumer_id=consumer.consumer_id)
    for entry_id in entry_ids:
        ledger_id = messages_of(consumer)[0].ledger_id if messages_of(consumer) else 1
        command.message_ids.add(ledgerId=ledger_id, entryId=entry_id)
    if epoch is not None:
        command.consumer_epoch = epoch
    consumer.redeliver(command)


async def settle(turns: int = 20) -> None:
    """Let everything that is ready run, without moving the time."""
    for _ in range(turns):
        await asyncio.sleep(0)
