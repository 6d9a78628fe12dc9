"""Types of the keyword arguments of the client's methods, for type checkers and editors.

Each class repeats the fields of a configuration class, which documents them; a test keeps names and
types alike. Those without a schema let the methods tell a call with a schema, which has its values,
from one without, which has bytes. `check_names` refuses an unknown option and proposes the nearest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypedDict

from pulsar_py.client.shared.absent_names import ABSENT_OPTIONS
from pulsar_py.client.shared.type_variables import T
from pulsar_py.common.errors import InvalidConfigurationError

if TYPE_CHECKING:
    from pulsar_py.client.acknowledging.redelivery_backoff import RedeliveryBackoff
    from pulsar_py.client.brokers.connection_events import ConnectionListener
    from pulsar_py.client.consuming.consumer_events import ConsumerEventListener
    from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptor
    from pulsar_py.client.consuming.dead_letter import ConsumerDeadLetterPolicy
    from pulsar_py.client.consuming.key_shared_policy import ConsumerKeySharedPolicy, KeyHashRange
    from pulsar_py.client.messages.message import Message
    from pulsar_py.client.producing.producer_config import MessageRouterFunction
    from pulsar_py.client.producing.producer_interceptor import ProducerInterceptor
    from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
    from pulsar_py.client.security.crypto_keys import CryptoKeyReader
    from pulsar_py.client.shared.enums import (
        BatchingType,
        CompressionType,
        ConsumerCryptoFailureAction,
        ConsumerType,
        HashingScheme,
        InitialPosition,
        PartitionsRoutingMode,
        ProducerAccessMode,
        ProducerCryptoFailureAction,
        RegexSubscriptionMode,
        SubscriptionMode,
    )
    from pulsar_py.schema.schema import Schema

__all__ = [
    "ClientOptions",
    "ConsumerOptions",
    "ConsumerOptionsWithoutSchema",
    "ProducerOptions",
    "ProducerOptionsWithoutSchema",
    "ReaderOptions",
    "ReaderOptionsWithoutSchema",
    "TableViewOptions",
    "TableViewOptionsWithoutSchema",
    "check_names",
]


class ClientOptions(TypedDict, total=False):
    """The options of `Client`: the fields of `ClientConfig` but `authentication`."""

    operation_timeout_seconds: float
    connection_timeout_ms: int
    connections_per_broker: int
    concurrent_lookup_requests: int
    max_lookup_redirects: int
    keep_alive_interval_seconds: float
    connection_max_idle_seconds: float
    initial_backoff_interval_ms: int
    max_backoff_interval_ms: int | None
    memory_limit_bytes: int
    stats_interval_in_seconds: float
    connection_listener: ConnectionListener | None
    listener_name: str | None
    message_listener_threads: int
    tls_trust_certs_file_path: str | None
    tls_allow_insecure_connection: bool
    tls_validate_hostname: bool
    tls_certificate_file_path: str | None
    tls_private_key_file_path: str | None
    tls_ciphers: str | None


class ProducerOptionsWithoutSchema(TypedDict, total=False):
    """What `ProducerOptions` has beside the schema, which decides how a call is understood."""

    producer_name: str | None
    initial_sequence_id: int | None
    send_timeout_millis: int
    compression_type: CompressionType
    compress_min_msg_body_size: int
    max_pending_messages: int
    max_pending_messages_across_partitions: int
    block_if_queue_full: bool
    batching_enabled: bool
    batching_max_messages: int
    batching_max_allowed_size_in_bytes: int
    batching_max_publish_delay_ms: float
    batching_type: BatchingType
    batching_partition_switch_frequency_by_publish_delay: int
    chunking_enabled: bool
    chunk_max_message_size: int
    message_routing_mode: PartitionsRoutingMode
    message_router: MessageRouterFunction | None
    hashing_scheme: HashingScheme
    lazy_start_partitioned_producers: bool
    auto_update_partitions: bool
    auto_update_partitions_interval_seconds: float
    properties: Mapping[str, str]
    encryption_key: str | Sequence[str] | None
    crypto_key_reader: CryptoKeyReader | None
    crypto_failure_action: ProducerCryptoFailureAction
    access_mode: ProducerAccessMode
    interceptors: Sequence[ProducerInterceptor]
    initial_subscription_name: str | None
    reconnects: bool


class ProducerOptions(ProducerOptionsWithoutSchema, Generic[T], total=False):
    """The options of `Client.create_producer`: the fields of `ProducerConfig`."""

    schema: Schema[T] | None


class ConsumerOptionsWithoutSchema(TypedDict, Generic[T], total=False):
    """What `ConsumerOptions` has beside the parameters of `Client.subscribe`: type and schema."""

    message_listener: Callable[[Any, Message[T]], Awaitable[None] | None] | None  # Any: as there
    receiver_queue_size: int
    max_total_receiver_queue_size_across_partitions: int
    consumer_name: str | None
    unacked_messages_timeout_ms: int | None
    broker_consumer_stats_cache_time_ms: int
    negative_ack_redelivery_delay_ms: int
    is_read_compacted: bool
    properties: Mapping[str, str]
    pattern_auto_discovery_period: int
    initial_position: InitialPosition
    crypto_key_reader: CryptoKeyReader | None
    replicate_subscription_state_enabled: bool
    max_pending_chunked_message: int
    auto_ack_oldest_chunked_message_on_queue_full: bool
    start_message_id_inclusive: bool
    batch_receive_policy: ConsumerBatchReceivePolicy
    key_shared_policy: ConsumerKeySharedPolicy | None
    batch_index_ack_enabled: bool
    regex_subscription_mode: RegexSubscriptionMode
    dead_letter_policy: ConsumerDeadLetterPolicy | None
    crypto_failure_action: ConsumerCryptoFailureAction
    retry_enable: bool
    listener_concurrency: int
    ack_grouping_time_ms: int
    ack_grouping_max_size: int
    ack_receipt_enabled: bool
    unacked_messages_tick_ms: int
    ack_timeout_redelivery_backoff: RedeliveryBackoff | None
    negative_ack_redelivery_backoff: RedeliveryBackoff | None
    expire_time_of_incomplete_chunked_message_ms: int
    priority_level: int
    subscription_mode: SubscriptionMode
    subscription_properties: Mapping[str, str]
    start_message_rollback_duration_seconds: int
    force_topic_creation: bool
    interceptors: Sequence[ConsumerInterceptor]
    consumer_event_listener: ConsumerEventListener | None
    start_paused: bool
    auto_update_partitions: bool
    auto_update_partitions_interval_seconds: float
    max_uncompressed_message_bytes: int | None


class ConsumerOptions(ConsumerOptionsWithoutSchema[T], Generic[T], total=False):
    """The options of `Client.subscribe`: the fields of `ConsumerConfig`."""

    consumer_type: ConsumerType
    schema: Schema[T] | None


class ReaderOptionsWithoutSchema(TypedDict, Generic[T], total=False):
    """What `ReaderOptions` has beside the schema, which decides how a call is understood."""

    reader_listener: Callable[[Any, Message[T]], Awaitable[None] | None] | None  # Any: as there
    receiver_queue_size: int
    max_total_receiver_queue_size_across_partitions: int
    reader_name: str | None
    subscription_role_prefix: str | None
    is_read_compacted: bool
    crypto_key_reader: CryptoKeyReader | None
    start_message_id_inclusive: bool
    crypto_failure_action: ConsumerCryptoFailureAction
    subscription_name: str | None
    key_hash_ranges: Sequence[tuple[int, int] | KeyHashRange] | None
    start_message_from_rollback_duration_seconds: int
    start_message_from_timestamp_millis: int | None
    max_pending_chunked_message: int
    auto_ack_oldest_chunked_message_on_queue_full: bool
    expire_time_of_incomplete_chunked_message_ms: int
    interceptors: Sequence[ConsumerInterceptor]
    properties: Mapping[str, str]
    auto_update_partitions: bool
    auto_update_partitions_interval_seconds: float


class ReaderOptions(ReaderOptionsWithoutSchema[T], Generic[T], total=False):
    """The options of `Client.create_reader`: the fields of `ReaderConfig`."""

    schema: Schema[T] | None


class TableViewOptionsWithoutSchema(TypedDict, total=False):
    """What `TableViewOptions` has beside the schema, which decides how a call is understood."""

    receiver_queue_size: int
    is_read_compacted: bool
    """Read each key's last value only, where the topic is compacted; unless given, where the topic
    is persistent."""
    crypto_key_reader: CryptoKeyReader | None
    crypto_failure_action: ConsumerCryptoFailureAction
    auto_update_partitions: bool
    auto_update_partitions_interval_seconds: float


class TableViewOptions(TableViewOptionsWithoutSchema, Generic[T], total=False):
    """The options of `Client.create_table_view`: those of its reader that may be chosen."""

    schema: Schema[T] | None


def check_names(options: Iterable[str], kind: type, method: str) -> None:
    """Refuse names that are not options of `kind`, one of the classes above.

    Raises:
        InvalidConfigurationError: It names the option, the method, and the nearest option there is.
    """
    known = kind.__annotations__
    for name in options:
        if name not in known:
            from difflib import get_close_matches  # noqa: PLC0415 - only for a mistake

            near = get_close_matches(name, known, n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            if name in ABSENT_OPTIONS:
                hint = f": {ABSENT_OPTIONS[name]}"
            raise InvalidConfigurationError(f"{method} has no option {name}{hint}")
