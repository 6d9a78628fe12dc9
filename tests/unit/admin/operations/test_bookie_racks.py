"""Bookies and their racks over REST."""

from __future__ import annotations

from pulsar_py.metadata import paths
from tests.unit.admin.resources.conftest import Admin

RACKS = "/admin/v2/bookies/racks-info"


async def test_a_standalone_broker_has_no_bookies(admin: Admin) -> None:
    assert await admin.get("/admin/v2/bookies/all") == {"bookies": []}


async def test_bookies_of_a_cluster_are_listed(admin: Admin) -> None:
    store = admin.service.resources.local
    for name in ("b:1", "readonly", "readonly/c:1"):
        await store.put(f"{paths.LEDGERS}/available/{name}", b"")
    assert await admin.get("/admin/v2/bookies/all") == {
        "bookies": [{"bookieId": "b:1"}, {"bookieId": "c:1"}]
    }


async def test_a_rack_is_set_moved_and_removed(admin: Admin) -> None:
    assert await admin.get(RACKS) == {}
    rack = {"rack": "/r1", "hostname": "h"}
    assert await admin.status("POST", RACKS + "/b:1?group=g", rack) == 204
    assert await admin.get(RACKS) == {"g": {"b:1": rack}}
    assert await admin.status("POST", RACKS + "/b:1?group=other", {"rack": "/r2"}) == 204
    assert await admin.get(RACKS) == {"other": {"b:1": {"rack": "/r2"}}}
    assert await admin.get(RACKS + "/b:1") == {"rack": "/r2"}
    assert await admin.status("DELETE", RACKS + "/b:1") == 204
    assert await admin.get(RACKS) == {}


async def test_what_is_missing_is_refused(admin: Admin) -> None:
    assert await admin.status("GET", RACKS + "/b:1") == 404
    assert await admin.status("DELETE", RACKS + "/b:1") == 404
    assert await admin.status("POST", RACKS + "/b:1?group=g") == 400
    assert (await admin.reason("POST", RACKS + "/b:1", {"rack": "/r"}))[0] == 412
