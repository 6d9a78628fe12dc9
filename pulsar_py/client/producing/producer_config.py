"""`ProducerConfig`: the options of a producer as one frozen value, checked when it is made.

Names and defaults are the official Python client's where it has the option, the Java client's
elsewhere.

Source: `Client.create_producer` of the official Python client; ProducerConfigurationData in
Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.client.messages.option_checks import check_options, own_members
from pulsar_py.client.shared.enums import (
    BatchingType,
    CompressionType,
    HashingScheme,
    PartitionsRoutingMode,
    ProducerAccessMode,
    ProducerCryptoFailureAction,
)
from pulsar_py.common.errors import InvalidConfigurationError

if TYPE_CHECKING:
    from pulsar_py.client.producing.message_builder import OutgoingMessage
    from pulsar_py.client.producing.producer_interceptor import ProducerInterceptor
    from pulsar_py.client.security.crypto_keys import CryptoKeyReader
    from pulsar_py.schema.schema import Schema

__all__ = ["MessageRouterFunction", "ProducerConfig"]

MessageRouterFunction = Callable[["OutgoingMessage", int], int]
"""A custom router: takes a message and the number of partitions, returns a partition's index."""

_MINIMA: Final[dict[str, float]] = {
    "send_timeout_millis": 0,
    "max_pending_messages": 0,
    "max_pending_messages_across_partitions": 0,
    "batching_max_messages": 1,
    "batching_max_allowed_size_in_bytes": 1,
    "batching_max_publish_delay_ms": 0,
    "batching_partition_switch_frequency_by_publish_delay": 1,
    "chunk_max_message_size": -1,
    "compress_min_msg_body_size": 0,
    "auto_update_partitions_interval_seconds": 0.001,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """One producer's options."""

    producer_name: str | None = None
    """The producer's name, unique on its topic; None: the broker generates one."""
    schema: Schema[Any] | None = None  # Any: of whatever values
    """The schema that encodes values; None for bytes."""
    initial_sequence_id: int | None = None
    """The first message gets the one after it; None goes on after the last the broker knows."""
    send_timeout_millis: int = 30_000
    """A message without receipt fails after this time; 0 for never."""
    compression_type: CompressionType = CompressionType.NONE
    """The compression of payloads; each message names it."""
    compress_min_msg_body_size: int = 4096
    """Payloads of at most so many bytes are not compressed."""
    max_pending_messages: int = 1000
    """Messages without receipt, of one topic or partition; 0 for no limit but the client's memory.
    """
    max_pending_messages_across_partitions: int = 50_000
    """Limit for all partitions together; each gets an equal share if less. 0 for no limit."""
    block_if_queue_full: bool = False
    """Whether `send` waits at a limit; if not, it raises ProducerQueueFullError."""
    batching_enabled: bool = False
    """Gather messages, and send those of one topic or partition together."""
    batching_max_messages: int = 1000
    """A batch of so many messages goes out at once."""
    batching_max_allowed_size_in_bytes: int = 128 * 1024
    """A batch of so many bytes goes out at once; larger messages go alone."""
    batching_max_publish_delay_ms: float = 10
    """Milliseconds after its first message at which a batch goes out, full or not."""
    batching_type: BatchingType = BatchingType.Default
    """Batches of any keys, or (`KeyBased`) one for each key, as Key_Shared needs."""
    batching_partition_switch_frequency_by_publish_delay: int = 10
    """Round robin stays at one partition for at most so many publish delays."""
    chunking_enabled: bool = False
    """Cut messages that are larger than the broker takes; not together with batching."""
    chunk_max_message_size: int = -1
    """Most bytes of a chunk; -1 for the broker's limit."""
    message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution
    """How to choose the partition of a message without a key."""
    message_router: MessageRouterFunction | None = None
    """A function that chooses partitions, whatever `message_routing_mode` is."""
    hashing_scheme: HashingScheme = HashingScheme.BoostHash
    """The hash that turns a key into a partition. The default is
    that of the official Python and C++ clients; Java's is `JavaStringHash`. All producers of a
    topic have to use the same."""
    lazy_start_partitioned_producers: bool = False
    """Register with a partition only when a message goes there."""
    auto_update_partitions: bool = True
    """Notice when the topic gets more partitions."""
    auto_update_partitions_interval_seconds: float = 60
    """Interval at which new partitions are looked for."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Metadata of the producer, shown in the broker's statistics."""
    encryption_key: str | Sequence[str] | None = None
    """Name of the public key to encrypt with; with several, the private key of any one decrypts."""
    crypto_key_reader: CryptoKeyReader | None = None
    """Provides the public keys that `encryption_key` names."""
    crypto_failure_action: ProducerCryptoFailureAction = ProducerCryptoFailureAction.FAIL
    """What to do with a message that can't be encrypted."""
    access_mode: ProducerAccessMode = ProducerAccessMode.Shared
    """Whether other producers may be on the topic beside this one."""
    interceptors: Sequence[ProducerInterceptor] = ()
    """Called in this order before a message goes out and after it was confirmed or failed."""
    reconnects: bool = True
    """Whether the producer registers again after a lost connection. If not, messages without
    receipt fail with ConnectionClosedError and the producer has ended, for callers that have to
    notice each loss."""
    initial_subscription_name: str | None = None
    """A subscription to create with the topic, so that it keeps messages for later consumers."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ProducerConfig:  # Any: values are checked here
        """The options as given to `create_producer`.

        Raises:
            InvalidConfigurationError: An option is unknown or out of bounds, or two exclude each
                other.
        """
        known = [each.name for each in fields(cls)]
        for name in options:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise InvalidConfigurationError(f"a producer has no option {name}{hint}")
        given = {name: value for name, value in options.items() if value is not None}
        if not given.get("producer_name", True):
            del given["producer_name"]
        return cls(**own_members(given, cls))

    @property
    def encryption_keys(self) -> tuple[str, ...]:
        """The names of the keys to encrypt with; empty without encryption."""
        if self.encryption_key is None:
            return ()
        if isinstance(self.encryption_key, str):
            return (self.encryption_key,)
        return tuple(self.encryption_key)

    def __post_init__(self) -> None:
        """Check types, bounds, and options that exclude each other.

        Raises:
            InvalidConfigurationError: An option is not valid; the message names it, its value and
                what is expected.
        """
        check_options(self)
        self._check_numbers()
        if self.chunk_max_message_size == 0:
            raise InvalidConfigurationError("chunk_max_message_size=0: expected at least 1, or -1")
        if self.batching_enabled and self.chunking_enabled:
            raise InvalidConfigurationError(
                "batching_enabled=True, chunking_enabled=True: enable only one of them"
            )
        if bool(self.encryption_keys) != (self.crypto_key_reader is not None):
            raise InvalidConfigurationError(
                f"encryption_key={self.encryption_key!r}, "
                f"crypto_key_reader={self.crypto_key_reader!r}: give both or none"
            )
        if (
            self.message_routing_mode is PartitionsRoutingMode.CustomPartition
            and self.message_router is None
        ):
            raise InvalidConfigurationError(
                "message_routing_mode=CustomPartition needs a message_router"
            )
        if self.initial_sequence_id is not None and self.initial_sequence_id < -1:
            raise InvalidConfigurationError(
                f"initial_sequence_id={self.initial_sequence_id}: expected at least -1"
            )

    def _check_numbers(self) -> None:
        for name, minimum in _MINIMA.items():
            value = getattr(self, name)
            if not value >= minimum:  # not `value < minimum`, which would let NaN pass
                raise InvalidConfigurationError(f"{name}={value!r}: expected at least {minimum}")
