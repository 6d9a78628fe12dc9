from __future__ import annotations

from pulsar_py.common.policies import (
    AutoTopicCreation,
    BacklogQuota,
    BacklogQuotaAction,
    BacklogQuotaType,
    DelayedDeliveryPolicy,
    PersistencePolicies,
    RetentionPolicy,
    SchemaCompatibilityStrategy,
    TopicType,
)
from pulsar_py.metadata.documents import NamespacePolicies, TopicPolicies
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.policies.effective_settings import effective_auto_creation, effective_settings
from pulsar_py.server.policies.topic_settings import TopicSettings

BROKER = TopicSettings(max_producers=1, message_ttl_seconds=10)
HOLD = BacklogQuotaAction.PRODUCER_REQUEST_HOLD


def test_without_policies_the_brokers_settings_hold() -> None:
    assert effective_settings(BROKER, None, None) is BROKER
    assert effective_settings(BROKER, NamespacePolicies(), TopicPolicies()) == BROKER


def test_the_topic_goes_before_the_namespace_and_that_before_the_broker() -> None:
    namespace = NamespacePolicies(max_producers_per_topic=2, message_ttl_seconds=20)
    topic = TopicPolicies(max_producers=3)
    effective = effective_settings(BROKER, namespace, topic)
    assert effective.max_producers == 3
    assert effective.message_ttl_seconds == 20


def test_zero_is_a_value() -> None:
    effective = effective_settings(BROKER, NamespacePolicies(message_ttl_seconds=0), None)
    assert effective.message_ttl_seconds == 0


def test_quotas_are_merged_by_type() -> None:
    size, age = BacklogQuotaType.DESTINATION_STORAGE, BacklogQuotaType.MESSAGE_AGE
    broker = TopicSettings(backlog_quotas={size: BacklogQuota(1, -1, HOLD)})
    namespace = NamespacePolicies(backlog_quotas={age: BacklogQuota(-1, 2, HOLD)})
    topic = TopicPolicies(backlog_quotas={size: BacklogQuota(3, -1, HOLD)})
    quotas = effective_settings(broker, namespace, topic).backlog_quotas
    assert quotas[size].limit_bytes == 3
    assert quotas[age].limit_seconds == 2


def test_retention_and_persistence_reach_the_ledger() -> None:
    namespace = NamespacePolicies(
        retention=RetentionPolicy(60, 5), persistence=PersistencePolicies(3, 2, 1, 0.0)
    )
    ledger = effective_settings(BROKER, namespace, None).managed_ledger
    assert ledger.retention_seconds == 3600
    assert ledger.retention_size_bytes == 5 * 1024 * 1024
    assert ledger.ledger_options.ensemble_size == 3
    assert ledger.cursor_persist_interval_seconds == 1
    persistence = PersistencePolicies(1, 1, 1, 0.25)
    own = effective_settings(BROKER, namespace, TopicPolicies(persistence=persistence))
    assert own.managed_ledger.cursor_persist_interval_seconds == 4
    topic = TopicPolicies(retention=RetentionPolicy(-1, -1))
    ledger = effective_settings(BROKER, namespace, topic).managed_ledger
    assert ledger.retention_seconds == -1
    assert ledger.retention_size_bytes == -1


def test_dispatch_takes_over_limits_types_and_delays() -> None:
    namespace = NamespacePolicies(
        subscription_types=frozenset({"Shared", "Unknown"}),
        max_consumers_per_topic=4,
        delayed_delivery=DelayedDeliveryPolicy(False, 500, 9000),
    )
    topic = TopicPolicies(is_delayed_delivery_enabled=True, max_unacked_messages_per_consumer=7)
    effective = effective_settings(BROKER, namespace, topic)
    dispatch = effective.dispatch
    assert dispatch.enabled_subscription_types == {SubscriptionType.SHARED}
    assert dispatch.max_consumers_per_topic == 4
    assert dispatch.is_delayed_delivery_enabled
    assert dispatch.delayed_delivery_tick_millis == 500
    assert dispatch.max_unacked_messages_per_consumer == 7
    assert effective.max_delay_millis == 9000


def test_an_undefined_schema_strategy_is_inherited() -> None:
    undefined = SchemaCompatibilityStrategy.UNDEFINED
    backward = SchemaCompatibilityStrategy.BACKWARD
    namespace = NamespacePolicies(schema_compatibility_strategy=backward)
    topic = TopicPolicies(schema_compatibility_strategy=undefined)
    assert effective_settings(BROKER, namespace, topic).schema.strategy is backward
    namespace = NamespacePolicies(schema_compatibility_strategy=undefined)
    strategy = effective_settings(BROKER, namespace, None).schema.strategy
    assert strategy is SchemaCompatibilityStrategy.FULL


def test_auto_creation() -> None:
    broker = AutoTopicCreation(True, TopicType.NON_PARTITIONED, 1)
    own = AutoTopicCreation(True, TopicType.PARTITIONED, 3)
    assert effective_auto_creation(broker, None) is broker
    assert effective_auto_creation(broker, NamespacePolicies()) is broker
    assert effective_auto_creation(broker, NamespacePolicies(auto_topic_creation=own)) == own
    deleted = NamespacePolicies(auto_topic_creation=own, is_deleted=True)
    assert not effective_auto_creation(broker, deleted).is_allowed
