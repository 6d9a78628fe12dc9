"""Lookup over HTTP."""

from __future__ import annotations

import json

from pulsar_py.common.names import NamespaceName
from tests.unit.admin.resources.conftest import Admin

LOOKUP = "/lookup/v2/topic/persistent/public/default"


async def test_the_answer_has_the_addresses_and_no_tls(admin: Admin) -> None:
    addresses = admin.service.addresses.default
    assert await admin.get(LOOKUP + "/a") == {
        "brokerUrl": addresses.broker_url,
        "nativeUrl": addresses.broker_url,
        "httpUrl": addresses.http_url,
        "brokerUrlSsl": "",
    }


async def test_looking_up_creates_nothing(admin: Admin) -> None:
    await admin.get(LOOKUP + "/a")
    assert await admin.get("/admin/v2/persistent/public/default") == []


async def test_what_is_missing_is_not_found(admin: Admin) -> None:
    await admin.call("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    assert await admin.status("GET", LOOKUP + "/p-partition-1") == 200
    assert await admin.reason("GET", LOOKUP + "/p-partition-2") == (
        404,
        "Topic not found persistent://public/default/p-partition-2",
    )
    assert await admin.reason("GET", "/lookup/v2/topic/persistent/public/nowhere/a") == (
        404,
        "Namespace not found",
    )


async def test_an_unknown_listener_is_an_error_by_query_or_header(admin: Admin) -> None:
    assert await admin.status("GET", LOOKUP + "/a?listenerName=nobody") >= 400
    response = await admin.call("GET", LOOKUP + "/a", x_pulsar_listenername="nobody")
    assert response.status >= 400
    assert "nobody" in json.loads(response.body)["reason"]


async def test_the_bundle_is_raw_text(admin: Admin) -> None:
    bundle = (await admin.call("GET", LOOKUP + "/a/bundle")).body.decode()
    default = NamespaceName("public", "default")
    assert bundle in (await admin.service.namespaces.bundles_of(default)).names
    response = await admin.call("GET", "/lookup/v2/topic/persistent/public/nowhere/a/bundle")
    assert response.body == b"0x00000000_0xffffffff"
