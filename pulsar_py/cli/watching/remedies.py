"""`remedy`: the command that gets a stalled subscription going, for each cause (pure).

A cause that only the application can end has none: no command receives or acknowledges for it
without taking its messages away.

Source: the codes of `…/subscription/<name>/standstill`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

__all__ = ["REMEDIES", "remedy"]

Fields = Mapping[str, Any]  # Any: JSON

LOOK_AHEAD: Final = 20_000
"""The default of the setting: with little more than now it would soon stand again."""


def _look_ahead(_topic: str, _subscription: str, fields: Fields) -> str:
    limit = max(
        LOOK_AHEAD, 2 * int(fields.get("limit", 0)), 2 * int(fields.get("waitingEntries", 0))
    )
    is_of_consumers = str(fields.get("setting", "")).endswith("PerConsumer")
    name = "keySharedLookAheadMsgInReplayThresholdPer"
    name += "Consumer" if is_of_consumers else "Subscription"
    return f"pulsar-py admin brokers update-dynamic-config --config {name} --value {limit}"


def _rate(topic: str, _subscription: str, fields: Fields) -> str:
    scope = str(fields.get("scope", ""))
    if scope.startswith("subscription "):
        return f"pulsar-py admin topicPolicies set-subscription-dispatch-rate -md -1 -bd -1 {topic}"
    if scope == "topic":
        return f"pulsar-py admin topicPolicies set-dispatch-rate -md -1 -bd -1 {topic}"
    if scope == "broker":
        name = "dispatchThrottlingRateInMsg"
        return f"pulsar-py admin brokers update-dynamic-config --config {name} --value 0"
    return ""


def _above(holders: Iterable[Fields]) -> int:
    """A limit with which they are sent messages again: they have to be below half of it."""
    names = ("unackedMessages", "limit")
    counts = [int(each.get(name, 0)) for each in holders for name in names]
    return 2 * max(counts, default=0) + 2


def _none(_topic: str, _subscription: str, _fields: Fields) -> str:
    return ""


def _unload(topic: str, _subscription: str, _fields: Fields) -> str:
    return f"pulsar-py admin topics unload {topic}"


REMEDIES: Final[Mapping[str, Callable[[str, str, Fields], str]]] = {
    "NOT_OPEN": _none,
    "PAUSED": lambda topic, name, _: f"pulsar-py subscription resume {topic} {name}",
    "NO_CONSUMERS": lambda topic, name, _: f"pulsar-py client consume -s {name} -n 0 {topic}",
    "SWITCHING_CONSUMER": _none,
    "READ_FAILED": _none,
    "SLOW_READ": _none,
    "RATE_LIMIT": _rate,
    "BROKER_UNACKED_LIMIT": _unload,
    "SUBSCRIPTION_UNACKED_LIMIT": lambda topic, _, fields: (
        "pulsar-py admin topicPolicies set-max-unacked-messages-per-subscription "
        f"-m {_above([fields])} {topic}"
    ),
    "CONSUMER_UNACKED_LIMIT": lambda topic, _, fields: (
        "pulsar-py admin topicPolicies set-max-unacked-messages-per-consumer "
        f"-m {_above(fields.get('consumers', ()))} {topic}"
    ),
    "NO_PERMITS": _none,
    "SLOW_SOCKET": _unload,
    "BLOCKED_HASH": _unload,
    "HASH_WITHOUT_CONSUMER": _none,
    "LOOK_AHEAD_LIMIT": _look_ahead,
    "HELD_BACK": _none,
    "DELAYED": lambda topic, name, _: f"pulsar-py admin topics clear-backlog -s {name} {topic}",
    "PUT_OFF": _none,
    "HOLE": _unload,
    "UNACKNOWLEDGED": _unload,
    "NOTHING_THERE": lambda topic, *_: f"pulsar-py client produce -m hello {topic}",
}
"""By code: a function of topic, subscription and the reason's fields; an empty text is none."""


def remedy(code: str, topic: str, subscription: str, fields: Fields) -> str:
    """The command that ends a cause, ready for a shell; empty if there is none."""
    make = REMEDIES.get(code, _none)
    return make(shlex.quote(topic), shlex.quote(subscription), fields)
