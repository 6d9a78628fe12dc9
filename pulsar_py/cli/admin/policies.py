"""Commands that read, set and remove policies, made of one line a policy (pure).

A policy has up to three words: `get-NAME`, `set-NAME` and `remove-NAME`. What its options mean is
said here once for namespaces and topics.

Source: CmdNamespaces, CmdTopics and CmdTopicPolicies in Pulsar's client tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pulsar_py.admin_client.call import NO_BODY, Json
from pulsar_py.admin_client.policies import PolicyCalls
from pulsar_py.admin_client.records import (
    AutoSubscriptionCreationOverride,
    BacklogQuota,
    DelayedDeliveryPolicies,
    DispatchRate,
    EntryFilterNames,
    InactiveTopicPolicies,
    PersistencePolicies,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)
from pulsar_py.cli.admin import output
from pulsar_py.cli.admin.words import Args, Show, Word, one_of

_MEGABYTE: Final = 1 << 20

ENABLE: Final = "--enable/-e:flag --disable/-d:flag"
RETENTION: Final = "--time/-t:time! --size/-s:size!"
BACKLOG_QUOTA: Final = (
    "-l/--limit:size -lt/--limitTime:time -p/--policy! -t/--type=destination_storage"
)
PERSISTENCE: Final = (
    "-e/--bookkeeper-ensemble:int=2 -w/--bookkeeper-write-quorum:int=2 "
    "-a/--bookkeeper-ack-quorum:int=2 -r/--ml-mark-delete-max-rate:double=0.0 -c/--ml-storage-class"
)
DISPATCH_RATE: Final = (
    "--msg-dispatch-rate/-md:int=-1 --byte-dispatch-rate/-bd:long=-1 "
    "--dispatch-rate-period/-dt:int=1"
)
RELATIVE: Final = "--relative-to-publish-rate/-rp:flag"
SUBSCRIBE_RATE: Final = "--subscribe-rate/-sr:int=-1 --subscribe-rate-period/-st:int=30"
PUBLISH_RATE: Final = "--msg-publish-rate/-m:int=-1 --byte-publish-rate/-b:long=-1"
DELAYED: Final = f"{ENABLE} --time/-t:millis=1s --maxDelay/-md:millis=0"
INACTIVE: Final = (
    "--enable-delete-while-inactive/-e:flag --disable-delete-while-inactive/-d:flag "
    "--max-inactive-duration/-t:time! --delete-mode/-m!"
)

show_quotas: Final = output.mapping_of(
    "BacklogQuotaImpl",
    {"limit": "limit", "limitSize": "limitSize", "limitTime": "limitTime", "policy": "policy"},
)


@dataclass(frozen=True, slots=True)
class Policy:
    """The words of one policy of a namespace, or of a topic."""

    name: str
    """As it stands behind `get-` and so on."""
    calls: PolicyCalls[Any]
    set_options: str
    value: Callable[[Args], object]
    """What is set, of the options."""
    about: str
    """A phrase for `--help`, behind `Show`, `Set` and `Remove`."""
    verbs: Sequence[str] = ("get", "set", "remove")
    get_options: str = ""
    get_query: Callable[[Args], dict[str, Any]] | None = None
    set_query: Callable[[Args], dict[str, Any]] | None = None
    """Of `remove`, too."""
    remove_options: str = ""
    show: Show | None = None
    is_hidden: bool = False

    def words(
        self, parameter: str, place: Callable[[Args], str], options: str = ""
    ) -> Iterator[Word]:
        """The words; `options` are those of all of them."""
        for verb in self.verbs:
            if verb == "get":
                given, run, shown = self.get_options, self._get(place), self.show
            elif verb == "set":
                given, run, shown = self.set_options, self._set(place), None
            else:
                given, run, shown = self.remove_options, self._remove(place), None
            said = {"get": "Show", "set": "Set"}.get(verb, "Remove")
            yield Word(
                f"{verb}-{self.name}",
                f"{said} {self.about}",
                parameter,
                f"{given} {options}".strip(),
                run,
                show=shown or (output.by_policy if verb == "get" else None),
                is_hidden=self.is_hidden,
            )

    def _get(self, place: Callable[[Args], str]) -> Callable[[Args], Any]:
        query = self.get_query or _no_query
        return lambda a: self.calls.get(place(a), **query(a), **_clusters(a))

    def _set(self, place: Callable[[Args], str]) -> Callable[[Args], Any]:
        query = self.set_query or _no_query
        return lambda a: self.calls.set(place(a), self.value(a), **query(a), **_clusters(a))

    def _remove(self, place: Callable[[Args], str]) -> Callable[[Args], Any]:
        query = self.set_query or _no_query
        return lambda a: self.calls.remove(place(a), **query(a), **_clusters(a))


def _no_query(_: Args) -> dict[str, Any]:
    return {}


def _clusters(args: Args) -> dict[str, Any]:
    """`--global`, of the words that have it."""
    return {"isGlobal": True} if getattr(args, "global_", False) else {}


def applied(args: Args) -> dict[str, Any]:
    """Parameters that ask for the effective value (`--applied`), or for the one that is set."""
    return {"applied": bool(getattr(args, "applied", False))}


def retention(a: Args) -> RetentionPolicies:
    """The retention of seconds and bytes; below a minute or a megabyte is none, -1 is no bound."""
    return RetentionPolicies(
        retention_time_in_minutes=-1 if a.time == -1 else a.time // 60,
        retention_size_in_mb=-1 if a.size == -1 else a.size // _MEGABYTE,
    )


def backlog_quota(a: Args) -> BacklogQuota:
    """A quota by size or by age.

    Raises:
        ValueError: The bound that its type needs is missing.
    """
    is_size = a.type == "destination_storage"
    bound = a.limit if is_size else a.limitTime
    if bound is None:
        need = "a size limit" if is_size else "a time limit"
        raise ValueError(f"Quota type of '{a.type}' needs {need}")
    return quota(a.limit if is_size else None, None if is_size else a.limitTime, a.policy)


def quota(limit_bytes: int | None, limit_seconds: int | None, policy: str) -> BacklogQuota:
    """A backlog quota with both bounds; None is no bound."""
    size = -1 if limit_bytes is None else limit_bytes
    time = -1 if limit_seconds is None else limit_seconds
    return BacklogQuota(limit=size, limit_size=size, limit_time=time, policy=policy)


def quota_type(a: Args) -> dict[str, Any]:
    """The type of backlog quota that the options name."""
    return {"backlogQuotaType": a.type}


def persistence(a: Args) -> PersistencePolicies:
    """The persistence policy: copies of entries, and how often cursors are written."""
    return PersistencePolicies(
        bookkeeper_ensemble=a.bookkeeper_ensemble,
        bookkeeper_write_quorum=a.bookkeeper_write_quorum,
        bookkeeper_ack_quorum=a.bookkeeper_ack_quorum,
        managed_ledger_max_mark_delete_rate=a.ml_mark_delete_max_rate,
        managed_ledger_storage_class_name=a.ml_storage_class,
    )


def dispatch_rate(a: Args) -> DispatchRate:
    """The dispatch rate: messages and bytes in a period."""
    return DispatchRate(
        dispatch_throttling_rate_in_msg=a.msg_dispatch_rate,
        dispatch_throttling_rate_in_byte=a.byte_dispatch_rate,
        rate_period_in_second=a.dispatch_rate_period,
        relative_to_publish_rate=bool(getattr(a, "relative_to_publish_rate", False)),
    )


def subscribe_rate(a: Args) -> SubscribeRate:
    """The rate at which a consumer may subscribe."""
    return SubscribeRate(
        subscribe_throttling_rate_per_consumer=a.subscribe_rate,
        rate_period_in_second=a.subscribe_rate_period,
    )


def publish_rate(a: Args) -> PublishRate:
    """The publish rate: messages and bytes a second."""
    return PublishRate(
        publish_throttling_rate_in_msg=a.msg_publish_rate,
        publish_throttling_rate_in_byte=a.byte_publish_rate,
    )


def delayed_delivery(a: Args) -> DelayedDeliveryPolicies:
    """The policy of delayed delivery."""
    return DelayedDeliveryPolicies(
        tick_time=a.time, active=one_of(a), max_delivery_delay_in_millis=a.maxDelay
    )


def inactive_topics(a: Args) -> InactiveTopicPolicies:
    """The policy of inactive topics: when unused ones are deleted."""
    return InactiveTopicPolicies(
        inactive_topic_delete_mode=a.delete_mode,
        max_inactive_duration_seconds=a.max_inactive_duration,
        delete_while_inactive=one_of(
            a, "enable_delete_while_inactive", "disable_delete_while_inactive"
        ),
    )


def auto_subscription(a: Args) -> AutoSubscriptionCreationOverride:
    """The policy of automatic creation of subscriptions."""
    return AutoSubscriptionCreationOverride(allow_auto_subscription_creation=a.enable)


def entry_filters(a: Args) -> EntryFilterNames:
    """The names of entry filters."""
    return EntryFilterNames(entry_filter_names=a.entry_filters_name)


def nothing(_: Args) -> object:
    """The missing body of policies that are switched on by being set."""
    return NO_BODY


def switched(a: Args) -> bool:
    """`--enable` or `--disable`."""
    return one_of(a)


def offload_policies(
    a: Args, *, block: int, buffer: int, after_bytes: int | None, after_seconds: int | None
) -> Json:
    """The offload policies: where ledgers are moved, and when.

    Raises:
        ValueError: A bucket of S3 without a region or an endpoint.
    """
    if a.driver.lower() in {"s3", "aws-s3"} and not (a.region or a.endpoint):
        raise ValueError(
            "Either s3ManagedLedgerOffloadRegion or s3ManagedLedgerOffloadServiceEndpoint must be "
            "set if s3 offload enabled: give --region or --endpoint"
        )
    lag = getattr(a, "offloadAfterElapsed", None) or getattr(a, "offloadDeletionLagInMillis", None)
    role = getattr(a, "s3_role", None) or getattr(a, "ro", None)
    places = {
        "Region": a.region,
        "Bucket": a.bucket,
        "ServiceEndpoint": a.endpoint,
        "MaxBlockSizeInBytes": block,
        "ReadBufferSizeInBytes": buffer,
    }
    secrets = {
        "CredentialId": a.aws_id,
        "CredentialSecret": a.aws_secret,
        "Role": role,
        "RoleSessionName": a.s3_role_session_name,
    }
    priority = a.offloadedReadPriority
    found: dict[str, Json] = {
        "managedLedgerOffloadDriver": a.driver,
        "managedLedgerOffloadThresholdInSeconds": after_seconds,
        "managedLedgerOffloadThresholdInBytes": after_bytes,
        "managedLedgerOffloadDeletionLagInMillis": lag,
        "managedLedgerOffloadedReadPriority": priority and priority.upper().replace("-", "_"),
        **{f"managedLedgerOffload{name}": value for name, value in places.items()},
    }
    if "s3" in a.driver.lower():
        found |= {
            f"s3ManagedLedgerOffload{name}": each for name, each in (places | secrets).items()
        }
    return {name: value for name, value in found.items() if value is not None}
