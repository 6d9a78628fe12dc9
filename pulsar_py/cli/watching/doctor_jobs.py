"""Asks a broker for `pulsar-py doctor`, and makes text of what it answers (edge).

Of a subscription it tells why it does not move, and the command that helps; without one it tells
what an operator of the broker should look at, and when the caller's own token ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pulsar_py.admin_client import AdminClient, AdminSettings, brokers, subscriptions
from pulsar_py.cli.watching.remedies import remedy
from pulsar_py.common.errors import AuthenticationError, TopicNotFoundError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.token_end import SOON_DAYS, token_end

__all__ = ["as_text", "of_broker", "of_subscription", "plain", "token_symptoms"]

Json = dict[str, Any]  # Any: JSON

ENDED: Final = "TOKEN_EXPIRED"
_DAY: Final = 86_400


def of_broker(admin: AdminSettings, clock: Clock | None = None) -> list[Json]:
    """The symptoms of a broker, and of the token that it is asked with.

    A token that has ended is all there is to tell: no broker answers who uses it.

    Raises:
        ServiceError, ClientError: The broker refused, or can't be reached.
    """
    now_seconds = (clock or SystemClock()).wall_time_millis() / 1000
    of_token = token_symptoms(admin.token, now_seconds)
    try:
        with AdminClient(admin) as calls:
            found: list[Json] = list(calls.call(brokers.symptoms()))
    except AuthenticationError:
        if any(each["code"] == ENDED for each in of_token):
            return of_token
        raise
    return [*of_token, *found]


def token_symptoms(token: str | None, now_seconds: float) -> list[Json]:
    """Whether a JSON Web Token ends soon; nothing of another kind of token."""
    end = token_end(token or "")
    if end is None:
        return []
    left = end - now_seconds
    if left > SOON_DAYS * _DAY:
        return []
    when = f"ends in {left / _DAY:.1f} days" if left > 0 else "has ended"
    return [
        {
            "code": "TOKEN_EXPIRES" if left > 0 else ENDED,
            "urgency": "warning" if left > 0 else "error",
            "subject": "the token of this command",
            "message": f"The token that this command uses {when}.",
            "help": "Make another one: pulsar-py tokens create.",
        }
    ]


def of_subscription(
    admin: AdminSettings, subscription: str, topic: str | None, namespace: str
) -> list[Json]:
    """Why a subscription does not move, for each topic or partition that has it.

    Raises:
        TopicNotFoundError: No topic of the namespace has such a subscription.
        ServiceError, ClientError: The broker refused, or can't be reached.
    """
    with AdminClient(admin) as calls:
        if topic is not None:
            found: list[Json] = list(calls.call(subscriptions.standstill(topic, subscription)))
        else:
            found = list(_in_namespace(calls, subscription, namespace))
    if not found:
        raise TopicNotFoundError(
            f"no topic of {namespace} has a subscription {subscription!r}; name the topic with "
            "--topic, or another namespace with --namespace"
        )
    for each in found:
        for reason in each["reasons"]:
            command = remedy(
                reason["code"], each["topic"], each["subscription"], reason.get("fields", {})
            )
            if command:
                reason["command"] = command
    return found


def _in_namespace(calls: AdminClient, subscription: str, namespace: str) -> Iterator[Json]:
    answer = calls.call(brokers.topics_of_broker())
    for bundles in (answer or {}).get(namespace, {}).values():
        for name, topic in sorted(bundles.get("persistent", {}).items()):
            if subscription in topic.get("subscriptions", {}):
                yield from calls.call(subscriptions.standstill(name, subscription))


def as_text(found: Sequence[Json], *, is_of_subscription: bool) -> Iterator[str]:
    """Lines for people; names are printed as they are, but for control characters."""
    if not is_of_subscription:
        for each in found:
            yield plain(f"{each['urgency'].upper():8}{each['subject']}: {each['message']}")
            yield plain(f"        {each['help']}")
        if not found:
            yield "Nothing to look at."
        return
    for each in found:
        yield plain(f"{each['topic']}, subscription {each['subscription']}:")
        if not each["reasons"]:
            yield "  it moves: entries are being sent"
        for reason in each["reasons"]:
            yield plain(f"  {reason['message']}")
            if "command" in reason:
                yield plain(f"    {reason['command']}")


def plain(text: str) -> str:
    """A text whose control characters are written out: no terminal obeys what a broker says."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
