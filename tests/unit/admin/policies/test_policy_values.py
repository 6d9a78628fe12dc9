"""Values of policies are read, checked and completed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.admin.http_messages import HttpError, Request, UnreadableBodyError
from pulsar_py.admin.policies import policy_values as values


def request(body: Any = ...) -> Request:
    data = b"" if body is ... else json.dumps(body).encode()
    return Request(method="POST", raw_path="/", body=data)


@pytest.mark.parametrize(
    ("read", "body", "value"),
    [
        (values.boolean, True, True),
        (values.boolean, "false", False),
        (values.not_negative, 0, 0),
        (values.not_negative, "7", 7),
        (values.auto_subscription_creation, {}, {"allowAutoSubscriptionCreation": False}),
        (values.auto_subscription_creation, None, None),
        (values.auto_topic_creation, ..., None),
        (values.delayed_delivery, None, None),
        (
            values.delayed_delivery,
            {"active": True},
            {"tickTime": 0, "active": True, "maxDeliveryDelayInMillis": 0},
        ),
        (values.backlog_quota, None, None),
        (
            values.backlog_quota,
            {"limit": "10", "policy": "producer_exception"},
            {"limit": 10, "limitSize": 10, "limitTime": 0, "policy": "producer_exception"},
        ),
        (values.subscription_types, ["Shared", "Exclusive", "Shared"], ["Exclusive", "Shared"]),
        (values.schema_compatibility, "FULL", "FULL"),
        (values.schema_compatibility, "SIDEWAYS", None),
        (values.boolean, 1, True),
        (values.boolean, None, None),
        (values.not_negative, None, None),
        (values.not_negative_long, None, None),
    ],
)
def test_values_are_read(read: values.Reader, body: Any, value: Any) -> None:
    assert read(request(body)) == value


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (values.boolean, []),
        (values.boolean, ...),
        (values.not_negative, "many"),
        (values.not_negative, True),
        (values.not_negative, ...),
        (values.auto_topic_creation, [1]),
        (values.subscription_types, ...),
        (values.subscription_types, ["Sometimes"]),
        (values.schema_compatibility, {}),
    ],
)
def test_what_is_of_the_wrong_shape_is_unreadable(read: values.Reader, body: Any) -> None:
    with pytest.raises(UnreadableBodyError):
        read(request(body))


@pytest.mark.parametrize(
    ("read", "body", "status"),
    [
        (values.not_negative, -1, 412),
        (values.backlog_quota, {"limit": 1}, 400),
        (values.backlog_quota, {"policy": "wait"}, 400),
    ],
)
def test_what_makes_no_sense_is_refused(read: values.Reader, body: Any, status: int) -> None:
    with pytest.raises(HttpError) as raised:
        read(request(body))
    assert raised.value.status == status


@pytest.mark.parametrize(
    ("kind", "partitions", "is_fine"),
    [
        ("partitioned", 3, True),
        ("non-partitioned", None, True),
        ("partitioned", None, False),
        ("partitioned", 0, False),
        ("non-partitioned", 3, False),
        ("sideways", None, False),
        (None, None, False),
    ],
)
def test_type_and_partitions_have_to_fit(
    kind: str | None, partitions: int | None, *, is_fine: bool
) -> None:
    body = {"allowAutoTopicCreation": True, "topicType": kind, "defaultNumPartitions": partitions}
    if is_fine:
        assert values.auto_topic_creation(request(body)) == body
        return
    with pytest.raises(HttpError) as raised:
        values.auto_topic_creation(request(body))
    assert raised.value.status == 412
