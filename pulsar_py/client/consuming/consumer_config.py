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
    from pulsar_py.client.consuming.dead_letter import DeadLetterPolicy
    from pulsar_py.client.messages.message import Message
    from pulsar_py.client.receiving.chunk_assembly import ChunkListener
    from pulsar_py.client.receiving.incoming_queue import ProblemListener
    from pulsar_py.client.security.crypto_keys import CryptoKeyReader
    from pulsar_py.schema.schema import Schema

__all__ = ["ConsumerConfig"]

MIN_UNACKED_TIMEOUT_MS: Final = 1000
"""Below it a slow network alone would redeliver (ConsumerBuilder.ackTimeout)."""
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
    # Any: a Consumer or MultiTopicsConsumer, whichever of them the listener says it takes.
    message_listener: Callable[[Any, Message], Awaitable[None] | None] | None = None
    """Called with the consumer and each message; `receive` is not to be called then."""
    receiver_queue_size: int = 1000
    """Messages asked for in advance; asked for again when half of them were taken. 0: none."""
    max_total_receiver_queue_size_across_partitions: int = 50_000
    """The queues of all partitions or topics together; each gets its part if that is less."""
    consumer_name: str | None = None
    """The name in the broker's statistics, by which Failover sorts; None for a generated name."""
    unacked_messages_timeout_ms: int | None = None
    """A message not acknowledged for so long is delivered again; None or 0: never."""
    broker_consumer_stats_cache_time_ms: int = 30_000
    """Time for which an answer of `broker_statistics` is cached."""
    negative_ack_redelivery_delay_ms: int = 60_000
    """A message negatively acknowledged is asked for again after so long."""
    is_read_compacted: bool = False
    """Read each key's last value only, where the topic is compacted."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Metadata of the consumer, shown in the broker's statistics."""
    pattern_auto_discovery_period: int = 60
    """Seconds between looks for topics that match a pattern."""
    initial_position: InitialPosition = InitialPosition.Latest
    """Where a new subscription starts."""
    crypto_key_reader: CryptoKeyReader | None = None
    """Has the private keys that encrypted messages name."""
    replicate_subscription_state_enabled: bool = False
    """Let the subscription's position follow to other clusters."""
    max_pending_chunked_message: int = 10
    """Chunked messages that may be incomplete at a time; 0: any number."""
    auto_ack_oldest_chunked_message_on_queue_full: bool = False
    """Acknowledge what is dropped beyond that limit; otherwise it is delivered again."""
    start_message_id_inclusive: bool = False
    """Whether seeking to a message, or starting at one, delivers that message."""
    batch_receive_policy: ConsumerBatchReceivePolicy = field(
        default_factory=ConsumerBatchReceivePolicy
    )
    """When `batch_receive` returns."""
    key_shared_policy: ConsumerKeySharedPolicy | None = None
    """How keys are divided among Key_Shared consumers; None: by the broker."""
    batch_index_ack_enabled: bool = False
    """Acknowledge single messages of a batch, instead of the batch when all of it is done."""
    regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly
    """Whether a pattern matches persistent topics, non-persistent ones, or both."""
    dead_letter_policy: DeadLetterPolicy | None = None
    """The topics for messages that were delivered too often; None: no limit. See
    `ConsumerDeadLetterPolicy`."""
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL
    """What to do with a message that can't be decrypted."""

    # What follows is the Java (or C++) client's.
    retry_enable: bool = False
    """Consume the retry-letter topic too, and allow `reconsume_later`."""
    listener_concurrency: int = 1
    """Calls of `message_listener` that may run at the same time."""
    ack_grouping_time_ms: int = 100
    """How long an acknowledgement waits for others; 0: each is sent at once."""
    ack_grouping_max_size: int = 1000
    """So many acknowledgements are sent at once, however little time passed."""
    ack_receipt_enabled: bool = False
    """Whether `acknowledge` returns only when the broker has confirmed."""
    unacked_messages_tick_ms: int = 1000
    """Granularity of `unacked_messages_timeout_ms`."""
    ack_timeout_redelivery_backoff: RedeliveryBackoff | None = None
    """Instead of `unacked_messages_timeout_ms`: the delay grows with each delivery."""
    negative_ack_redelivery_backoff: RedeliveryBackoff | None = None
    """Instead of `negative_ack_redelivery_delay_ms`: the delay grows with each delivery."""
    expire_time_of_incomplete_chunked_message_ms: int = 60_000
    """After which chunks whose rest could have come and did not are acknowledged; 0: never."""
    priority_level: int = 0
    """0 goes first; Shared gives to higher numbers only what lower ones have no room for."""
    subscription_mode: SubscriptionMode = SubscriptionMode.Durable
    """Durable, or forgotten when its last consumer leaves."""
    subscription_properties: Mapping[str, str] = field(default_factory=dict)
    """Properties that the broker stores with a new subscription."""
    start_message_rollback_duration_seconds: int = 0
    """Start so long ago, instead of at a message."""
    force_topic_creation: bool = True
    """Whether subscribing may create the topic, if the broker creates topics at all."""
    interceptors: Sequence[ConsumerInterceptor] = ()
    """Called in this order with messages and acknowledgements."""
    consumer_event_listener: ConsumerEventListener | None = None
    """Told when a Failover consumer becomes the active one, and when no more."""
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
    """For readers of ranges, which may begin within a chunked message; no option of `Client`."""
    problem_listener: ProblemListener | None = None
    """Called with each entry that can't be used, by readers that leave nothing out in silence, with
    the reason; no option of `Client`."""
    keeps_batches: bool = False
    """For those who call `Consumer.receive_run` alone: it gives large batches as a whole; no option
    of `Client`."""

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
