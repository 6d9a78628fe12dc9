"""Reading lists of clusters and of shadow topics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.admin.http_messages import HttpError, Request, UnreadableBodyError
from pulsar_py.admin.policies.cluster_values import clusters, shadow_topics


def request(value: Any) -> Request:
    return Request(method="POST", raw_path="/", body=json.dumps(value).encode())


def test_each_cluster_is_named_once() -> None:
    assert clusters(request(["b", "a", "b"])) == ["a", "b"]
    for wrong in ([], None):
        with pytest.raises(HttpError, match="empty"):
            clusters(request(wrong))


def test_shadow_topics_are_persistent() -> None:
    full = "persistent://public/default/a"
    assert shadow_topics(request([full, "a"])) == [full]
    for wrong in ([], None, ["non-persistent://a/b/c"], ["persistent://a"]):
        with pytest.raises(HttpError):
            shadow_topics(request(wrong))
    with pytest.raises(UnreadableBodyError):
        shadow_topics(request("a"))
