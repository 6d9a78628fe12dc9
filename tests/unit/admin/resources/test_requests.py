"""What resources read out of paths."""

from __future__ import annotations

import pytest

from pulsar_py.admin.http_messages import HttpError, Request
from pulsar_py.admin.resources.requests import namespace_of, tenant_of, topic_of


def at(**path: str) -> Request:
    return Request(method="GET", raw_path="/", path=path)


def test_names_are_read_from_the_path() -> None:
    request = at(domain="non-persistent", tenant="t", namespace="n", topic="a b")
    assert tenant_of(request) == "t"
    assert str(namespace_of(request)) == "t/n"
    assert str(topic_of(request)) == "non-persistent://t/n/a b"


@pytest.mark.parametrize(
    ("tenant", "namespace", "topic", "reason"),
    [
        ("t t", "n", "a", "Tenant name is not valid"),
        ("t", "n/m", "a", "Namespace name is not valid"),
        ("t", "n", "a/b", "Topic name is not valid"),
    ],
)
def test_names_have_to_be_valid(tenant: str, namespace: str, topic: str, reason: str) -> None:
    with pytest.raises(HttpError, match=reason) as raised:
        topic_of(at(domain="persistent", tenant=tenant, namespace=namespace, topic=topic))
    assert raised.value.status == 412
