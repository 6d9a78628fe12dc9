"""The policies of `pulsar-py admin namespaces`, a policy a line (declarations)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pulsar_py.admin_client import namespaces
from pulsar_py.admin_client.policies import NAMESPACE as CALLS
from pulsar_py.admin_client.policies import namespace_place
from pulsar_py.admin_client.records import AutoTopicCreationOverride, BookieAffinityGroup
from pulsar_py.cli.admin import output
from pulsar_py.cli.admin import policies as p
from pulsar_py.cli.admin.policies import Policy
from pulsar_py.cli.admin.words import NAMESPACE, Args, Steps, Word, one_of

_SET: Final = ("get", "set")
_OFFLOAD: Final = (
    "--driver/-d! --region/-r --bucket/-b --endpoint/-e --aws-id/-i --aws-secret/-s --s3-role/-ro "
    "--s3-role-session-name/-rsn --maxBlockSize/-mbs:size=64M --readBufferSize/-rbs:size=1M "
    "--offloadAfterElapsed/-oae:millis --offloadAfterThreshold/-oat:size "
    "--offloadAfterThresholdInSeconds/-oats:time --offloadedReadPriority/-orp"
)
_STRATEGIES: Final = (
    "UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
    "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
)  # fmt: skip
_AUTO_UPDATE: Final = {
    "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
    "Backward": "BACKWARD",
    "Forward": "FORWARD",
    "Full": "FULL",
    "AlwaysCompatible": "ALWAYS_COMPATIBLE",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}
"""The older names of strategies, and how pulsar-admin prints them."""


def words() -> Iterator[Word]:
    """The words of all policies of a namespace."""
    for policy in _POLICIES:
        yield from policy.words(NAMESPACE, lambda a: namespace_place(a.namespace))
    yield from _APART


def _topic_creation(a: Args) -> AutoTopicCreationOverride:
    return AutoTopicCreationOverride(
        allow_auto_topic_creation=one_of(a),
        topic_type=a.type,
        default_num_partitions=a.num_partitions,
    )


def _bookies(a: Args) -> BookieAffinityGroup:
    return BookieAffinityGroup(
        bookkeeper_affinity_group_primary=a.primary_group,
        bookkeeper_affinity_group_secondary=a.secondary_group,
    )


def _auto_update(a: Args) -> str:
    if a.disabled:
        return "AutoUpdateDisabled"
    if a.compatibility is None:
        raise ValueError("Either --compatibility or --disabled must be specified")
    found = {name.lower(): name for name in _AUTO_UPDATE}.get(a.compatibility.lower())
    if found is None:
        raise ValueError(f"--compatibility: expected one of {', '.join(_AUTO_UPDATE)}")
    return found


def _strategy(a: Args) -> str:
    given = (a.compatibility or "").upper()
    if given not in _STRATEGIES:
        raise ValueError(
            f"Illegal schema compatibility strategy {given}. "
            f"Possible values: [{', '.join(_STRATEGIES)}]"
        )
    return given


def _offload(a: Args) -> object:
    return p.offload_policies(
        a,
        block=a.maxBlockSize,
        buffer=a.readBufferSize,
        after_bytes=a.offloadAfterThreshold,
        after_seconds=a.offloadAfterThresholdInSeconds,
    )


def _get_threshold(a: Args) -> Steps:
    place = namespace_place(a.namespace)
    size = yield CALLS.offload_threshold.get(place)
    seconds = yield CALLS.offload_threshold_seconds.get(place)
    return {
        "offloadThresholdInBytes": size.json(),
        "offloadThresholdInSeconds": seconds.json(),
    }


def _set_threshold(a: Args) -> Steps:
    place = namespace_place(a.namespace)
    yield CALLS.offload_threshold.set(place, a.size)
    yield CALLS.offload_threshold_seconds.set(place, a.time)


def _minutes(value: object) -> str:
    return f"{value // 60_000} minute(s)\n" if isinstance(value, int) else "Unset for namespace\n"


def _thresholds(value: dict[str, object]) -> str:
    return "".join(f"{name}: {output.java_text(each)}\n" for name, each in value.items())


def _old_strategy(value: object) -> str:
    return f"{_AUTO_UPDATE.get(str(value), str(value))}\n"


# fmt: off
_POLICIES: Final = (
    Policy("clusters", CALLS.replication, "--clusters/-c:list!", lambda a: a.clusters,
           "the clusters that have a namespace's messages", _SET, show=output.lines),
    Policy("allowed-clusters", CALLS.allowed_clusters, "--clusters/-c:list!", lambda a: a.clusters,
           "the clusters that a namespace may be in", _SET, show=output.lines),
    Policy("subscription-types-enabled", CALLS.subscription_types_enabled, "--types/-t:list!",
           lambda a: a.types, "the types of subscriptions that may be used"),
    Policy("backlog-quotas", CALLS.backlog_quotas, "", p.nothing, "the bounds of backlogs",
           ("get",), show=p.show_quotas),
    Policy("backlog-quota", CALLS.backlog_quotas, p.BACKLOG_QUOTA, p.backlog_quota,
           "the bound of backlogs, and what happens at it", ("set", "remove"),
           set_query=p.quota_type, remove_options="-t/--type=destination_storage"),
    Policy("persistence", CALLS.persistence, p.PERSISTENCE, p.persistence,
           "how many bookies keep an entry"),
    Policy("message-ttl", CALLS.message_ttl, "--messageTTL/-ttl:time!", lambda a: a.messageTTL,
           "the time after which messages count as acknowledged"),
    Policy("max-subscriptions-per-topic", CALLS.max_subscriptions_per_topic,
           "--max-subscriptions-per-topic/-m:int!", lambda a: a.max_subscriptions_per_topic,
           "how many subscriptions a topic may have"),
    Policy("subscription-expiration-time", CALLS.subscription_expiration_minutes, "-t/--time:int!",
           lambda a: a.time, "the minutes after which unused subscriptions are deleted"),
    Policy("anti-affinity-group", CALLS.anti_affinity_group, "--group/-g!",
           lambda a: a.group.encode(),
           "the group of namespaces that are kept apart", ("get", "set", "delete"),
           show=output.json_lines),
    Policy("deduplication", CALLS.deduplication, p.ENABLE, p.switched,
           "whether messages that are sent again are dropped"),
    Policy("auto-topic-creation", CALLS.auto_topic_creation,
           f"{p.ENABLE} --type/-t=non-partitioned --num-partitions/-n:int", _topic_creation,
           "whether use creates topics"),
    Policy("auto-subscription-creation", CALLS.auto_subscription_creation, "--enable/-e:flag",
           p.auto_subscription, "whether use creates subscriptions"),
    Policy("retention", CALLS.retention, p.RETENTION, p.retention,
           "how long and how much of what is acknowledged is kept"),
    Policy("bookie-affinity-group", CALLS.bookie_affinity_group,
           "--primary-group/-pg! --secondary-group/-sg", _bookies,
           "on which bookies ledgers are kept", ("get", "set", "delete")),
    Policy("dispatch-rate", CALLS.dispatch_rate, f"{p.DISPATCH_RATE} {p.RELATIVE}", p.dispatch_rate,
           "what a topic sends to consumers in a period"),
    Policy("subscribe-rate", CALLS.subscribe_rate, p.SUBSCRIBE_RATE, p.subscribe_rate,
           "how often a consumer may subscribe"),
    Policy("subscription-dispatch-rate", CALLS.subscription_dispatch_rate,
           f"{p.DISPATCH_RATE} {p.RELATIVE}", p.dispatch_rate,
           "what a subscription sends to consumers in a period"),
    Policy("publish-rate", CALLS.publish_rate, p.PUBLISH_RATE, p.publish_rate,
           "what may be published to a topic a second"),
    Policy("replicator-dispatch-rate", CALLS.replicator_dispatch_rate, p.DISPATCH_RATE,
           p.dispatch_rate, "what is sent to another cluster in a period"),
    Policy("encryption-required", CALLS.encryption_required, p.ENABLE, p.switched,
           "whether messages have to be encrypted", _SET),
    Policy("subscription-auth-mode", CALLS.subscription_auth_mode, "-m/--subscription-auth-mode!",
           lambda a: a.subscription_auth_mode.capitalize(),
           "whether subscriptions have to begin with the role", _SET, show=output.json_lines),
    Policy("delayed-delivery", CALLS.delayed_delivery, p.DELAYED, p.delayed_delivery,
           "whether messages are delivered later"),
    Policy("inactive-topic-policies", CALLS.inactive_topic_policies, p.INACTIVE, p.inactive_topics,
           "when unused topics are deleted"),
    Policy("max-producers-per-topic", CALLS.max_producers_per_topic,
           "--max-producers-per-topic/-p:int!", lambda a: a.max_producers_per_topic,
           "how many producers a topic may have"),
    Policy("max-consumers-per-topic", CALLS.max_consumers_per_topic,
           "--max-consumers-per-topic/-c:int!", lambda a: a.max_consumers_per_topic,
           "how many consumers a topic may have"),
    Policy("max-consumers-per-subscription", CALLS.max_consumers_per_subscription,
           "--max-consumers-per-subscription/-c:int!", lambda a: a.max_consumers_per_subscription,
           "how many consumers a subscription may have"),
    Policy("max-unacked-messages-per-subscription", CALLS.max_unacked_per_subscription,
           "--max-unacked-messages-per-subscription/-c:int!",
           lambda a: a.max_unacked_messages_per_subscription,
           "how many messages of a subscription may wait for their acknowledgement"),
    Policy("max-unacked-messages-per-consumer", CALLS.max_unacked_per_consumer,
           "--max-unacked-messages-per-topic/-c:int!", lambda a: a.max_unacked_messages_per_topic,
           "how many messages of a consumer may wait for their acknowledgement"),
    Policy("compaction-threshold", CALLS.compaction_threshold, "--threshold/-t:size!",
           lambda a: a.threshold, "the backlog at which a topic is compacted"),
    Policy("offload-deletion-lag", CALLS.offload_deletion_lag_millis, "--lag/-l:millis!",
           lambda a: a.lag, "how long ledgers are kept here that were moved",
           ("get", "set", "clear"), show=_minutes),
    Policy("schema-autoupdate-strategy", CALLS.schema_auto_update_strategy,
           "--compatibility/-c --disabled/-d:flag", _auto_update,
           "which schemas producers may add (older names)", _SET, show=_old_strategy),
    Policy("schema-compatibility-strategy", CALLS.schema_compatibility_strategy,
           "--compatibility/-c", _strategy, "which schemas producers may add", _SET),
    Policy("is-allow-auto-update-schema", CALLS.is_allow_auto_update_schema, p.ENABLE, p.switched,
           "whether producers may add schemas", _SET),
    Policy("schema-validation-enforce", CALLS.schema_validation_enforced, p.ENABLE, p.switched,
           "whether producers have to have a schema", _SET, get_options="-ap/--applied:flag",
           get_query=p.applied),
    Policy("offload-policies", CALLS.offload_policies, _OFFLOAD, _offload,
           "where old ledgers are moved, and when"),
    Policy("deduplication-snapshot-interval", CALLS.deduplication_snapshot_interval,
           "--interval/-i:int!", lambda a: a.interval,
           "after how many messages the state of deduplication is kept", _SET),
    Policy("max-topics-per-namespace", CALLS.max_topics_per_namespace,
           "--max-topics-per-namespace/-t:int!", lambda a: a.max_topics_per_namespace,
           "how many topics a namespace may have"),
    Policy("resource-group", CALLS.resource_group, "", p.nothing,
           "the resource group whose rates a namespace shares", ("get", "remove"),
           show=output.json_lines),
    Policy("entry-filters", CALLS.entry_filters, "--entry-filters-name/-efn!", p.entry_filters,
           "the filters that entries pass"),
    Policy("dispatcher-pause-on-ack-state-persistent", CALLS.dispatcher_pause_on_ack_state, "",
           p.nothing, "whether sending waits while acknowledgements can't be stored"),
)

_APART: Final = (
    Word("remove-deduplication-snapshot-interval",
         "Remove after how many messages the state of deduplication is kept", NAMESPACE, "",
         lambda a: CALLS.deduplication_snapshot_interval.set(namespace_place(a.namespace), None)),
    Word("set-resource-group", "Set the resource group whose rates a namespace shares", NAMESPACE,
         "--resource-group-name/-rgn!",
         lambda a: namespaces.set_resource_group(a.namespace, a.resource_group_name)),
    Word("get-offload-threshold", "Show at which size and age ledgers are moved", NAMESPACE, "",
         _get_threshold, show=_thresholds),
    Word("set-offload-threshold", "Set at which size and age ledgers are moved", NAMESPACE,
         "--size/-s:size! --time/-t:time=-1", _set_threshold),
)
# fmt: on
