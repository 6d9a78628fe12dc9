"""The list of settings: where each value comes from, and that no secret is among them."""

from __future__ import annotations

import json

from tests.unit.console.conftest import ConsoleCalls, console_of
from tests.unit.test_web import GUARDED

PATH = "/admin/console/settings"


async def test_each_setting_has_its_value_default_and_origin(console: ConsoleCalls) -> None:
    found = {each["name"]: each for each in await console.get(PATH)}
    assert set(found) == set(console.service.config.declared())
    rate = found["maxConcurrentLookupRequest"]
    assert (rate["value"], rate["default"], rate["origin"]) == ("50000", "50000", "default")
    assert rate["isDynamic"]
    assert rate["doc"]
    assert rate["category"]


async def test_a_setting_that_is_changed_says_so(console: ConsoleCalls) -> None:
    path = "/admin/v2/brokers/configuration/maxConcurrentLookupRequest"
    assert await console.status("POST", f"{path}/7") == 200
    found = {each["name"]: each for each in await console.get(PATH)}
    changed = found["maxConcurrentLookupRequest"]
    assert (changed["value"], changed["origin"]) == ("7", "changed while it runs")


async def test_secrets_are_hidden() -> None:
    async with console_of(**GUARDED, proxyRoles="p") as console:
        assert await console.status("GET", PATH, role="friend") == 401
        found = {each["name"]: each for each in await console.get(PATH, role="admin")}
        assert found["tokenSecretKey"]["value"] == "********"
        assert found["proxyRoles"]["origin"] == "given at the start"
        key = GUARDED["tokenSecretKey"].partition(",")[2]
        assert key not in json.dumps(found)
