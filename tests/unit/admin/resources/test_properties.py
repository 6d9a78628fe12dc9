"""Properties of topics and subscriptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.standalone import Broker
from tests.unit.admin.resources.conftest import Admin

P = "/admin/v2/persistent/public/default"
S = P + "/a/subscription/s"


async def test_a_topics_properties_are_merged_and_removed(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await admin.call("PUT", P + "/a/properties", {"a": "1", "b": "2"})
    await admin.call("PUT", P + "/a/properties", {"b": "3"})
    assert await admin.get(P + "/a/properties") == {"a": "1", "b": "3"}
    assert await admin.status("DELETE", P + "/a/properties?key=a") == 204
    assert await admin.get(P + "/a/properties") == {"b": "3"}
    assert (await admin.reason("DELETE", P + "/a/properties"))[0] == 412


async def test_a_partitioned_topic_has_properties_of_its_own(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    assert await admin.status("PUT", P + "/p/properties", {"x": "y"}) == 204
    assert await admin.get(P + "/p/properties") == {"x": "y"}
    assert await admin.get(P + "/p-partition-0/properties") == {}


async def test_a_subscriptions_properties_are_replaced(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await admin.call("PUT", S)
    assert await admin.get(S + "/properties") == {}
    await admin.call("PUT", S + "/properties", {"a": "1"})
    await admin.call("PUT", S + "/properties", {"b": "2"})
    assert await admin.get(S + "/properties") == {"b": "2"}
    reserved = {"#pulsar.internal.x": "1"}
    assert (await admin.reason("PUT", S + "/properties", reserved))[0] == 412
    assert (await admin.reason("GET", P + "/a/subscription/t/properties"))[0] == 404


async def test_a_partitioned_topics_subscription_has_them_on_each_partition(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    await admin.call("PUT", P + "/p/subscription/s")
    await admin.call("PUT", P + "/p/subscription/s/properties", {"a": "1"})
    assert await admin.get(P + "/p-partition-1/subscription/s/properties") == {"a": "1"}
    assert await admin.get(P + "/p/subscription/s/properties") == {"a": "1"}


async def test_properties_are_bounded(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    assert (await admin.reason("PUT", P + "/a/properties", {"a": "x" * 200_000}))[0] == 412


@pytest.mark.parametrize("of", ["/a", "/a/subscription/s"])
async def test_properties_are_there_after_a_start(tmp_path: Path, of: str) -> None:
    async with Broker(data_dir=tmp_path) as broker:
        admin = Admin(broker.service)
        await admin.call("PUT", P + "/a")
        await admin.call("PUT", S)
        await admin.call("PUT", P + of + "/properties", {"a": "1"})
    async with Broker(data_dir=tmp_path) as broker:
        assert await Admin(broker.service).get(P + of + "/properties") == {"a": "1"}


async def test_a_non_persistent_topic_has_none(admin: Admin) -> None:
    path = P.replace("persistent", "non-persistent") + "/a"
    await admin.call("PUT", path)
    assert (await admin.reason("PUT", path + "/properties", {"a": "1"}))[0] == 406
