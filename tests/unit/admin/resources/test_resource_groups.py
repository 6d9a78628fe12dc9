"""Resource groups."""

from __future__ import annotations

from tests.unit.admin.resources.conftest import Admin

GROUPS = "/admin/v2/resourcegroups"


async def test_rates_that_are_not_named_stay(admin: Admin) -> None:
    assert await admin.status("GET", GROUPS + "/g") == 404
    await admin.call("PUT", GROUPS + "/g", {"publishRateInMsgs": 5, "dispatchRateInBytes": 2**40})
    await admin.call("PUT", GROUPS + "/g", {"publishRateInMsgs": 6})
    assert await admin.get(GROUPS + "/g") == {
        "publishRateInMsgs": 6,
        "publishRateInBytes": -1,
        "dispatchRateInMsgs": -1,
        "dispatchRateInBytes": 2**40,
    }
    assert await admin.get(GROUPS) == ["g"]
    assert await admin.status("DELETE", GROUPS + "/g") == 204
    assert await admin.get(GROUPS) == []
    assert await admin.status("DELETE", GROUPS + "/g") == 404


async def test_rates_are_numbers(admin: Admin) -> None:
    assert await admin.status("PUT", GROUPS + "/g", {"publishRateInMsgs": 2**31}) == 400
    assert await admin.status("PUT", GROUPS + "/g") == 400
