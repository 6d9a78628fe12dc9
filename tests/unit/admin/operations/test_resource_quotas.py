"""The load that bundles are expected to bring."""

from __future__ import annotations

from pulsar_py.admin.operations.resource_quotas import DEFAULT
from tests.unit.admin.resources.conftest import Admin

QUOTAS = "/admin/v2/resource-quotas"
BUNDLE = QUOTAS + "/public/default/0x00000000_0x40000000"


async def test_a_bundle_has_the_default_or_its_own(admin: Admin) -> None:
    assert await admin.get(QUOTAS) == await admin.get(BUNDLE) == DEFAULT
    assert await admin.status("POST", BUNDLE, {"msgRateIn": "7", "memory": 1.5}) == 204
    found = await admin.get(BUNDLE)
    assert (found["msgRateIn"], found["memory"], found["dynamic"]) == (7.0, 1.5, False)
    assert await admin.status("POST", QUOTAS, {"msgRateOut": 3}) == 204
    assert (await admin.get(BUNDLE))["msgRateOut"] == 0.0
    assert await admin.status("DELETE", BUNDLE) == 204
    assert (await admin.get(BUNDLE))["msgRateOut"] == 3.0


async def test_what_is_no_quota_or_bundle_is_refused(admin: Admin) -> None:
    assert await admin.status("POST", QUOTAS) == 400
    assert await admin.status("POST", QUOTAS, {"memory": "much"}) == 400
    assert await admin.status("POST", QUOTAS, {"memory": -1}) == 412
    assert await admin.status("GET", QUOTAS + "/public/default/0x00000000_0x40000001") == 412
    assert await admin.status("GET", QUOTAS + "/public/none/0x00000000_0x40000000") == 412
