"""Partitioned topics: list, create, add partitions, delete."""

from __future__ import annotations

import pytest

from pulsar_py.server.broker_settings import registry_settings
from pulsar_py.server.topics.registry_settings import MAX_PARTITIONS
from tests.unit.admin.resources.conftest import Admin

P = "/admin/v2/persistent/public/default"
NP = "/admin/v2/non-persistent/public/default"
EXISTS = (409, "This topic already exists")


async def test_partitions_are_created_grown_and_deleted(admin: Admin) -> None:
    path = P + "/p/partitions"
    assert await admin.status("PUT", path, 2) == 204
    assert await admin.reason("PUT", path, 2) == EXISTS
    assert await admin.reason("PUT", P + "/p") == EXISTS
    assert await admin.get(path) == {"partitions": 2, "deleted": False}
    assert await admin.get(P + "/partitioned") == ["persistent://public/default/p"]
    assert await admin.status("POST", path, 3) == 204
    assert await admin.status("POST", path, 3) == 204
    assert (await admin.reason("POST", path, 1))[0] == 422
    assert len(await admin.get(P)) == 3
    assert (await admin.reason("DELETE", P + "/p"))[0] == 409
    assert await admin.status("DELETE", path) == 204
    assert await admin.get(P) == []
    assert (await admin.reason("DELETE", path))[0] == 404


async def test_the_vendor_type_carries_properties(admin: Admin) -> None:
    response = await admin.call(
        "PUT",
        P + "/p/partitions",
        {"partitions": 1, "properties": {"a": "b"}},
        content_type="application/vnd.partitioned-topic-metadata+json",
    )
    assert response.status == 204
    assert (await admin.get(P + "/p/partitions"))["properties"] == {"a": "b"}
    assert await admin.get(P + "/p/properties") == {"a": "b"}


@pytest.mark.parametrize(
    ("topic", "body", "status"),
    [("z", 0, 406), ("z", -1, 406), ("p-partition-1", 2, 412), ("z", "x", 400), ("z", ..., 400)],
)
async def test_partitions_that_make_no_sense_are_refused(
    admin: Admin, topic: str, body: object, status: int
) -> None:
    assert await admin.status("PUT", f"{P}/{topic}/partitions", body) == status


async def test_the_number_of_partitions_is_limited(admin: Admin) -> None:
    config = admin.service.config.replace(maxNumPartitionsPerPartitionedTopic=2)
    admin.service.topics.apply_settings(registry_settings(config))
    assert (await admin.reason("PUT", P + "/p/partitions", 3))[0] == 406
    await admin.call("PUT", P + "/p/partitions", 2)
    assert (await admin.reason("POST", P + "/p/partitions", 3))[0] == 422


async def test_without_a_setting_the_number_of_partitions_is_limited_too(admin: Admin) -> None:
    beyond = MAX_PARTITIONS + 1
    words = f"Number of partitions should be less than or equal to {MAX_PARTITIONS}"
    assert await admin.reason("PUT", P + "/p/partitions", beyond) == (406, words)
    await admin.call("PUT", P + "/p/partitions", 1)
    assert await admin.reason("POST", P + "/p/partitions", beyond) == (422, words)
    assert (await admin.get(P + "/p/partitions"))["partitions"] == 1


@pytest.mark.parametrize("number", [2**31, 2**63, 10**400, 1e300, str(2**31)])
async def test_a_number_of_partitions_has_32_bits(admin: Admin, number: object) -> None:
    assert await admin.status("PUT", P + "/p/partitions", number) == 400
    await admin.call("PUT", P + "/p/partitions", 1)
    assert await admin.status("POST", P + "/p/partitions", number) == 400
    assert (await admin.get(P + "/p/partitions"))["partitions"] == 1


async def test_partitions_of_other_names(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    none = {"partitions": 0, "deleted": False}
    assert await admin.get(P + "/a/partitions") == none
    assert await admin.status("GET", P + "/nowhere/partitions") == 404
    assert await admin.get(P + "/nowhere/partitions?checkAllowAutoCreation=true") == none
    assert (await admin.reason("POST", P + "/a/partitions", 2))[0] == 409
    assert (await admin.reason("DELETE", P + "/a/partitions"))[0] == 409
