"""The public enumerations, with the names and numbers of the official Python client (values).

Values are the official client's; where the wire has the same idea its number is the same too
(`ConsumerType`, `InitialPosition`, `ProducerAccessMode`, `CompressionType`).

Source: the official Python client's `pulsar` module; CompressionType, SubType and the like in
PulsarApi.proto; CryptoFailureAction in Pulsar's Java client.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "BatchingType",
    "CompressionType",
    "ConsumerCryptoFailureAction",
    "ConsumerType",
    "HashingScheme",
    "InitialPosition",
    "KeySharedMode",
    "PartitionsRoutingMode",
    "ProducerAccessMode",
    "ProducerCryptoFailureAction",
    "RegexSubscriptionMode",
    "SubscriptionMode",
]


class ConsumerType(IntEnum):
    """How the consumers of one subscription share its messages (SubType on the wire)."""

    Exclusive = 0
    """One consumer; a second one is refused."""
    Shared = 1
    """Messages go to consumers in turn; no order."""
    Failover = 2
    """One consumer at a time, others stand by; order is kept."""
    KeyShared = 3
    """Messages of one key go to one consumer, in order."""


class InitialPosition(IntEnum):
    """Where a new subscription starts."""

    Latest = 0
    """With messages published from now on."""
    Earliest = 1
    """With the oldest message that is stored."""


class CompressionType(IntEnum):
    """How a producer compresses payloads (CompressionType on the wire)."""

    NONE = 0
    LZ4 = 1
    ZLib = 2
    ZSTD = 3
    SNAPPY = 4


class PartitionsRoutingMode(IntEnum):
    """How to choose the partition of a message without a key; a key's hash decides otherwise."""

    UseSinglePartition = 0
    """One partition, chosen by chance when the producer is made."""
    RoundRobinDistribution = 1
    """One partition after the other, a whole batch at a time."""
    CustomPartition = 2
    """The partition that the producer's `message_router` returns."""


class BatchingType(IntEnum):
    """How messages are gathered into batches."""

    Default = 0
    """In the order in which they were sent, whatever their keys."""
    KeyBased = 1
    """Messages of one key in each batch, as Key_Shared subscriptions need."""


class ProducerAccessMode(IntEnum):
    """How many producers a topic may have (ProducerAccessMode on the wire)."""

    Shared = 0
    Exclusive = 1
    """Fails at once if any producer is connected."""
    WaitForExclusive = 2
    """Waits until it is the only one."""
    ExclusiveWithFencing = 3
    """Disconnects the others, and fences them."""


class RegexSubscriptionMode(IntEnum):
    """Kinds of topics that a pattern can match."""

    PersistentOnly = 0
    NonPersistentOnly = 1
    AllTopics = 2


class SubscriptionMode(IntEnum):
    """Whether a subscription outlives its consumers."""

    Durable = 0
    NonDurable = 1


class HashingScheme(IntEnum):
    """Hash functions that turn a key into a partition."""

    JavaStringHash = 0
    """`String.hashCode`; the default of Pulsar's Java client."""
    Murmur3_32Hash = 1
    """Murmur3, which clients of all languages have."""
    BoostHash = 2
    """The default of the official Python and C++ clients."""


class ProducerCryptoFailureAction(IntEnum):
    """What a producer does with a message that it can't encrypt."""

    FAIL = 0
    """Its send fails."""
    SEND = 1
    """Send it unencrypted."""


class ConsumerCryptoFailureAction(IntEnum):
    """What a consumer does with a message that it can't decrypt."""

    FAIL = 0
    """Don't deliver it; the broker sends it again later."""
    DISCARD = 1
    """Acknowledge and drop it."""
    CONSUME = 2
    """Deliver it encrypted; `encryption_context` has the parameters."""


class KeySharedMode(IntEnum):
    """Whether the broker or consumers choose the hash ranges of a Key_Shared subscription."""

    AutoSplit = 0
    """The broker, as consumers come and go."""
    Sticky = 1
    """Each consumer names its own."""
