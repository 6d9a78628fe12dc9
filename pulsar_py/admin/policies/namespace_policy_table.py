"""The table of namespaces' policies: path, stored key and reader of each (values).

A key in `metadata.documents`, a line in `POLICIES` and, for a new kind of value, a reader in
`policy_values` let REST read and write a policy as JSON, and no more. To have an effect it also
needs a field of `server.policies.TopicSettings`, a line in `effective_settings`, and code that uses
the field. The broker learns of a change by watching the metadata store.

Source: Namespaces and NamespacesBase in Pulsar's broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pulsar_py.admin.http_messages import NO_CONTENT, Response
from pulsar_py.admin.policies import policy_values as values
from pulsar_py.admin.policies import storage_values as storage
from pulsar_py.admin.policies.policy_readers import Reader
from pulsar_py.admin.policies.rate_values import dispatch_rate, publish_rate, subscribe_rate
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.metadata.json_document import Key
from pulsar_py.server.security.actions import Action


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: its word in the path, its key in the stored document, the reader of a body.

    `unset_answer` is GET's answer while the policy is not set; None is an empty body, and a
    `Response` is sent as it is. Of a policy that `is_per_cluster` the key holds one for each
    cluster, of which REST has that of the own cluster.
    """

    word: str
    key: Key[Any]  # Any: the table has keys of many types
    read: Reader
    unset_answer: object | Response = None
    set_method: str = "POST"
    can_be_deleted: bool = True
    write_needs: Action = Action.WRITE_POLICY
    is_per_cluster: bool = False


POLICIES: Final = (
    Policy("deduplication", NamespacePolicies.is_deduplication_enabled, values.boolean),
    Policy("autoTopicCreation", NamespacePolicies.auto_topic_creation, values.auto_topic_creation),
    Policy(
        "autoSubscriptionCreation",
        NamespacePolicies.is_auto_subscription_creation_allowed,
        values.auto_subscription_creation,
    ),
    Policy(
        "delayedDelivery",
        NamespacePolicies.delayed_delivery,
        values.delayed_delivery,
        write_needs=Action.WRITE_POLICY_OF_BROKERS,
    ),
    Policy(
        "encryptionRequired",
        NamespacePolicies.is_encryption_required,
        values.boolean,
        unset_answer=False,
        can_be_deleted=False,
    ),
    Policy(
        "schemaValidationEnforced",
        NamespacePolicies.is_schema_validation_enforced,
        values.boolean,
        unset_answer=False,
        can_be_deleted=False,
    ),
    Policy(
        "schemaCompatibilityStrategy",
        NamespacePolicies.schema_compatibility_strategy,
        values.schema_compatibility,
        unset_answer="UNDEFINED",
        set_method="PUT",
        can_be_deleted=False,
    ),
    Policy("maxProducersPerTopic", NamespacePolicies.max_producers_per_topic, values.not_negative),
    Policy("maxConsumersPerTopic", NamespacePolicies.max_consumers_per_topic, values.not_negative),
    Policy(
        "maxConsumersPerSubscription",
        NamespacePolicies.max_consumers_per_subscription,
        values.not_negative,
    ),
    Policy(
        "maxSubscriptionsPerTopic",
        NamespacePolicies.max_subscriptions_per_topic,
        values.not_negative,
    ),
    Policy(
        "maxUnackedMessagesPerConsumer",
        NamespacePolicies.max_unacked_messages_per_consumer,
        values.not_negative,
    ),
    Policy(
        "maxUnackedMessagesPerSubscription",
        NamespacePolicies.max_unacked_messages_per_subscription,
        values.not_negative,
    ),
    Policy("messageTTL", NamespacePolicies.message_ttl_seconds, values.not_negative),
    Policy(
        "subscriptionTypesEnabled",
        NamespacePolicies.subscription_types,
        values.subscription_types,
        unset_answer=[],
    ),
    Policy("retention", NamespacePolicies.retention, storage.retention),
    Policy("publishRate", NamespacePolicies.publish_rates, publish_rate, is_per_cluster=True),
    Policy(
        "dispatchRate",
        NamespacePolicies.topic_dispatch_rates,
        dispatch_rate,
        is_per_cluster=True,
    ),
    Policy(
        "subscriptionDispatchRate",
        NamespacePolicies.subscription_dispatch_rates,
        dispatch_rate,
        is_per_cluster=True,
    ),
    Policy(
        "replicatorDispatchRate",
        NamespacePolicies.replicator_dispatch_rates,
        dispatch_rate,
        is_per_cluster=True,
    ),
    Policy(
        "subscribeRate",
        NamespacePolicies.subscribe_rates,
        subscribe_rate,
        is_per_cluster=True,
    ),
    Policy(
        "subscriptionExpirationTime",
        NamespacePolicies.subscription_expiration_minutes,
        values.not_negative,
    ),
    Policy("inactiveTopicPolicies", NamespacePolicies.inactive_topics, values.inactive_topics),
    Policy(
        "maxTopicsPerNamespace",
        NamespacePolicies.max_topics_per_namespace,
        values.not_negative,
        unset_answer=0,
    ),
    Policy(
        "deduplicationSnapshotInterval",
        NamespacePolicies.deduplication_snapshot_seconds,
        values.not_negative_or_null,
        can_be_deleted=False,
    ),
    Policy(
        "compactionThreshold",
        NamespacePolicies.compaction_threshold_bytes,
        values.not_negative_long,
        set_method="PUT",
    ),
    Policy(
        "schemaAutoUpdateCompatibilityStrategy",
        NamespacePolicies.schema_auto_update_strategy,
        values.schema_auto_update,
        unset_answer=NO_CONTENT,
        set_method="PUT",
        can_be_deleted=False,
    ),
    Policy("entryFilters", NamespacePolicies.entry_filter_names, values.filter_names),
    Policy(
        "dispatcherPauseOnAckStatePersistent",
        NamespacePolicies.is_paused_on_unsaved_acks,
        values.true,
        unset_answer=False,
    ),
    Policy(
        "allowedTopicPropertyKeysForMetrics",
        NamespacePolicies.metrics_property_keys,
        values.texts,
    ),
)
