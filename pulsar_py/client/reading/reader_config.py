"""`ReaderConfig`: the keyword arguments of `Client.create_reader`, checked (values).

Names and defaults are the official Python client's where it has them, the Java client's otherwise.

Source: `Client.create_reader` in the official Python client; ReaderBuilder in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.key_shared_policy import ConsumerKeySharedPolicy, KeyHashRange
from pulsar_py.client.messages.option_checks import check_options
from pulsar_py.client.shared.enums import (
    ConsumerCryptoFailureAction,
    ConsumerType,
    KeySharedMode,
    SubscriptionMode,
)
from pulsar_py.common.errors import InvalidConfigurationError

if TYPE_CHECKING:
    from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptor
    from pulsar_py.client.messages.message import Message
    from pulsar_py.client.security.crypto_keys import CryptoKeyReader
    from pulsar_py.schema.schema import Schema

__all__ = ["ReaderConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderConfig:
    """Options of one reader."""

    schema: Schema[Any] | None = None  # Any: of whatever values
    """The schema that decodes payloads; None for bytes."""
    # Any: a reader, of this client or of the blocking one.
    reader_listener: Callable[[Any, Message], Awaitable[None] | None] | None = None
    """Called with each message; `read_next` is not allowed then."""
    receiver_queue_size: int = 1000
    """Messages asked for in advance, of one topic or partition."""
    max_total_receiver_queue_size_across_partitions: int = 50_000
    """Limit of all partitions' queues together; each gets an equal share if less."""
    reader_name: str | None = None
    """The name in the broker's statistics; None for a generated name."""
    subscription_role_prefix: str | None = None
    """Prefix of the subscription's generated name."""
    is_read_compacted: bool = False
    """Read each key's last value only, where the topic is compacted."""
    crypto_key_reader: CryptoKeyReader | None = None
    """Provides the private keys that encrypted messages name."""
    start_message_id_inclusive: bool = False
    """Whether starting at a message, or seeking to one, delivers that message."""
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    """What to do with a message that can't be decrypted."""

    # The options below are not the official Python client's: they are Java's.
    subscription_name: str | None = None
    """The subscription's name; None for a generated one."""
    key_hash_ranges: Sequence[tuple[int, int] | KeyHashRange] | None = None
    """Read only messages whose key's hash (`murmur3_32 % 65536`) lies in one; ends included."""
    start_message_from_rollback_duration_seconds: int = 0
    """Begin with messages published so many seconds ago, instead of at a message; 0: don't."""
    start_message_from_timestamp_millis: int | None = None
    """Begin with messages published at that time, milliseconds since 1970; Pulsar's clients have
    no such option."""
    max_pending_chunked_message: int = 10
    """Limit of incomplete chunked messages held at a time; 0: no limit."""
    auto_ack_oldest_chunked_message_on_queue_full: bool = False
    """Whether messages dropped beyond that limit are skipped; if not, they are delivered again."""
    expire_time_of_incomplete_chunked_message_ms: int = 60_000
    """Chunked messages that stay incomplete for so long are skipped; 0: never. Only time in which
    the rest could have come counts."""
    interceptors: Sequence[ConsumerInterceptor] = ()
    """Called in this order with each message."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Metadata of the reader, shown in the broker's statistics."""
    auto_update_partitions: bool = True
    """Notice when the topic gets more partitions."""
    auto_update_partitions_interval_seconds: float = 60.0
    """Interval at which new partitions are looked for."""

    def __post_init__(self) -> None:
        """Refuse options that exclude each other; bounds are checked with the consumer's options.

        Raises:
            InvalidConfigurationError: The message names option and value.
        """
        check_options(self)
        if self.start_message_from_rollback_duration_seconds and (
            self.start_message_from_timestamp_millis is not None
        ):
            raise InvalidConfigurationError(
                f"start_message_from_rollback_duration_seconds "
                f"({self.start_message_from_rollback_duration_seconds}) and "
                f"start_message_from_timestamp_millis ({self.start_message_from_timestamp_millis}) "
                f"exclude each other"
            )
        if self.subscription_name is not None and not self.subscription_name:
            raise InvalidConfigurationError("subscription_name: '' is empty")

    @property
    def is_start_by_time(self) -> bool:
        """Whether one of the options is a time to start at."""
        return (
            self.start_message_from_rollback_duration_seconds > 0
            or self.start_message_from_timestamp_millis is not None
        )

    def to_consumer_config(self) -> ConsumerConfig:
        """The options of the reader's consumer."""
        policy = None
        if self.key_hash_ranges is not None:
            policy = ConsumerKeySharedPolicy(
                KeySharedMode.Sticky, sticky_ranges=self.key_hash_ranges
            )
        return ConsumerConfig(
            consumer_type=ConsumerType.Exclusive,
            subscription_mode=SubscriptionMode.NonDurable,
            key_shared_policy=policy,
            consumer_name=self.reader_name,
            start_message_rollback_duration_seconds=(
                self.start_message_from_rollback_duration_seconds
            ),
            **{name: getattr(self, name) for name in _SAME},
        )


_SAME = (
    "schema",
    "receiver_queue_size",
    "max_total_receiver_queue_size_across_partitions",
    "is_read_compacted",
    "crypto_key_reader",
    "start_message_id_inclusive",
    "crypto_failure_action",
    "max_pending_chunked_message",
    "auto_ack_oldest_chunked_message_on_queue_full",
    "expire_time_of_incomplete_chunked_message_ms",
    "interceptors",
    "properties",
    "auto_update_partitions",
    "auto_update_partitions_interval_seconds",
)
"""Options that a reader hands to its consumer as they are."""
