"""Reads rates of publishing, dispatching and subscribing out of requests (pure).

Each reader takes a request and returns the JSON to store, or None to unset the policy.

Source: DispatchRate, PublishRate, SubscribeRate in Pulsar's policies.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from pulsar_py.admin.declared import Body, Int, Long
from pulsar_py.admin.http_messages import Request
from pulsar_py.admin.policies.policy_readers import body_json, reading


class DispatchRate(Struct, frozen=True, rename="camel"):
    """How much may be dispatched in a period; -1 is without limit."""

    dispatch_throttling_rate_in_msg: Int = 0
    dispatch_throttling_rate_in_byte: Long = 0
    relative_to_publish_rate: bool = False
    rate_period_in_second: Int = 0


class PublishRate(Struct, frozen=True, rename="camel"):
    """How much may be published in a second; -1 is without limit."""

    publish_throttling_rate_in_msg: Int = -1
    publish_throttling_rate_in_byte: Long = -1


class SubscribeRate(Struct, frozen=True, rename="camel"):
    """How often a consumer may subscribe in a period; -1 is without limit."""

    subscribe_throttling_rate_per_consumer: Int = -1
    rate_period_in_second: Int = 30


_DISPATCH: Final = Body(DispatchRate, "rate")
_PUBLISH: Final = Body(PublishRate, "rate")
_SUBSCRIBE: Final = Body(SubscribeRate, "rate")


@reading(_DISPATCH)
def dispatch_rate(request: Request) -> Any:  # Any: JSON
    """The body as DispatchRate; what is missing is 0, the period, too."""
    return body_json(request, _DISPATCH)


@reading(_PUBLISH)
def publish_rate(request: Request) -> Any:  # Any: JSON
    """The body as PublishRate; what is missing is -1."""
    return body_json(request, _PUBLISH)


@reading(_SUBSCRIBE)
def subscribe_rate(request: Request) -> Any:  # Any: JSON
    """The body as SubscribeRate; without a period it is 30 seconds."""
    return body_json(request, _SUBSCRIBE)
