"""`ConsumerConfig`: the keyword arguments of `Client.subscribe`, checked (values).

Names and defaults are the official Python client's where it has them, the Java client's otherwise.
Everything is checked here, before anything is sent. Options that only consumers of several topics
read are here too, because users give them in the same call.

Source: `Client.subscribe` in the official Python client; ConsumerBuilder in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.client.acknowledging.redelivery_backoff import RedeliveryBackoff
from pulsar_py.client.consuming.key_shared_policy import ConsumerKeySharedPolicy
from pulsar_py.client.messages.option_checks import check_options
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.shared.enums import (
    ConsumerCryptoFailureAction,
    ConsumerType,
    InitialPosition,
    RegexSubscriptionMode,
    SubscriptionMode,
)
from pulsar_py.common.errors import InvalidConfigurationError

if TYPE_CHECKING:
    from pulsar_py.client.consuming.consumer_events import ConsumerEventListener
    from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptor
    from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
    from pulsar_py.client.messages.message import Message
    from pulsar_py.client.receiving.chunk_assembly import ChunkListener
    from pulsar_py.client.receiving.incoming_queue import ProblemListener
    from pulsar_py.client.security.crypto_keys import CryptoKeyReader
    from pulsar_py.schema.schema import Schema

__all__ = ["ConsumerConfig"]

MIN_UNACKED_TIMEOUT_MS: Final = 1000
"""The least `unacked_messages_timeout_ms`: with less, a slow network alone would cause
redeliveries. Source: ConsumerBuilder.ackTimeout."""
MIN_TICK_MS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """Options of one consumer.

    Raises:
        InvalidConfigurationError: An option is of the wrong kind or out of bounds, or two
            contradict each other.
    """

    consumer_type: ConsumerType = ConsumerType.Exclusive
    """How consumers of the subscription share its messages; all of them need the same type."""
    schema: Schema[Any] | None = None  # Any: of whatever values
    """The schema that decodes payloads; None for bytes."""
    # Any: the listener may declare the kind of consumer that it is used with.
    message_listener: Callable[[Any, Message], Awaitable[None] | None] | None = None
    """Called with the consumer and each message; `receive` is not to be called then."""
    receiver_queue_size: int = 1000
    """Messages asked for in advance; more are asked for when half were taken. 0: none."""
    max_total_receiver_queue_size_across_partitions: int = 50_000
    """Limit of all partitions' or topics' queues together; each gets an equal share if less."""
    consumer_name: str | None = None
    """The name in the broker's statistics, by which Failover sorts; None for a generated name."""
    unacked_messages_timeout_ms: int | None = None
    """A message not acknowledged within this time is delivered again; None or 0: never."""
    broker_consumer_stats_cache_time_ms: int = 30_000
    """Time for which an answer of `broker_statistics` is cached."""
    negative_ack_redelivery_delay_ms: int = 60_000
    """Delay before a negatively acknowledged message is asked for again."""
    is_read_compacted: bool = False
    """Read each key's last value only, where the topic is compacted."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Metadata of the consumer, shown in the broker's statistics."""
    pattern_auto_discovery_period: int = 60
    """Seconds between two checks for topics that match a pattern."""
    initial_position: InitialPosition = InitialPosition.Latest
    """Where a new subscription starts."""
    crypto_key_reader: CryptoKeyReader | None = None
    """Provides the private keys that encrypted messages name."""
    replicate_subscription_state_enabled: bool = False
    """Whether the subscription's position is replicated to other clusters."""
    max_pending_chunked_message: int = 10
    """Limit of incomplete chunked messages held at a time; 0: no limit."""
    auto_ack_oldest_chunked_message_on_queue_full: bool = False
    """Whether chunks dropped beyond that limit are acknowledged; if not, they come again."""
    start_message_id_inclusive: bool = False
    """Whether seeking to a message, or starting at one, delivers that message."""
    batch_receive_policy: ConsumerBatchReceivePolicy = field(
        default_factory=ConsumerBatchReceivePolicy
    )
    """When `batch_receive` returns."""
    key_shared_policy: ConsumerKeySharedPolicy | None = None
    """How keys are divided among Key_Shared consumers; None: by the broker."""
    batch_index_ack_enabled: bool = False
    """Send acknowledgements of single messages of a batch; if not, a batch is acknowledged once
    all its messages are."""
    regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly
    """Whether a pattern matches persistent topics, non-persistent ones, or both."""
    dead_letter_policy: ConsumerDeadLetterPolicy | None = None
    """The topics for messages that were delivered too often; None: no limit. See
    `ConsumerDeadLetterPolicy`."""
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    """What to do with a message that can't be decrypted."""

    # The options below are not the official Python client's: they are Java's or C++'s.
    retry_enable: bool = False
    """Consume the retry-letter topic too, and allow `reconsume_later`."""
    listener_concurrency: int = 1
    """Calls of `message_listener` that may run at the same time."""
    ack_grouping_time_ms: int = 100
    """How long an acknowledgement waits for others at most; 0: each is sent at once."""
    ack_grouping_max_size: int = 1000
    """When so many acknowledgements wait, they are sent without waiting longer."""
    ack_receipt_enabled: bool = False
    """Whether `acknowledge` returns only when the broker has confirmed."""
    unacked_messages_tick_ms: int = 1000
    """Granularity of `unacked_messages_timeout_ms`."""
    ack_timeout_redelivery_backoff: RedeliveryBackoff | None = None
    """Instead of `unacked_messages_timeout_ms`: the delay grows with each delivery."""
    negative_ack_redelivery_backoff: RedeliveryBackoff | None = None
    """Instead of `negative_ack_redelivery_delay_ms`: the delay grows with each delivery."""
    expire_time_of_incomplete_chunked_message_ms: int = 60_000
    """Chunks whose message stays incomplete for so long are acknowledged, and lost; 0: never.
    Only time in which the rest could have come counts."""
    priority_level: int = 0
    """0 is the highest priority: the broker sends to consumers of a lower one (a higher number)
    only what the others have no permits for."""
    subscription_mode: SubscriptionMode = SubscriptionMode.Durable
    """Durable, or forgotten when its last consumer leaves."""
    subscription_properties: Mapping[str, str] = field(default_factory=dict)
    """Properties that the broker stores with a new subscription."""
    start_message_rollback_duration_seconds: int = 0
    """A new subscription starts at messages published so many seconds ago; 0: it does not."""
    force_topic_creation: bool = True
    """Whether subscribing may create the topic, if the broker allows automatic creation."""
    interceptors: Sequence[ConsumerInterceptor] = ()
    """Interceptors, called in this order with messages and acknowledgements."""
    consumer_event_listener: ConsumerEventListener | None = None
    """Called when a Failover consumer becomes the active one, and when it ceases to be."""
    start_paused: bool = False
    """Ask for no messages before `resume`."""
    auto_update_partitions: bool = True
    """Notice when a topic gets more partitions."""
    auto_update_partitions_interval_seconds: float = 60.0
    """Interval at which new partitions are looked for."""
    max_uncompressed_message_bytes: int | None = None
    """Limit for the decompressed size of an entry; None: 1 GiB. A larger one is taken
    for damaged. Brokers bound what they store, which is compressed."""
    chunk_listener: ChunkListener | None = None
    """Called with each chunk, for readers of ranges, which may begin within a chunked message;
    not an option of `Client`."""
    problem_listener: ProblemListener | None = None
    """Called with each entry that can't be decoded, and the reason, for readers that must not skip
    anything silently; not an option of `Client`."""
    keeps_batches: bool = False
    """`Consumer.receive_run` returns large batches whole, and no other method receives; not an
    option of `Client`."""

    def __post_init__(self) -> None:
        check_options(self)
        for option, minimum in _MINIMA.items():
            if (value := getattr(self, option)) is not None and value < minimum:
                raise InvalidConfigurationError(f"{option}: {value} is below {minimum}")
        timeout_ms = self.unacked_messages_timeout_ms
        if timeout_ms and timeout_ms < MIN_UNACKED_TIMEOUT_MS:
            raise InvalidConfigurationError(
                f"unacked_messages_timeout_ms: {timeout_ms} is below {MIN_UNACKED_TIMEOUT_MS}"
            )
        if timeout_ms and timeout_ms < self.unacked_messages_tick_ms:
            raise InvalidConfigurationError(
                f"unacked_messages_tick_ms: {self.unacked_messages_tick_ms} is above "
                f"unacked_messages_timeout_ms ({timeout_ms})"
            )
        if self.is_read_compacted and self.is_shared:
            raise InvalidConfigurationError(
                "is_read_compacted needs a consumer_type of Exclusive or Failover, "
                f"not {self.consumer_type.name}"
            )
        if self.dead_letter_policy is not None and not (self.is_shared or self.retry_enable):
            raise InvalidConfigurationError(
                f"dead_letter_policy: needs Shared or KeyShared, where redeliveries are counted, "
                f"or retry_enable; not {self.consumer_type.name}"
            )

    @property
    def is_shared(self) -> bool:
        """Whether messages go to several consumers, and are acknowledged one by one only."""
        return self.consumer_type in _SHARED_TYPES

    @property
    def is_durable(self) -> bool:
        """Whether the subscription outlives the consumer."""
        return self.subscription_mode is SubscriptionMode.Durable


_SHARED_TYPES: Final = (ConsumerType.Shared, ConsumerType.KeyShared)
_MINIMA: Final = {
    "receiver_queue_size": 0,
    "max_total_receiver_queue_size_across_partitions": 0,
    "unacked_messages_timeout_ms": 0,
    "broker_consumer_stats_cache_time_ms": 0,
    "negative_ack_redelivery_delay_ms": 0,
    "pattern_auto_discovery_period": 1,
    "max_pending_chunked_message": 0,
    "listener_concurrency": 1,
    "ack_grouping_time_ms": 0,
    "ack_grouping_max_size": 1,
    "unacked_messages_tick_ms": MIN_TICK_MS,
    "expire_time_of_incomplete_chunked_message_ms": 0,
    "priority_level": 0,
    "start_message_rollback_duration_seconds": 0,
    "auto_update_partitions_interval_seconds": 1,
    "max_uncompressed_message_bytes": 1,
}
"""Options of which only the lower bound is checked."""
