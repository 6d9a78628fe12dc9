"""Settings changed while brokers run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pulsar_py.admin.resources.dynamic_configuration import HIDDEN, without_data
from pulsar_py.standalone import Broker
from tests.unit.admin.resources.conftest import Admin
from tests.unit.server.security.test_providers import Badges

C = "/admin/v2/brokers/configuration"


async def test_a_changed_setting_is_shown_and_counts_at_once(admin: Admin) -> None:
    assert await admin.status("POST", C + "/maxTenants/3") == 200
    assert await admin.get(C + "/values") == {"maxTenants": "3"}
    assert admin.service.config.maxTenants == 3
    assert (await admin.get(C + "/runtime"))["maxTenants"] == "3"
    assert await admin.status("DELETE", C + "/maxTenants") == 200
    assert await admin.get(C + "/values") == {}
    assert admin.service.config.maxTenants == 0


async def test_only_dynamic_settings_may_change(admin: Admin) -> None:
    for name in ("clusterName", "noSuchSetting"):
        assert (await admin.reason("POST", f"{C}/{name}/x"))[0] == 412
        assert (await admin.reason("DELETE", f"{C}/{name}"))[0] == 412
    assert "clusterName" not in await admin.get(C)


async def test_a_text_that_is_no_value_is_kept_and_ignored(admin: Admin) -> None:
    assert await admin.status("POST", C + "/maxTenants/many") == 200
    assert (await admin.get(C + "/values"))["maxTenants"] == "many"
    assert admin.service.config.maxTenants == 0


async def test_secrets_are_not_shown() -> None:
    async with Broker(config={"tlsKeyStorePassword": "s3cr3t"}) as broker:
        assert "s3cr3t" not in str(await Admin(broker.service).get(C + "/runtime"))


async def test_what_users_providers_are_given_is_not_shown() -> None:
    config = {
        "authenticationEnabled": True,
        "authenticationProviders": f"{Badges.__module__}.Badges",
        "badgeServer": "user:s3cr3t@host",
    }
    async with Broker(config=config) as broker:
        assert (await Admin(broker.service).get(C + "/runtime"))["badgeServer"] == HIDDEN


@pytest.mark.parametrize(
    "text",
    [
        "data:;base64,s3cr3t",
        'a=b;{"key": "data:text/plain;charset=x,s3cr3t"}',
        "file:///a data:,s3cr3t",
        "data:text/plain,user,s3cr3t;s3cr3t",
    ],
)
def test_what_is_given_as_data_is_not_shown(text: str) -> None:
    shown = without_data(text)
    assert "s3cr3t" not in shown
    assert f"data:{HIDDEN}" in shown
    assert without_data("file:///a/data,b") == "file:///a/data,b"


async def test_changed_settings_are_there_after_a_start(tmp_path: Path) -> None:
    async with Broker(data_dir=tmp_path) as broker:
        await Admin(broker.service).call("POST", C + "/maxTopicsPerNamespace/7")
        await asyncio.sleep(0)
    async with Broker(data_dir=tmp_path) as broker:
        assert broker.service.config.maxTopicsPerNamespace == 7
        assert broker.service.topics.settings.max_topics_per_namespace == 7
