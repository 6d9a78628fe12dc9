"""Codecs of policies as JSON, with the keys that Apache Pulsar gives them (pure).

Reading is lenient: a key that is missing has Pulsar's default for it, numbers may come as text.
The administration checks which values are allowed, before they are stored.

Source: org.apache.pulsar.common.policies.data and its Jackson mappings.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeVar

from pulsar_py.common.policies import (
    AutoTopicCreation,
    BacklogQuota,
    BacklogQuotaAction,
    BacklogQuotaType,
    BookieAffinity,
    DelayedDeliveryPolicy,
    DispatchRate,
    InactiveTopicDeleteMode,
    InactiveTopicPolicy,
    PersistencePolicies,
    PublishRate,
    RetentionPolicy,
    SchemaCompatibilityStrategy,
    SubscribeRate,
    TopicType,
)
from pulsar_py.metadata.json_document import Codec, Json

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


def _same(value: Json) -> Json:
    return value


def enum_codec(kind: type[E]) -> Codec[E]:
    """The codec of an enum, stored as its value."""
    return Codec(kind, lambda member: member.value)


def mapping_codec(codec: Codec[T]) -> Codec[Mapping[str, T]]:
    """The codec of an object whose values are all of one kind."""
    return Codec(
        lambda document: {name: codec.decode(value) for name, value in document.items()},
        lambda mapping: {name: codec.encode(value) for name, value in mapping.items()},
    )


INTEGER: Codec[int] = Codec(int, _same)
NUMBER: Codec[float] = Codec(float, _same)
BOOLEAN: Codec[bool] = Codec(bool, _same)
TEXT: Codec[str] = Codec(str, _same)
TEXTS: Codec[tuple[str, ...]] = Codec(tuple, list)
TEXT_SET: Codec[frozenset[str]] = Codec(frozenset, sorted)
TEXT_MAP: Codec[Mapping[str, str]] = Codec(dict, dict)
JSON_OBJECT: Codec[Mapping[str, Json]] = Codec(dict, dict)
SCHEMA_COMPATIBILITY = enum_codec(SchemaCompatibilityStrategy)


def _decode_retention(document: Json) -> RetentionPolicy:
    return RetentionPolicy(
        retention_minutes=int(document.get("retentionTimeInMinutes", 0)),
        retention_megabytes=int(document.get("retentionSizeInMB", 0)),
    )


def _encode_retention(policy: RetentionPolicy) -> Json:
    return {
        "retentionTimeInMinutes": policy.retention_minutes,
        "retentionSizeInMB": policy.retention_megabytes,
    }


RETENTION = Codec(_decode_retention, _encode_retention)


def _decode_backlog_quota(document: Json) -> BacklogQuota:
    # Pulsar before 2.8 wrote `limit` for `limitSize`.
    limit_bytes = document.get("limitSize", document.get("limit", 0))
    return BacklogQuota(
        limit_bytes=int(limit_bytes or document.get("limit") or 0),
        limit_seconds=int(document.get("limitTime", 0)),
        action=BacklogQuotaAction(document["policy"]),
    )


def _encode_backlog_quota(quota: BacklogQuota) -> Json:
    return {
        "limit": quota.limit_bytes,
        "limitSize": quota.limit_bytes,
        "limitTime": quota.limit_seconds,
        "policy": quota.action.value,
    }


BACKLOG_QUOTA = Codec(_decode_backlog_quota, _encode_backlog_quota)


def _decode_backlog_quotas(document: Json) -> Mapping[BacklogQuotaType, BacklogQuota]:
    return {BacklogQuotaType(kind): BACKLOG_QUOTA.decode(each) for kind, each in document.items()}


def _encode_backlog_quotas(quotas: Mapping[BacklogQuotaType, BacklogQuota]) -> Json:
    return {kind.value: BACKLOG_QUOTA.encode(each) for kind, each in quotas.items()}


BACKLOG_QUOTAS = Codec(_decode_backlog_quotas, _encode_backlog_quotas)


def _decode_persistence(document: Json) -> PersistencePolicies:
    return PersistencePolicies(
        ensemble_size=int(document.get("bookkeeperEnsemble", 2)),
        write_quorum_size=int(document.get("bookkeeperWriteQuorum", 2)),
        ack_quorum_size=int(document.get("bookkeeperAckQuorum", 2)),
        max_mark_deletes_per_second=float(document.get("managedLedgerMaxMarkDeleteRate", 0.0)),
    )


def _encode_persistence(policies: PersistencePolicies) -> Json:
    return {
        "bookkeeperEnsemble": policies.ensemble_size,
        "bookkeeperWriteQuorum": policies.write_quorum_size,
        "bookkeeperAckQuorum": policies.ack_quorum_size,
        "managedLedgerMaxMarkDeleteRate": policies.max_mark_deletes_per_second,
    }


PERSISTENCE = Codec(_decode_persistence, _encode_persistence)


def _decode_groups(text: Json) -> tuple[str, ...]:
    names = () if text is None else str(text).split(",")
    return tuple(name.strip() for name in names if name.strip())


BOOKIE_AFFINITY = Codec(
    lambda document: BookieAffinity(
        primary=_decode_groups(document.get("bookkeeperAffinityGroupPrimary")),
        secondary=_decode_groups(document.get("bookkeeperAffinityGroupSecondary")),
    ),
    lambda affinity: {
        "bookkeeperAffinityGroupPrimary": ",".join(affinity.primary),
        "bookkeeperAffinityGroupSecondary": ",".join(affinity.secondary),
    },
)


def _decode_dispatch_rate(document: Json) -> DispatchRate:
    return DispatchRate(
        messages_count=int(document.get("dispatchThrottlingRateInMsg", 0)),
        bytes_count=int(document.get("dispatchThrottlingRateInByte", 0)),
        period_seconds=int(document.get("ratePeriodInSecond", 0)),
        is_relative_to_publish_rate=bool(document.get("relativeToPublishRate", False)),
    )


def _encode_dispatch_rate(rate: DispatchRate) -> Json:
    return {
        "dispatchThrottlingRateInMsg": rate.messages_count,
        "dispatchThrottlingRateInByte": rate.bytes_count,
        "relativeToPublishRate": rate.is_relative_to_publish_rate,
        "ratePeriodInSecond": rate.period_seconds,
    }


DISPATCH_RATE = Codec(_decode_dispatch_rate, _encode_dispatch_rate)


def _decode_publish_rate(document: Json) -> PublishRate:
    return PublishRate(
        messages_per_second=int(document.get("publishThrottlingRateInMsg", -1)),
        bytes_per_second=int(document.get("publishThrottlingRateInByte", -1)),
    )


def _encode_publish_rate(rate: PublishRate) -> Json:
    return {
        "publishThrottlingRateInMsg": rate.messages_per_second,
        "publishThrottlingRateInByte": rate.bytes_per_second,
    }


PUBLISH_RATE = Codec(_decode_publish_rate, _encode_publish_rate)


def _decode_subscribe_rate(document: Json) -> SubscribeRate:
    return SubscribeRate(
        subscribes_per_consumer=int(document.get("subscribeThrottlingRatePerConsumer", -1)),
        period_seconds=int(document.get("ratePeriodInSecond", 30)),
    )


def _encode_subscribe_rate(rate: SubscribeRate) -> Json:
    return {
        "subscribeThrottlingRatePerConsumer": rate.subscribes_per_consumer,
        "ratePeriodInSecond": rate.period_seconds,
    }


SUBSCRIBE_RATE = Codec(_decode_subscribe_rate, _encode_subscribe_rate)


def _decode_auto_topic_creation(document: Json) -> AutoTopicCreation:
    return AutoTopicCreation(
        is_allowed=bool(document.get("allowAutoTopicCreation", False)),
        topic_type=_topic_type(document.get("topicType")),
        default_partitions_count=int(document.get("defaultNumPartitions") or 1),
    )


def _topic_type(name: object) -> TopicType:
    """The type of that name; any other means no partitions.

    Nothing checks it where clients create no topics.
    """
    is_partitioned = name == TopicType.PARTITIONED.value
    return TopicType.PARTITIONED if is_partitioned else TopicType.NON_PARTITIONED


def _encode_auto_topic_creation(creation: AutoTopicCreation) -> Json:
    document: dict[str, Json] = {
        "allowAutoTopicCreation": creation.is_allowed,
        "topicType": creation.topic_type.value,
    }
    if creation.topic_type is TopicType.PARTITIONED:
        document["defaultNumPartitions"] = creation.default_partitions_count
    return document


AUTO_TOPIC_CREATION = Codec(_decode_auto_topic_creation, _encode_auto_topic_creation)

AUTO_SUBSCRIPTION_CREATION: Codec[bool] = Codec(
    lambda document: bool(document.get("allowAutoSubscriptionCreation", False)),
    lambda is_allowed: {"allowAutoSubscriptionCreation": is_allowed},
)


def _decode_delayed_delivery(document: Json) -> DelayedDeliveryPolicy:
    return DelayedDeliveryPolicy(
        is_active=bool(document.get("active", False)),
        tick_millis=int(document.get("tickTime", 0)),
        max_delay_millis=int(document.get("maxDeliveryDelayInMillis", 0)),
    )


def _encode_delayed_delivery(policy: DelayedDeliveryPolicy) -> Json:
    return {
        "tickTime": policy.tick_millis,
        "active": policy.is_active,
        "maxDeliveryDelayInMillis": policy.max_delay_millis,
    }


DELAYED_DELIVERY = Codec(_decode_delayed_delivery, _encode_delayed_delivery)


def _decode_inactive_topics(document: Json) -> InactiveTopicPolicy:
    mode = document.get("inactiveTopicDeleteMode")
    return InactiveTopicPolicy(
        delete_mode=InactiveTopicDeleteMode(mode)
        if mode
        else InactiveTopicDeleteMode.DELETE_WHEN_NO_SUBSCRIPTIONS,
        max_inactive_seconds=int(document.get("maxInactiveDurationSeconds", 0)),
        is_deletion_enabled=bool(document.get("deleteWhileInactive", False)),
    )


def _encode_inactive_topics(policy: InactiveTopicPolicy) -> Json:
    return {
        "inactiveTopicDeleteMode": policy.delete_mode.value,
        "maxInactiveDurationSeconds": policy.max_inactive_seconds,
        "deleteWhileInactive": policy.is_deletion_enabled,
    }


INACTIVE_TOPICS = Codec(_decode_inactive_topics, _encode_inactive_topics)

NAMESPACE_DEFAULTS: Final[Mapping[str, Json]] = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "allowed_clusters": [],
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}
"""Values of namespaces' policies that Apache Pulsar writes even if nobody has set them."""
