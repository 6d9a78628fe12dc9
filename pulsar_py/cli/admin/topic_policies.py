"""The policies of topics: of `pulsar-py admin topicPolicies` and of `topics` (declarations).

`topicPolicies` has them for one cluster or for all (`--global`). In `topics` they are left out of
`--help`, as in pulsar-admin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from pulsar_py.admin_client import policies
from pulsar_py.admin_client.policies import TOPIC as CALLS
from pulsar_py.admin_client.policies import PolicyCalls, topic_place
from pulsar_py.cli.admin import policies as p
from pulsar_py.cli.admin.policies import Policy
from pulsar_py.cli.admin.words import TOPIC, Args, Group, Word, group

_SHORT: Final = "-ap/--applied:flag"
_LONG: Final = "--applied/-a:flag"
_GLOBAL: Final = "--global/-g:flag"
_OFFLOAD: Final = (
    "-d/--driver! -r/--region -b/--bucket -e/--endpoint -i/--aws-id -s/--aws-secret --ro/--s3-role "
    "--s3-role-session-name/-rsn -m/--maxBlockSizeInBytes/--maxBlockSize/-mbs:size=64M "
    "-rb/--readBufferSizeInBytes/--readBufferSize/-rbs:size=1M "
    "-t/--offloadThresholdInBytes/--offloadAfterThreshold/-oat:size "
    "-ts/--offloadThresholdInSeconds/--offloadAfterThresholdInSeconds/-oats:time "
    "-dl/--offloadDeletionLagInMillis/--offloadAfterElapsed/-oae:millis "
    "--offloadedReadPriority/-orp"
)
_STRATEGIES: Final = (
    "UNDEFINED,ALWAYS_INCOMPATIBLE,ALWAYS_COMPATIBLE,BACKWARD,FORWARD,FULL,BACKWARD_TRANSITIVE,"
    "FORWARD_TRANSITIVE,FULL_TRANSITIVE"
)


def _offload(a: Args) -> object:
    return p.offload_policies(
        a,
        block=a.maxBlockSizeInBytes,
        buffer=a.readBufferSizeInBytes,
        after_bytes=a.offloadThresholdInBytes,
        after_seconds=a.offloadThresholdInSeconds,
    )


def _quota(a: Args) -> object:
    """The backlog quota; `topics` sends both bounds, whatever the type."""
    return p.quota(a.limit, a.limitTime, a.policy)


def _no_ttl(_: Args) -> dict[str, Any]:
    return {"messageTTL": 0}


def _of(  # noqa: PLR0917 - a table's columns
    name: str,
    calls: PolicyCalls[Any],
    set_options: str,
    value: Callable[[Args], object],
    about: str,
    verbs: Sequence[str] = ("get", "set", "remove"),
    *,
    asked: str | None = _SHORT,
    **more: Any,  # Any: fields of `Policy`
) -> Policy:
    """A policy; `asked` is the option for what holds, empty where it is sent without one."""
    return Policy(
        name,
        calls,
        set_options,
        value,
        about,
        verbs,
        get_options=asked or "",
        get_query=None if asked is None else p.applied,
        **more,
    )


# fmt: off
_BOTH: Final = (
    _of("retention", CALLS.retention, p.RETENTION, p.retention,
        "how long and how much of what is acknowledged is kept"),
    _of("deduplication", CALLS.deduplication, p.ENABLE, p.switched,
        "whether messages that are sent again are dropped", asked=""),
    _of("deduplication-snapshot-interval", CALLS.deduplication_snapshot_interval,
        "-i/--interval:int!", lambda a: a.interval,
        "after how many messages the state of deduplication is kept", asked=None),
    _of("delayed-delivery", CALLS.delayed_delivery, p.DELAYED, p.delayed_delivery,
        "whether messages are delivered later"),
    _of("persistence", CALLS.persistence, p.PERSISTENCE, p.persistence,
        "how many bookies keep an entry", asked=""),
    _of("offload-policies", CALLS.offload_policies, _OFFLOAD, _offload,
        "where old ledgers are moved, and when"),
    _of("dispatch-rate", CALLS.dispatch_rate, f"{p.DISPATCH_RATE} {p.RELATIVE}", p.dispatch_rate,
        "what the topic sends to consumers in a period"),
    _of("replicator-dispatch-rate", CALLS.replicator_dispatch_rate,
        f"{p.DISPATCH_RATE} {p.RELATIVE}", p.dispatch_rate,
        "what is sent to another cluster in a period"),
    _of("compaction-threshold", CALLS.compaction_threshold, "--threshold/-t:size!",
        lambda a: a.threshold, "the backlog at which the topic is compacted"),
    _of("max-unacked-messages-per-consumer", CALLS.max_unacked_on_consumer, "-m/--maxNum:int!",
        lambda a: a.maxNum, "how many messages of a consumer may wait for their acknowledgement"),
    _of("max-unacked-messages-per-subscription", CALLS.max_unacked_on_subscription,
        "-m/--maxNum:int!", lambda a: a.maxNum,
        "how many messages of a subscription may wait for their acknowledgement"),
    _of("publish-rate", CALLS.publish_rate, p.PUBLISH_RATE, p.publish_rate,
        "what may be published a second", asked=None),
    _of("subscription-types-enabled", CALLS.subscription_types_enabled, "--types/-t:list!",
        lambda a: a.types, "the types of subscriptions that may be used", asked=None),
    _of("max-producers", CALLS.max_producers, "--max-producers/-p:int!", lambda a: a.max_producers,
        "how many producers the topic may have"),
    _of("max-message-size", CALLS.max_message_size, "--max-message-size/-m:int!",
        lambda a: a.max_message_size, "how many bytes a message may have", asked=None),
    _of("max-consumers-per-subscription", CALLS.max_consumers_per_subscription,
        "--max-consumers-per-subscription/-c:int!", lambda a: a.max_consumers_per_subscription,
        "how many consumers a subscription may have", asked=None),
    _of("inactive-topic-policies", CALLS.inactive_topic_policies, p.INACTIVE, p.inactive_topics,
        "when the topic is deleted because nobody uses it"),
    _of("max-consumers", CALLS.max_consumers, "--max-consumers/-c:int!", lambda a: a.max_consumers,
        "how many consumers the topic may have"),
    _of("subscribe-rate", CALLS.subscribe_rate, p.SUBSCRIBE_RATE, p.subscribe_rate,
        "how often a consumer may subscribe"),
    _of("replication-clusters", CALLS.replication, "--clusters/-c:list!", lambda a: a.clusters,
        "the clusters that have the topic's messages"),
)
_TTL: Final = _of("message-ttl", CALLS.message_ttl, "-t/--ttl:time!", lambda a: a.ttl,
                  "the time after which messages count as acknowledged", ("get", "set"))
_NO_TTL: Final = _of("message-ttl", CALLS.message_ttl, "", p.nothing, _TTL.about, ("remove",),
                     set_query=_no_ttl)
_SUBSCRIPTION_RATE: Final = _of(
    "subscription-dispatch-rate", CALLS.subscription_dispatch_rate,
    f"{p.DISPATCH_RATE} {p.RELATIVE}", p.dispatch_rate,
    "what a subscription sends to consumers in a period")
_ONE_SUBSCRIPTION: Final = replace(_SUBSCRIPTION_RATE, calls=CALLS.dispatch_rate)
_SUBSCRIPTIONS: Final = "how many subscriptions the topic may have"

_OF_TOPICS: Final = (
    _TTL, _NO_TTL, _SUBSCRIPTION_RATE,
    _of("backlog-quotas", CALLS.backlog_quotas, "", p.nothing, "the bounds of backlogs", ("get",),
        show=p.show_quotas),
    _of("backlog-quota", CALLS.backlog_quotas, p.BACKLOG_QUOTA, _quota,
        "the bound of backlogs, and what happens at it", ("set", "remove"),
        set_query=p.quota_type, remove_options="-t/--type=destination_storage"),
    _of("deduplication-enabled", CALLS.deduplication, "", p.nothing,
        "whether messages that are sent again are dropped", ("get",), asked=""),
    _of("max-unacked-messages-on-consumer", CALLS.max_unacked_on_consumer, "-m/--maxNum:int!",
        lambda a: a.maxNum, "how many messages of a consumer may wait for their acknowledgement"),
    _of("max-unacked-messages-on-subscription", CALLS.max_unacked_on_subscription,
        "-m/--maxNum:int!", lambda a: a.maxNum,
        "how many messages of a subscription may wait for their acknowledgement"),
    _of("maxProducers", CALLS.max_producers, "--max-producers/-p:int!", lambda a: a.max_producers,
        "how many producers the topic may have"),
    _of("max-subscriptions", CALLS.max_subscriptions_per_topic,
        "--max-subscriptions-per-topic/-m:int!", lambda a: a.max_subscriptions_per_topic,
        _SUBSCRIPTIONS, asked=None),
    _of("schema-validation-enforce", CALLS.schema_validation_enforced, "--enable/-e:flag",
        lambda a: a.enable, "whether producers have to have a schema", ("get", "set")),
)
_OF_TOPIC_POLICIES: Final = (
    _TTL, _NO_TTL,
    _of("backlog-quota", CALLS.backlog_quotas, p.BACKLOG_QUOTA, p.backlog_quota,
        "the bound of backlogs, and what happens at it", set_query=p.quota_type,
        remove_options="-t/--type=destination_storage", show=p.show_quotas),
    _of("max-subscriptions-per-topic", CALLS.max_subscriptions_per_topic,
        "--max-subscriptions-per-topic/-s:int!", lambda a: a.max_subscriptions_per_topic,
        _SUBSCRIPTIONS, asked=None),
    _of("entry-filters-per-topic", CALLS.entry_filters, "--entry-filters-name/-efn!",
        p.entry_filters, "the filters that entries pass"),
    _of("auto-subscription-creation", CALLS.auto_subscription_creation, "--enable/-e:flag",
        p.auto_subscription, "whether use creates subscriptions", asked=_LONG),
    _of("dispatcher-pause-on-ack-state-persistent", CALLS.dispatcher_pause_on_ack_state, "",
        p.nothing, "whether sending waits while acknowledgements can't be stored", asked=_LONG),
)
_STRATEGY: Final = _of(
    "schema-compatibility-strategy", CALLS.schema_compatibility_strategy,
    f"--strategy/-s:choice({_STRATEGIES})!", lambda a: a.strategy,
    "which schemas producers may add")
# fmt: on


def _place(a: Args) -> str:
    return topic_place(a.topic)


def words_of_topics() -> Iterator[Word]:
    """The words of `topics`."""
    for policy in (*_BOTH, *_OF_TOPICS):
        yield from replace(policy, is_hidden=True).words(TOPIC, _place)
    for verb, value in (("enable", True), ("disable", False)):
        yield Word(
            f"{verb}-deduplication",
            f"{verb.capitalize()} that messages that are sent again are dropped",
            TOPIC,
            "",
            lambda a, value=value: CALLS.deduplication.set(_place(a), value),  # type: ignore[misc]
            is_hidden=True,
        )


def _of_subscription() -> Iterator[Word]:
    """The rate of all subscriptions, or with `--subscription` of one."""
    options = f"{_GLOBAL} --subscription/-s"
    of_all = _SUBSCRIPTION_RATE.words(TOPIC, _place, options)
    of_one = _ONE_SUBSCRIPTION.words(TOPIC, lambda a: topic_place(a.topic, a.subscription), options)
    for every, one in zip(of_all, of_one, strict=True):
        yield replace(every, run=_choice(every, one))


def _choice(every: Word, one: Word) -> Callable[[Args], Any]:
    return lambda a: (one if a.subscription else every).run(a)


def _words() -> Iterator[Word]:
    yield Word(
        "delete",
        "Remove all policies of a topic",
        TOPIC,
        "",
        lambda a: policies.remove_all(a.topic),
    )
    for policy in (*_BOTH, *_OF_TOPIC_POLICIES):
        yield from policy.words(TOPIC, _place, _GLOBAL)
    yield from _of_subscription()
    yield from _STRATEGY.words(TOPIC, _place)


TOPICPOLICIES: Final[Group] = group(*_words())
