"""Reads values of policies out of requests, checks them, and adds defaults (pure).

Each reader takes a request and returns the JSON to store, or None to unset the policy. Policies of
namespaces and of topics share readers.

Source: NamespacesBase and PersistentTopics in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.http_messages import (
    HttpError,
    PathValueError,
    Request,
    UnreadableBodyError,
)
from pulsar_py.admin.resources.requests import (
    LONG_BITS,
    number_field,
    read_bool,
    read_int,
    read_object,
    read_text,
    read_texts,
    required_bool,
    required_int,
)
from pulsar_py.common.policies import (
    BacklogQuotaAction,
    InactiveTopicDeleteMode,
    SchemaCompatibilityStrategy,
)
from pulsar_py.server.hooks.installed_filters import InstalledFilters
from pulsar_py.server.policies.effective_settings import split_names

Reader = Callable[[Request], Any]  # Any: JSON of many shapes

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


def boolean(request: Request) -> bool:
    """The body as `true` or `false`."""
    return required_bool(request)


def not_negative(request: Request) -> int:
    """The body as a whole number from 0.

    Raises:
        HttpError: 412 for a negative number.
    """
    value = required_int(request)
    if value < 0:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"{value} must be 0 or more")
    return value


def not_negative_or_null(request: Request) -> int | None:
    """The body as a whole number from 0; None for `null` or no body, which unsets the policy.

    Raises:
        HttpError: 412 for a negative number.
    """
    return None if request.json() is None else not_negative(request)


def not_negative_long(request: Request) -> int:
    """The body as a whole number of up to 64 bits, from 0.

    Raises:
        HttpError: 412 for a negative number.
    """
    value = read_int(request.json(), bits=LONG_BITS)
    if value is None:
        raise UnreadableBodyError("a whole number is required")
    if value < 0:
        raise HttpError(HTTPStatus.PRECONDITION_FAILED, f"{value} must be 0 or more")
    return value


def true(request: Request) -> bool:  # noqa: ARG001 - this call has no body
    """True: the call itself is the value."""
    return True


def number_in_query(name: str) -> Reader:
    """A reader of the query parameter `name`, a whole number from 0."""

    def read(request: Request) -> int:
        text = request.query.get(name)
        try:
            value = read_int(text, name)
        except UnreadableBodyError:
            raise PathValueError from None
        if value is None or value < 0:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED, f"Invalid value for {name}: {text}, expected from 0"
            )
        return value

    return read


def inactive_topics(request: Request) -> Any:  # Any: JSON
    """The body as InactiveTopicPolicies.

    Raises:
        UnreadableBodyError: The mode is unknown.
    """
    fields = read_object(request.json())
    if fields is None:
        return None
    mode = read_text(fields.get("inactiveTopicDeleteMode"), "inactiveTopicDeleteMode")
    modes = [each.value for each in InactiveTopicDeleteMode]
    if mode is not None and mode not in modes:
        raise UnreadableBodyError(f"{mode} is not a mode, expected {' or '.join(modes)}")
    return {
        "inactiveTopicDeleteMode": mode,
        "maxInactiveDurationSeconds": number_field(fields, "maxInactiveDurationSeconds"),
        "deleteWhileInactive": bool(read_bool(fields.get("deleteWhileInactive"))),
    }


def filter_names(request: Request) -> Any:  # Any: JSON
    """The body as EntryFilters; the caller checks that they are installed.

    Raises:
        HttpError: 400 if it names none.
    """
    fields = read_object(request.json())
    if fields is None:
        return None
    names = read_text(fields.get("entryFilterNames"), "entryFilterNames")
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
        if not filters.is_installed(name):
            raise HttpError(HTTPStatus.BAD_REQUEST, f"Entry filter '{name}' not found")


def schema_auto_update(request: Request) -> str | None:
    """The body as an old name of a strategy; an unknown one unsets the policy."""
    name = read_text(request.json())
    return name if name in AUTO_UPDATE_STRATEGIES else None


def texts(request: Request) -> list[str] | None:
    """The body as a list of texts."""
    return read_texts(request.json())


def auto_topic_creation(request: Request) -> Any:  # Any: JSON
    """The body as AutoTopicCreationOverride; the caller checks the limit of partitions.

    Raises:
        HttpError: 412 if the type is unknown, or does not go with the number of partitions.
    """
    fields = read_object(request.json())
    if fields is None:
        return None
    is_allowed = bool(read_bool(fields.get("allowAutoTopicCreation")))
    kind = read_text(fields.get("topicType"))
    partitions_count = read_int(fields.get("defaultNumPartitions"))
    if is_allowed:
        _check_auto_topic_creation(kind, partitions_count)
    return {
        "allowAutoTopicCreation": is_allowed,
        "topicType": kind,
        "defaultNumPartitions": partitions_count,
    }


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


def auto_subscription_creation(request: Request) -> Any:  # Any: JSON
    """The body as AutoSubscriptionCreationOverride."""
    fields = read_object(request.json())
    if fields is None:
        return None
    is_allowed = bool(read_bool(fields.get("allowAutoSubscriptionCreation")))
    return {"allowAutoSubscriptionCreation": is_allowed}


def backlog_quota(request: Request) -> Any:  # Any: JSON
    """The body as BacklogQuota; None for `null`.

    Raises:
        HttpError: 400 if the policy is missing or unknown.
    """
    fields = read_object(request.json())
    if fields is None:
        return None
    action = read_text(fields.get("policy"), "policy")
    if action not in {member.value for member in BacklogQuotaAction}:
        raise HttpError(HTTPStatus.BAD_REQUEST, "backlogQuota policy must not be null")
    size = read_int(fields.get("limitSize"), "limitSize", bits=LONG_BITS)
    if size is None:
        size = read_int(fields.get("limit"), "limit", bits=LONG_BITS) or 0
    return {
        "limit": size,
        "limitSize": size,
        "limitTime": read_int(fields.get("limitTime"), "limitTime") or 0,
        "policy": action,
    }


def delayed_delivery(request: Request) -> Any:  # Any: JSON
    """The body as DelayedDeliveryPolicies."""
    fields = read_object(request.json())
    if fields is None:
        return None
    name = "maxDeliveryDelayInMillis"
    longest = read_int(fields.get(name), name, bits=LONG_BITS)
    return {
        "tickTime": read_int(fields.get("tickTime"), "tickTime", bits=LONG_BITS) or 0,
        "active": bool(read_bool(fields.get("active"), "active")),
        "maxDeliveryDelayInMillis": longest or 0,
    }


def subscription_types(request: Request) -> list[str]:
    """The body as names of subscription types, each once.

    Raises:
        UnreadableBodyError: The body is not a list, or a name is unknown.
    """
    names = read_texts(request.json())
    if names is None:
        raise UnreadableBodyError("a list of subscription types is required")
    for name in names:
        if name not in SUBSCRIPTION_TYPES:
            raise UnreadableBodyError(
                f"{name} is not a subscription type, expected {', '.join(SUBSCRIPTION_TYPES)}"
            )
    return sorted(set(names))


def schema_compatibility(request: Request) -> str | None:
    """The body as a strategy's name; an unknown one unsets the policy."""
    name = read_text(request.json())
    return name if name in SchemaCompatibilityStrategy.__members__ else None
