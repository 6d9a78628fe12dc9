"""policies_format: the JSON of policies (answers recorded from Apache Pulsar)."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common import policies
from pulsar_py.metadata import policies_format as codecs
from pulsar_py.metadata.json_document import Codec, Json

EXAMPLES: list[tuple[Codec[Any], object, Json]] = [
    (
        codecs.RETENTION,
        policies.RetentionPolicy(retention_minutes=5, retention_megabytes=-1),
        {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
    ),
    (
        codecs.BACKLOG_QUOTA,
        policies.BacklogQuota(1000, 60, policies.BacklogQuotaAction.PRODUCER_EXCEPTION),
        {"limit": 1000, "limitSize": 1000, "limitTime": 60, "policy": "producer_exception"},
    ),
    (
        codecs.BACKLOG_QUOTAS,
        {
            policies.BacklogQuotaType.MESSAGE_AGE: policies.BacklogQuota(
                0, 60, policies.BacklogQuotaAction.CONSUMER_BACKLOG_EVICTION
            )
        },
        {
            "message_age": {
                "limit": 0,
                "limitSize": 0,
                "limitTime": 60,
                "policy": "consumer_backlog_eviction",
            }
        },
    ),
    (
        codecs.PERSISTENCE,
        policies.PersistencePolicies(1, 1, 1, 0.5),
        {
            "bookkeeperEnsemble": 1,
            "bookkeeperWriteQuorum": 1,
            "bookkeeperAckQuorum": 1,
            "managedLedgerMaxMarkDeleteRate": 0.5,
        },
    ),
    (
        codecs.DISPATCH_RATE,
        policies.DispatchRate(10, 20, 2, is_relative_to_publish_rate=True),
        {
            "dispatchThrottlingRateInMsg": 10,
            "dispatchThrottlingRateInByte": 20,
            "relativeToPublishRate": True,
            "ratePeriodInSecond": 2,
        },
    ),
    (
        codecs.PUBLISH_RATE,
        policies.PublishRate(10, -1),
        {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1},
    ),
    (
        codecs.SUBSCRIBE_RATE,
        policies.SubscribeRate(10, 30),
        {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 30},
    ),
    (
        codecs.AUTO_TOPIC_CREATION,
        policies.AutoTopicCreation(
            is_allowed=True, topic_type=policies.TopicType.PARTITIONED, default_partitions_count=3
        ),
        {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
    ),
    (
        codecs.AUTO_TOPIC_CREATION,
        policies.AutoTopicCreation(
            is_allowed=False,
            topic_type=policies.TopicType.NON_PARTITIONED,
            default_partitions_count=1,
        ),
        {"allowAutoTopicCreation": False, "topicType": "non-partitioned"},
    ),
    (codecs.AUTO_SUBSCRIPTION_CREATION, True, {"allowAutoSubscriptionCreation": True}),
    (
        codecs.DELAYED_DELIVERY,
        policies.DelayedDeliveryPolicy(is_active=True, tick_millis=500, max_delay_millis=9),
        {"tickTime": 500, "active": True, "maxDeliveryDelayInMillis": 9},
    ),
    (
        codecs.INACTIVE_TOPICS,
        policies.InactiveTopicPolicy(
            policies.InactiveTopicDeleteMode.DELETE_WHEN_SUBSCRIPTIONS_CAUGHT_UP,
            60,
            is_deletion_enabled=True,
        ),
        {
            "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
            "maxInactiveDurationSeconds": 60,
            "deleteWhileInactive": True,
        },
    ),
    (
        codecs.SCHEMA_COMPATIBILITY,
        policies.SchemaCompatibilityStrategy.FULL_TRANSITIVE,
        "FULL_TRANSITIVE",
    ),
    (codecs.TEXT_SET, frozenset({"b", "a"}), ["a", "b"]),
    (codecs.TEXTS, ("b", "a"), ["b", "a"]),
    (codecs.mapping_codec(codecs.INTEGER), {"a": 1}, {"a": 1}),
]


@pytest.mark.parametrize(("codec", "value", "document"), EXAMPLES)
def test_a_value_is_written_and_read_back(codec: Codec[Any], value: object, document: Json) -> None:
    assert codec.encode(value) == document
    assert codec.decode(document) == value


def test_missing_keys_have_pulsars_defaults() -> None:
    assert codecs.RETENTION.decode({}) == policies.RetentionPolicy(0, 0)
    assert codecs.DISPATCH_RATE.decode({}) == policies.DispatchRate(0, 0, 0)
    assert codecs.PUBLISH_RATE.decode({}) == policies.PublishRate(-1, -1)
    assert codecs.SUBSCRIBE_RATE.decode({}) == policies.SubscribeRate(-1, 30)


def test_the_old_name_of_a_quotas_limit_counts() -> None:
    quota = codecs.BACKLOG_QUOTA.decode({"limit": 7, "policy": "producer_request_hold"})
    assert quota.limit_bytes == 7
    quota = codecs.BACKLOG_QUOTA.decode(
        {"limit": 7, "limitSize": 0, "policy": "producer_request_hold"}
    )
    assert quota.limit_bytes == 7
