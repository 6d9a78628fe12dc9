"""Reads values of policies out of requests, checks them, and adds defaults (pure).

Each reader takes a request and returns the JSON to store, or None to unset the policy. Policies of
namespaces and of topics share readers.

Source: NamespacesBase and PersistentTopics in Pulsar's broker.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

from pulsar_py.admin.declared import (
    BOOLEAN,
    LONG,
    NUMBER,
    TEXT,
    TEXTS,
    Body,
    Int,
    Long,
    Number,
    json_of,
)
from pulsar_py.admin.http_messages import (
    HttpError,
    Request,
    UnreadableBodyError,
)
from pulsar_py.admin.policies.policy_readers import Reader, body_json, reading
from pulsar_py.common.policies import (
    BacklogQuotaAction,
    InactiveTopicDeleteMode,
    SchemaCompatibilityStrategy,
)
from pulsar_py.server.hooks.installed_filters import InstalledFilters
from pulsar_py.server.policies.effective_settings import split_names

SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")

AUTO_UPDATE_STRATEGIES: Final = frozenset(
    {
        "AutoUpdateDisabled",
        "Backward",
        "Forward",
        "Full",
        "AlwaysCompatible",
        "BackwardTransitive",
        "ForwardTransitive",
        "FullTransitive",
    }
)
"""The old names of schema compatibility strategies (`SchemaAutoUpdateCompatibilityStrategy`)."""


@reading(BOOLEAN)
def boolean(request: Request) -> bool | None:
    """The body as `true` or `false`; None for `null`, which unsets the policy."""
    return None if BOOLEAN.is_null(request) else BOOLEAN.required(request)


@reading(NUMBER)
def not_negative(request: Request) -> int | None:
    """The body as a whole number from 0; None for `null`, which unsets the policy.

    Raises:
        HttpError: 412 for a negative number.
    """
    if NUMBER.is_null(request):
        return None
    value = NUMBER.required(request)
    if value < 0:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"{value} must be 0 or more")
    return value


@reading(NUMBER)
def not_negative_or_null(request: Request) -> int | None:
    """The body as a whole number from 0; None for `null` or no body, which unsets the policy.

    Raises:
        HttpError: 412 for a negative number.
    """
    return None if NUMBER.of(request) is None else not_negative.read(request)


@reading(LONG)
def not_negative_long(request: Request) -> int | None:
    """The body as a whole number of up to 64 bits, from 0; None for `null`.

    Raises:
        HttpError: 412 for a negative number.
    """
    if LONG.is_null(request):
        return None
    value = LONG.required(request)
    if value < 0:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"{value} must be 0 or more")
    return value


@reading(None, gives=bool)
def true(request: Request) -> bool:  # noqa: ARG001 - this call has no body
    """True: the call itself is the value."""
    return True


def number_in_query(name: str) -> Reader:
    """A reader of the query parameter `name`, a whole number from 0; without it None."""
    number = Number(name)

    @reading(None, number, gives=int)
    def read(request: Request) -> int | None:
        value = number.of(request) if number.text(request) else None
        if value is not None and value < 0:
            text = number.text(request)
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED, f"Invalid value for {name}: {text}, expected from 0"
            )
        return value

    return read


class InactiveTopics(Struct, frozen=True, rename="camel"):
    """When topics that nobody uses are deleted."""

    inactive_topic_delete_mode: str | None = None
    max_inactive_duration_seconds: Int = 0
    delete_while_inactive: bool = False


class FilterNames(Struct, frozen=True, rename="camel"):
    """Names of filters of entries, with commas between."""

    entry_filter_names: str | None = None


class AutoTopicCreationBody(Struct, frozen=True, rename="camel"):
    """Whether clients make topics, and of which kind."""

    allow_auto_topic_creation: bool = False
    topic_type: str | None = None
    default_num_partitions: Int | None = None


class AutoSubscriptionCreation(Struct, frozen=True, rename="camel"):
    """Whether clients make subscriptions."""

    allow_auto_subscription_creation: bool = False


class BacklogQuota(Struct, frozen=True, rename="camel"):
    """How much backlog, or how old, and what happens above it."""

    limit: Long | None = None
    limit_size: Long | None = None
    limit_time: Int = 0
    policy: str | None = None


class DelayedDeliveryBody(Struct, frozen=True, rename="camel"):
    """Whether messages may be delayed, and how."""

    tick_time: Long = 0
    active: bool = False
    max_delivery_delay_in_millis: Long = 0


_INACTIVE: Final = Body(InactiveTopics, "inactive topic policies")
_FILTERS: Final = Body(FilterNames, "entry filters")
_TOPIC_CREATION: Final = Body(AutoTopicCreationBody, "topic creation")
_SUBSCRIPTION_CREATION: Final = Body(AutoSubscriptionCreation, "subscription creation")
_QUOTA: Final = Body(BacklogQuota, "backlog quota")
_DELAYED: Final = Body(DelayedDeliveryBody, "delayed delivery")
_TYPES: Final = Body(list[str], "subscription types")


@reading(_INACTIVE)
def inactive_topics(request: Request) -> Any:  # Any: JSON
    """The body as InactiveTopicPolicies; an unknown mode is none, as in Apache Pulsar."""
    value = body_json(request, _INACTIVE)
    modes = {each.value for each in InactiveTopicDeleteMode}
    if value is not None and value["inactiveTopicDeleteMode"] not in modes:
        value["inactiveTopicDeleteMode"] = None
    return value


@reading(_FILTERS)
def filter_names(request: Request) -> Any:  # Any: JSON
    """The body as EntryFilters; the caller checks that they are installed.

    Raises:
        HttpError: 400 if it names none.
    """
    given = _FILTERS.of(request)
    if given is None:
        return None
    names = given.entry_filter_names
    if not names or not names.strip():
        raise HttpError(
            HTTPStatus.BAD_REQUEST,
            "entryFilterNames can't be empty. To remove entry filters use the remove method.",
        )
    return {"entryFilterNames": names}


def check_installed(filters: InstalledFilters, value: Any) -> None:  # Any: JSON
    """Check that the filters of a policy are installed.

    Raises:
        HttpError: 400 with the name of the first that is not.
    """
    for name in split_names((value or {}).get("entryFilterNames")):
        refusal = filters.refusal_of(name)
        if refusal is not None:
            raise HttpError(HTTPStatus.BAD_REQUEST, refusal)


@reading(TEXT)
def schema_auto_update(request: Request) -> str | None:
    """The body as an old name of a strategy; an unknown one unsets the policy."""
    name = TEXT.of(request)
    return name if name in AUTO_UPDATE_STRATEGIES else None


@reading(TEXTS)
def texts(request: Request) -> list[str] | None:
    """The body as a list of texts."""
    return TEXTS.of(request)


@reading(_TOPIC_CREATION)
def auto_topic_creation(request: Request) -> Any:  # Any: JSON
    """The body as AutoTopicCreationOverride; the caller checks the limit of partitions.

    Raises:
        HttpError: 412 if the type is unknown, or does not go with the number of partitions.
    """
    given = _TOPIC_CREATION.of(request)
    if given is None:
        return None
    if given.allow_auto_topic_creation:
        _check_auto_topic_creation(given.topic_type, given.default_num_partitions)
    return json_of(given)


def _check_auto_topic_creation(kind: str | None, partitions_count: int | None) -> None:
    problem = ""
    if kind not in {"partitioned", "non-partitioned"}:
        problem = f"Unknown topic type [{kind}]"
    elif kind == "partitioned" and partitions_count is None:
        problem = "[defaultNumPartitions] cannot be null when the type is partitioned."
    elif kind == "partitioned" and (partitions_count or 0) <= 0:
        problem = "[defaultNumPartitions] cannot be less than 1 for partition type."
    elif kind == "non-partitioned" and partitions_count is not None:
        problem = "[defaultNumPartitions] is not allowed to be set when the type is non-partition."
    if problem:
        raise HttpError(
            HTTPStatus.PRECONDITION_FAILED,
            f"Invalid configuration for autoTopicCreationOverride. the detail is {problem}",
        )


@reading(_SUBSCRIPTION_CREATION)
def auto_subscription_creation(request: Request) -> Any:  # Any: JSON
    """The body as AutoSubscriptionCreationOverride."""
    return body_json(request, _SUBSCRIPTION_CREATION)


@reading(_QUOTA)
def backlog_quota(request: Request) -> Any:  # Any: JSON
    """The body as BacklogQuota; None for `null`.

    Raises:
        HttpError: 400 if the policy is missing or unknown.
    """
    given = _QUOTA.of(request)
    if given is None:
        return None
    action = given.policy
    if action not in {member.value for member in BacklogQuotaAction}:
        raise HttpError(HTTPStatus.BAD_REQUEST, "backlogQuota policy must not be null")
    size = given.limit_size
    if size is None:
        size = given.limit or 0
    return {
        "limit": size,
        "limitSize": size,
        "limitTime": given.limit_time,
        "policy": action,
    }


@reading(_DELAYED)
def delayed_delivery(request: Request) -> Any:  # Any: JSON
    """The body as DelayedDeliveryPolicies."""
    return body_json(request, _DELAYED)


@reading(_TYPES)
def subscription_types(request: Request) -> list[str]:
    """The body as names of subscription types, each once.

    Raises:
        UnreadableBodyError: The body is not a list, or a name is unknown.
    """
    names = _TYPES.required(request, "a list of subscription types is required")
    for name in names:
        if name not in SUBSCRIPTION_TYPES:
            raise UnreadableBodyError(
                f"{name} is not a subscription type, expected {', '.join(SUBSCRIPTION_TYPES)}"
            )
    return sorted(set(names))


@reading(TEXT)
def schema_compatibility(request: Request) -> str | None:
    """The body as a strategy's name; an unknown one unsets the policy."""
    name = TEXT.of(request)
    return name if name in SchemaCompatibilityStrategy.__members__ else None
