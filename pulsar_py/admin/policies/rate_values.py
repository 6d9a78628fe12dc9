"""Reads rates of publishing, dispatching and subscribing out of requests (pure).

Each reader takes a request and returns the JSON to store, or None to unset the policy.

Source: DispatchRate, PublishRate, SubscribeRate in Pulsar's policies.
"""

from __future__ import annotations

from typing import Any

from pulsar_py.admin.http_messages import Request
from pulsar_py.admin.resources.requests import (
    LONG_BITS,
    number_field,
    read_bool,
    read_object,
)


def dispatch_rate(request: Request) -> Any:  # Any: JSON
    """The body as DispatchRate; what is missing is 0, the period, too."""
    fields = read_object(request.json())
    if fields is None:
        return None
    return {
        "dispatchThrottlingRateInMsg": number_field(fields, "dispatchThrottlingRateInMsg"),
        "dispatchThrottlingRateInByte": number_field(
            fields, "dispatchThrottlingRateInByte", bits=LONG_BITS
        ),
        "relativeToPublishRate": bool(read_bool(fields.get("relativeToPublishRate"))),
        "ratePeriodInSecond": number_field(fields, "ratePeriodInSecond"),
    }


def publish_rate(request: Request) -> Any:  # Any: JSON
    """The body as PublishRate; what is missing is -1."""
    fields = read_object(request.json())
    if fields is None:
        return None
    return {
        "publishThrottlingRateInMsg": number_field(fields, "publishThrottlingRateInMsg", -1),
        "publishThrottlingRateInByte": number_field(
            fields, "publishThrottlingRateInByte", -1, bits=LONG_BITS
        ),
    }


def subscribe_rate(request: Request) -> Any:  # Any: JSON
    """The body as SubscribeRate; without a period it is 30 seconds."""
    fields = read_object(request.json())
    if fields is None:
        return None
    name = "subscribeThrottlingRatePerConsumer"
    return {
        "subscribeThrottlingRatePerConsumer": number_field(fields, name, -1),
        "ratePeriodInSecond": number_field(fields, "ratePeriodInSecond", 30),
    }
