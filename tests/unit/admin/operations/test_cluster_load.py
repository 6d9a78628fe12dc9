"""What a broker says of its cluster."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pulsar_py.admin.http_messages import Request
from pulsar_py.admin.operations.cluster_load import ClusterLoadView
from pulsar_py.common.names import TopicName
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service
from tests.unit.admin.resources.conftest import Admin

TOPIC = TopicName.parse("persistent://public/default/t")


async def load_of(world: ClusterWorld, name: str) -> dict[str, Any]:
    view = ClusterLoadView(service(world, name))
    found: dict[str, Any] = json.loads((await view.load(Request(method="GET", raw_path=""))).body)
    return found


@in_cluster("one", "two")
async def test_who_has_what_since_when_and_why(world: ClusterWorld) -> None:
    one = service(world, "one")
    await one.namespaces.lookup(TOPIC, authoritative=True)
    bundle = await one.namespaces.bundle_of(TOPIC)
    await asyncio.sleep(11)
    name = f"public/default/{bundle}"
    heartbeat = "pulsar/one:8080/0x00000000_0xffffffff"
    found = await load_of(world, "one")
    assert found["brokerId"] == "one:8080"
    assert found["session"]["isGood"] is True
    assert [each["bundle"] for each in found["bundles"]] == [name, heartbeat]
    assert all(each["since"] > 1_000_000_000_000 for each in found["bundles"])
    assert {each["brokerId"]: name in each["bundles"] for each in found["brokers"]} == {
        "one:8080": True,
        "two:8080": False,
    }
    assert found["leaderId"] == (await load_of(world, "two"))["leaderId"]
    assert (found["changes"][-1]["change"], found["changes"][-1]["reason"]) == (
        "gained",
        "nobody owned it",
    )
    two = one.membership.directory.brokers["two:8080"]
    await one.bundle_moves.transfer(TOPIC.namespace_name, bundle, two)
    last = (await load_of(world, "one"))["changes"][-1]
    assert (last["bundle"], last["change"], last["reason"]) == (name, "lost", "moved to two:8080")
    await one.hand_over()
    found = await load_of(world, "one")
    assert found["isLeaving"] is True
    assert found["changes"][-1]["reason"] == "handed over: this broker leaves"


async def test_a_broker_alone_has_no_others(admin: Admin) -> None:
    found = await admin.get("/admin/v2/brokers/load")
    assert found["brokers"] == found["balancing"] == []
    assert found["isLeading"] is False
