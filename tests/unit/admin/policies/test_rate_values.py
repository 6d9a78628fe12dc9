"""Rates in requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.admin.http_messages import Request, UnreadableBodyError
from pulsar_py.admin.policies.policy_values import Reader
from pulsar_py.admin.policies.rate_values import dispatch_rate, publish_rate, subscribe_rate


def request(body: Any) -> Request:
    return Request(method="POST", raw_path="/", body=json.dumps(body).encode())


@pytest.mark.parametrize(
    ("read", "missing"),
    [
        (
            dispatch_rate,
            {
                "dispatchThrottlingRateInMsg": 0,
                "dispatchThrottlingRateInByte": 0,
                "relativeToPublishRate": False,
                "ratePeriodInSecond": 0,
            },
        ),
        (
            publish_rate,
            {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": -1},
        ),
        (
            subscribe_rate,
            {"subscribeThrottlingRatePerConsumer": -1, "ratePeriodInSecond": 30},
        ),
    ],
)
def test_what_is_missing_has_a_default(read: Reader, missing: Any) -> None:
    assert read(request({})) == missing
    assert read(request(None)) is None
    with pytest.raises(UnreadableBodyError):
        read(request("fast"))


def test_bytes_have_64_bits() -> None:
    rate = publish_rate(request({"publishThrottlingRateInByte": 2**40}))
    assert rate["publishThrottlingRateInByte"] == 2**40
    with pytest.raises(UnreadableBodyError):
        publish_rate(request({"publishThrottlingRateInMsg": 2**40}))
