"""Calls about subscriptions, and about messages read over HTTP (declarations).

Source: Topics (its calls about subscriptions) in Pulsar's admin API.
"""

from __future__ import annotations

from collections.abc import Mapping

from pulsar_py.admin_client.call import (
    NO_BODY,
    Call,
    Json,
    Reply,
    as_json,
    as_names,
    call,
    delete,
    full_topic,
    get,
    post,
    put,
    seg,
    topic_path,
)
from pulsar_py.admin_client.records import LATEST, ResetCursorData


def subscriptions(topic: str) -> Call[list[str]]:
    """The subscriptions of a topic, or of all its partitions."""
    return get(f"{topic_path(topic)}/subscriptions", as_names)


def create_subscription(
    topic: str,
    subscription: str,
    position: ResetCursorData = LATEST,
    *,
    replicated: bool = False,
) -> Call[None]:
    """Create a subscription at a position, which may have its properties."""
    return put(_path(topic, subscription), position, replicated=replicated)


def delete_subscription(topic: str, subscription: str, *, force: bool = False) -> Call[None]:
    """Delete a subscription; with `force`, although it has consumers."""
    return delete(
        _path(topic, subscription),
        destroys=f"subscription {subscription} of {full_topic(topic)}",
        force=force,
    )


def skip(topic: str, subscription: str, messages_count: int) -> Call[None]:
    """Acknowledge the next messages of the backlog."""
    return _destroying(topic, subscription, f"skip/{messages_count}")


def clear_backlog(topic: str, subscription: str) -> Call[None]:
    """Acknowledge the whole backlog."""
    return _destroying(topic, subscription, "skip_all")


def expire_older(topic: str, subscription: str, age_seconds: int) -> Call[None]:
    """Acknowledge messages that are older than a number of seconds."""
    return _destroying(topic, subscription, f"expireMessages/{age_seconds}")


def expire_until(topic: str, subscription: str, position: ResetCursorData) -> Call[None]:
    """Acknowledge the messages of a subscription up to a position."""
    return _destroying(topic, subscription, "expireMessages", position)


def expire_older_on_all(topic: str, age_seconds: int) -> Call[None]:
    """Acknowledge messages that are older, on all subscriptions."""
    return call(
        "POST",
        f"{topic_path(topic)}/all_subscription/expireMessages/{age_seconds}",
        lambda _: None,
        destroys=f"the older backlogs of {full_topic(topic)}",
    )


def reset_to_time(topic: str, subscription: str, time_millis: int) -> Call[None]:
    """Move a subscription to the first message published at a time or later."""
    return _destroying(topic, subscription, f"resetcursor/{time_millis}")


def reset_to_position(topic: str, subscription: str, position: ResetCursorData) -> Call[None]:
    """Move a subscription to a position."""
    return _destroying(topic, subscription, "resetcursor", position)


def analyze_backlog(
    topic: str, subscription: str, position: ResetCursorData | None = None
) -> Call[Json]:
    """Count the entries and messages of the backlog by reading it."""
    path = f"{_path(topic, subscription)}/analyzeBacklog"
    return call("POST", path, as_json, NO_BODY if position is None else position)


def properties(topic: str, subscription: str) -> Call[dict[str, str]]:
    """All properties."""
    return get(f"{_path(topic, subscription)}/properties", as_json)


def set_properties(topic: str, subscription: str, values: Mapping[str, str]) -> Call[None]:
    """Replace the properties of a subscription."""
    return put(f"{_path(topic, subscription)}/properties", dict(values))


def replicated_status(topic: str, subscription: str) -> Call[dict[str, bool]]:
    """Whether a subscription is replicated, by topic."""
    return get(f"{_path(topic, subscription)}/replicatedSubscriptionStatus", as_json)


def set_replicated_status(topic: str, subscription: str, *, replicated: bool) -> Call[None]:
    """Set whether a subscription is replicated to other clusters."""
    return post(f"{_path(topic, subscription)}/replicatedSubscriptionStatus", replicated)


def pause(topic: str, subscription: str) -> Call[None]:
    """Send nothing to its consumers until `resume`; a call of our own."""
    return put(f"{_path(topic, subscription)}/pause")


def resume(topic: str, subscription: str) -> Call[None]:
    """Send messages to its consumers again; a call of our own."""
    return delete(f"{_path(topic, subscription)}/pause")


def standstill(topic: str, subscription: str) -> Call[Json]:
    """Why a subscription does not move, and what helps; a call of our own."""
    return get(f"{_path(topic, subscription)}/standstill", as_json)


def peek(topic: str, subscription: str, number: int) -> Call[Reply]:
    """One entry of the backlog, 1 being the next; what it is stands in the headers."""
    return get(f"{_path(topic, subscription)}/position/{number}", lambda reply: reply)


def readable_backlog(topic: str, subscription: str, **query: str | int) -> Call[Json]:
    """Messages of a backlog, decoded; a call of our own.

    Args:
        topic: A topic without partitions, or one partition.
        subscription: Whose backlog.
        **query: `limit`, `messageId`, `timestamp`, `key`, `property`, `text`.
    """
    return get(f"{_path(topic, subscription)}/messages", as_json, **query)


def readable_messages(topic: str, **query: str | int) -> Call[Json]:
    """Messages of a topic, decoded; a call of our own. `query` as of `readable_backlog`."""
    return get(f"{topic_path(topic)}/messages", as_json, **query)


def message(topic: str, ledger_id: int, entry_id: int) -> Call[Reply]:
    """The entry at a position."""
    return get(f"{topic_path(topic)}/ledger/{ledger_id}/entry/{entry_id}", lambda reply: reply)


def examine(topic: str, *, from_end: str = "latest", number: int = 1) -> Call[Reply]:
    """One entry counted from an end, `latest` or `earliest`."""
    return get(
        f"{topic_path(topic)}/examinemessage",
        lambda reply: reply,
        initialPosition=from_end,
        messagePosition=number,
    )


def _path(topic: str, subscription: str) -> str:
    return f"{topic_path(topic)}/subscription/{seg(subscription)}"


def _destroying(topic: str, subscription: str, rest: str, body: object = NO_BODY) -> Call[None]:
    """A POST that moves a subscription."""
    return call(
        "POST",
        f"{_path(topic, subscription)}/{rest}",
        lambda _: None,
        body,
        destroys=f"the place of subscription {subscription} in {full_topic(topic)}",
    )
