"""Policies that namespaces, topics and the broker's settings share (values).

Each class is the effective value of one policy, with units in the names. Where it was set (topic,
namespace, broker) and its JSON (`metadata.policies_format`) are left to others. A policy that is
not set is None, never a value with a special meaning.

Source: org.apache.pulsar.common.policies.data in Pulsar's client API.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

UNLIMITED: Final = -1
"""The value of a limit of retention, quotas or rates that is off."""


class SchemaCompatibilityStrategy(Enum):
    """How a new schema has to be compatible with older ones."""

    UNDEFINED = "UNDEFINED"
    ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"
    ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


class TopicType(Enum):
    """The kind of topic that auto-creation makes."""

    PARTITIONED = "partitioned"
    NON_PARTITIONED = "non-partitioned"


class BacklogQuotaType(Enum):
    """Kinds of backlog quotas."""

    DESTINATION_STORAGE = "destination_storage"
    MESSAGE_AGE = "message_age"


class BacklogQuotaAction(Enum):
    """Actions when a backlog quota is exceeded (`BacklogQuota.RetentionPolicy`)."""

    PRODUCER_REQUEST_HOLD = "producer_request_hold"
    PRODUCER_EXCEPTION = "producer_exception"
    CONSUMER_BACKLOG_EVICTION = "consumer_backlog_eviction"


class InactiveTopicDeleteMode(Enum):
    """Conditions under which a topic counts as inactive."""

    DELETE_WHEN_NO_SUBSCRIPTIONS = "delete_when_no_subscriptions"
    DELETE_WHEN_SUBSCRIPTIONS_CAUGHT_UP = "delete_when_subscriptions_caught_up"


class RetentionPolicy(Struct, frozen=True):
    """Retention of acknowledged data, which is kept while it is within *both* limits.

    `UNLIMITED` in both keeps everything, 0 in both nothing beyond the cursors.
    """

    retention_minutes: int
    retention_megabytes: int


class BacklogQuota(Struct, frozen=True):
    """The most a topic's slowest subscription may be behind. Limits of 0 or less are off."""

    limit_bytes: int
    limit_seconds: int
    action: BacklogQuotaAction


class PersistencePolicies(Struct, frozen=True):
    """How a topic's ledgers are replicated, and how often cursors may be written a second."""

    ensemble_size: int
    write_quorum_size: int
    ack_quorum_size: int
    max_mark_deletes_per_second: float


class BookieAffinity(Struct, frozen=True):
    """The groups of bookies that a namespace's ledgers are kept on; none means all bookies.

    The secondary ones are taken where the primary ones have too few.
    """

    primary: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()


class DispatchRate(Struct, frozen=True):
    """The most that is dispatched in a period. Limits of 0 or less are off."""

    messages_count: int
    bytes_count: int
    period_seconds: int = 1
    is_relative_to_publish_rate: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.messages_count > 0 or self.bytes_count > 0


class PublishRate(Struct, frozen=True):
    """The most that is published to a topic in a second. Limits of 0 or less are off."""

    messages_per_second: int
    bytes_per_second: int

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.messages_per_second > 0 or self.bytes_per_second > 0


class SubscribeRate(Struct, frozen=True):
    """How often one consumer may subscribe in a period. A limit of 0 or less is off."""

    subscribes_per_consumer: int
    period_seconds: int = 30


class AutoTopicCreation(Struct, frozen=True):
    """Whether a missing topic is created when a client uses it, and of which type."""

    is_allowed: bool
    topic_type: TopicType
    default_partitions_count: int


class DelayedDeliveryPolicy(Struct, frozen=True):
    """Whether messages may be delivered later. A longest delay of 0 is no limit."""

    is_active: bool
    tick_millis: int
    max_delay_millis: int = 0


class InactiveTopicPolicy(Struct, frozen=True):
    """When a topic nobody uses is deleted."""

    delete_mode: InactiveTopicDeleteMode
    max_inactive_seconds: int
    is_deletion_enabled: bool
