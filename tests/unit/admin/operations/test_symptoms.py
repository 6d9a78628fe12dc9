"""What an operator of a broker should look at."""

from __future__ import annotations

import datetime as dt
import resource
from pathlib import Path
from typing import Any

import jwt
import pytest
from msgspec.structs import replace

from pulsar_py.admin.operations import symptoms as module
from pulsar_py.admin.operations.symptoms import certificate_symptoms
from pulsar_py.common.errors import MetadataUnavailableError
from pulsar_py.server.config import BrokerConfig
from tests.certificates import Certificate
from tests.unit.admin.resources.conftest import Admin

PATH = "/admin/v2/brokers/symptoms"


@pytest.fixture(autouse=True)
def fast_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run beside others, on a machine that keeps everybody waiting."""
    monkeypatch.setattr(module, "SLOW_LOOP_SECONDS", 1e9)
    monkeypatch.setattr(module, "SLOW_SYNC_SECONDS", 1e9)


async def codes(admin: Admin) -> list[str]:
    return [each["code"] for each in await admin.get(PATH)]


async def test_a_broker_of_one_s_own_machine_has_none(admin: Admin) -> None:
    assert await codes(admin) == []


async def test_a_setting_given_in_vain_is_named(admin: Admin) -> None:
    admin.service.config = BrokerConfig.from_texts({"numAcceptorThreads": "4"})
    (found,) = await admin.get(PATH)
    assert (found["code"], found["urgency"]) == ("SETTING_WITHOUT_EFFECT", "notice")
    assert found["subject"] == "numAcceptorThreads"
    assert BrokerConfig.from_texts({"numAcceptorThreads": "1"}).without_effect == {}


async def test_a_full_disk_comes_before_one_that_is_nearly_full(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: dict[str, Any] = {"disk_free_bytes": 10**9, "is_taking_writes": True}
    monkeypatch.setattr(type(admin.service.ledger_store), "figures", lambda _: figures)
    assert await codes(admin) == ["DISK_NEARLY_FULL"]
    figures["is_taking_writes"] = False
    assert await codes(admin) == ["DISK_FULL"]


async def test_few_descriptors_are_told(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 10))
    assert await codes(admin) == ["FEW_DESCRIPTORS"]


async def test_slow_loops_and_syncs_are_told(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOW_LOOP_SECONDS", 0.0)
    monkeypatch.setattr(module, "SLOW_SYNC_SECONDS", 0.0)
    assert await codes(admin) == ["SLOW_LOOP", "SLOW_SYNC"]


async def test_a_store_that_takes_nothing_is_told(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: object) -> None:
        raise MetadataUnavailableError("gone")

    monkeypatch.setattr(type(admin.service), "check_health", fails)
    (found,) = await admin.get(PATH)
    assert (found["code"], found["urgency"]) == ("NOT_HEALTHY", "error")
    assert found["message"] == "A key could not be stored: gone"


async def test_topics_that_go_soon_are_named(admin: Admin) -> None:
    await admin.call("PUT", "/admin/v2/persistent/public/default/unused", {})
    name = "persistent://public/default/unused"
    (found,) = await admin.get(PATH)
    assert found["subject"] == name
    assert "1 unused topics" in found["message"]
    await admin.call("PUT", "/admin/v2/persistent/public/default/unused/subscription/s")
    assert await codes(admin) == []


OPEN = ("pulsar://0.0.0.0:6650", "http://0.0.0.0:8080", "https://0.0.0.0:8443")


async def test_an_open_broker_is_told_of_though_it_advertises_localhost(admin: Admin) -> None:
    addresses = admin.service.addresses
    admin.service.set_addresses(replace(addresses, bound_urls=OPEN))
    (found,) = await admin.get(PATH)
    assert (found["code"], found["urgency"]) == ("OPEN_TO_ALL", "error")
    assert found["subject"] == "0.0.0.0"


async def test_clear_text_between_machines_is_told_where_there_is_authentication(
    admin: Admin,
) -> None:
    addresses = admin.service.addresses
    admin.service.config = BrokerConfig(authenticationEnabled=True)
    assert await codes(admin) == []  # loopback
    admin.service.set_addresses(replace(addresses, bound_urls=OPEN))
    (found,) = await admin.get(PATH)
    assert (found["code"], found["urgency"]) == ("CLEAR_TEXT", "warning")
    assert found["subject"] == "pulsar://0.0.0.0:6650, http://0.0.0.0:8080"
    admin.service.set_addresses(replace(addresses, bound_urls=OPEN[2:]))
    assert await codes(admin) == []


def test_certificates_that_end_are_told_before_and_after(tmp_path: Path) -> None:
    path = Path(Certificate(tmp_path, "broker").certificate_path)  # until 2100

    def found(year: int, month: int) -> list[tuple[str, str]]:
        now = dt.datetime(year, month, 15, tzinfo=dt.UTC)
        return [(each.code, each.urgency.value) for each in certificate_symptoms(path, now)]

    assert found(2099, 6) == []
    assert found(2099, 12) == [("CERTIFICATE_EXPIRES", "warning")]
    assert found(2100, 1) == [("CERTIFICATE_EXPIRED", "error")]
    path.write_bytes(path.read_bytes() * 2)
    assert len(found(2100, 1)) == 2
    path.write_text("-----END CERTIFICATE-----")
    assert found(2099, 6) == [("CERTIFICATE_UNREADABLE", "error")]
    path.unlink()
    assert found(2099, 6) == [("CERTIFICATE_UNREADABLE", "error")]


def configured(admin: Admin, parameters: str) -> None:
    """The broker proves its role to others by a token."""
    admin.service.config = BrokerConfig(
        brokerClientAuthenticationPlugin="org.apache.pulsar.client.impl.auth.AuthenticationToken",
        brokerClientAuthenticationParameters=parameters,
    )


@pytest.mark.parametrize(
    ("days", "code"), [(-1, "TOKEN_EXPIRED"), (6.9, "TOKEN_EXPIRES"), (7.1, None), (None, None)]
)
async def test_the_brokers_own_token_is_told_before_and_after_it_ends(
    admin: Admin, tmp_path: Path, days: float | None, code: str | None
) -> None:
    now = admin.service.clock.wall_time_millis() / 1000
    claims = {"sub": "broker"} | ({} if days is None else {"exp": now + days * 86_400})
    token = jwt.encode(claims, bytes(range(32)), "HS256")
    path = tmp_path / "token"
    path.write_text(token)
    for parameters in (f"token:{token}", token, f"file://{path}"):
        configured(admin, parameters)
        found = [each for each in await admin.get(PATH) if each["code"].startswith("TOKEN")]
        assert [each["code"] for each in found] == ([code] if code else [])
        assert token not in str(found)


async def test_a_token_that_can_not_be_read_is_told(admin: Admin, tmp_path: Path) -> None:
    configured(admin, f"file://{tmp_path}/none")
    assert "TOKEN_UNREADABLE" in await codes(admin)
