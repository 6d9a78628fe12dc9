"""`SubscribeRequest`: the fields of SUBSCRIBE as a value, for topics and dispatchers.

Source: CommandSubscribe and KeySharedMeta in PulsarApi.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum

from msgspec import Struct, field

from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import CommandSubscribe, KeySharedMode, Schema
from pulsar_py.server.dispatch.client_connection import ClientConnection

NO_EPOCH = -1
"""The consumer epoch of clients that do not count epochs."""


def _always() -> bool:
    return True


class SubscriptionType(IntEnum):
    """The way a subscription spreads messages over consumers; values are the protocol's."""

    EXCLUSIVE = 0
    SHARED = 1
    FAILOVER = 2
    KEY_SHARED = 3

    @property
    def wire_name(self) -> str:
        """The name in protocol and REST: `Exclusive`, `Shared`, `Failover`, `Key_Shared`."""
        return CommandSubscribe.SubType.Name(self.value)  # type: ignore[arg-type]

    @property
    def has_single_active_consumer(self) -> bool:
        """Whether one consumer at a time gets all messages, in order: Exclusive and Failover."""
        return self in (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


class KeySharedMeta(Struct, frozen=True):
    """The assignment of keys that a Key_Shared consumer asks for.

    Attributes:
        is_sticky: The consumer asks for its hash ranges (mode STICKY); else it is given slots.
        hash_ranges: Inclusive (start, end) slots; may be out of order, or out of 0..65535.
        allow_out_of_order_delivery: Entries are sent although the slot's former owner has others.
    """

    is_sticky: bool = False
    hash_ranges: tuple[tuple[int, int], ...] = ()
    allow_out_of_order_delivery: bool = False


class SubscribeRequest(Struct, frozen=True, kw_only=True):
    """One SUBSCRIBE, with the connection it came on.

    Attributes:
        is_durable: False for readers: the cursor lives in memory, until its last consumer leaves.
        start_position: Only for non-durable subscriptions; the entry itself is delivered again.
        start_batch_index: Batch index in the start id, -1 for none; clients skip by themselves.
        starts_at_earliest: Where a new subscription begins; otherwise at the latest message.
        start_rollback_seconds: Above 0, a new subscription begins that long ago.
        consumer_epoch: `NO_EPOCH` when the client sent none.
        is_wanted: Returns False once the client closed the id again; then no consumer is added.
    """

    connection: ClientConnection
    consumer_id: int
    subscription_name: str
    subscription_type: SubscriptionType
    consumer_name: str = ""
    priority_level: int = 0
    is_durable: bool = True
    start_position: Position | None = None
    start_batch_index: int = -1
    starts_at_earliest: bool = False
    start_rollback_seconds: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)
    read_compacted: bool = False
    schema: Schema | None = None
    force_topic_creation: bool = True
    is_replicated: bool | None = None
    key_shared: KeySharedMeta | None = None
    subscription_properties: Mapping[str, str] = field(default_factory=dict)
    consumer_epoch: int = NO_EPOCH
    role: str | None = None
    is_wanted: Callable[[], bool] = _always

    @property
    def schema_type(self) -> int | None:
        """The protocol's number of the schema's type; None without a schema."""
        return None if self.schema is None else self.schema.type

    @classmethod
    def from_command(
        cls,
        command: CommandSubscribe,
        connection: ClientConnection,
        *,
        role: str | None = None,
        is_wanted: Callable[[], bool] = _always,
    ) -> SubscribeRequest:
        """The request in a received SUBSCRIBE."""
        start = command.start_message_id if command.HasField("start_message_id") else None
        return cls(
            connection=connection,
            subscription_name=command.subscription,
            subscription_type=SubscriptionType(command.subType),
            consumer_id=command.consumer_id,
            consumer_name=command.consumer_name,
            priority_level=command.priority_level,
            is_durable=command.durable,
            start_position=start and Position(_signed(start.ledgerId), _signed(start.entryId)),
            start_batch_index=start.batch_index if start else -1,
            starts_at_earliest=command.initialPosition == CommandSubscribe.InitialPosition.Earliest,
            start_rollback_seconds=command.start_message_rollback_duration_sec,
            metadata={pair.key: pair.value for pair in command.metadata},
            read_compacted=command.read_compacted,
            schema=command.schema if command.HasField("schema") else None,
            force_topic_creation=command.force_topic_creation,
            is_replicated=(
                command.replicate_subscription_state
                if command.HasField("replicate_subscription_state")
                else None
            ),
            key_shared=_key_shared(command),
            subscription_properties={
                pair.key: pair.value for pair in command.subscription_properties
            },
            consumer_epoch=(
                command.consumer_epoch if command.HasField("consumer_epoch") else NO_EPOCH
            ),
            role=role,
            is_wanted=is_wanted,
        )


def _key_shared(command: CommandSubscribe) -> KeySharedMeta | None:
    if not command.HasField("keySharedMeta"):
        return None
    meta = command.keySharedMeta
    return KeySharedMeta(
        is_sticky=meta.keySharedMode == KeySharedMode.STICKY,
        hash_ranges=tuple((each.start, each.end) for each in meta.hashRanges),
        allow_out_of_order_delivery=meta.allowOutOfOrderDelivery,
    )


def _signed(value: int) -> int:
    """An unsigned 64-bit id of the protocol as Java's signed number: 2^64-1 is -1."""
    return value - (1 << 64) if value >> 63 else value
