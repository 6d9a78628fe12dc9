"""Who is signed in, and what he may do there."""

from __future__ import annotations

from pulsar_py.admin.router import Router
from pulsar_py.console.assets import Assets
from pulsar_py.console.service import console_routes
from tests.unit.console.conftest import ConsoleCalls, console_of
from tests.unit.test_web import GUARDED

RIGHTS = "/admin/console/rights"


async def test_without_authentication_everybody_may_do_everything(console: ConsoleCalls) -> None:
    me = await console.get("/admin/console/me")
    assert me["cluster"] == "standalone"
    assert (me["authentication"], me["authorization"]) == (False, False)
    assert "role" not in me
    found = await console.get(f"{RIGHTS}?topic=persistent://public/default/t&subscription=s")
    assert {"SKIP", "DELETE_TOPIC", "WRITE_TOPIC_POLICY", "CREATE_TENANT"} <= set(found["actions"])


async def test_a_role_is_told_what_it_may_do_and_no_more() -> None:
    async with console_of(**GUARDED) as console:
        assert await console.status("GET", "/admin/console/me") == 401
        me = await console.get("/admin/console/me", role="admin")
        assert me["role"] == "admin"
        assert "READ_BROKERS" in me["actions"]
        friend = await console.get("/admin/console/me", role="friend")
        assert friend["actions"] == []
        grant = "/admin/v2/namespaces/public/default/permissions/friend"
        assert await console.status("POST", grant, ["consume"], role="admin") == 204
        topic = f"{RIGHTS}?topic=persistent://public/default/t&subscription=s"
        rights = set((await console.get(topic, role="friend"))["actions"])
        assert {"CONSUME", "SKIP", "PEEK_MESSAGES", "GET_STATS"} <= rights
        assert not {"PRODUCE", "DELETE_TOPIC", "WRITE_TOPIC_POLICY", "READ_BROKERS"} & rights
        other = await console.get(f"{RIGHTS}?namespace=public/other", role="friend")
        assert other["actions"] == []


async def test_a_role_that_acts_for_another_has_no_more_rights_than_that() -> None:
    async with console_of(**GUARDED, proxyRoles="proxy") as console:
        answer = await console.call(
            "GET", "/admin/console/me", role="friend", x_original_principal="admin"
        )
        assert answer.status == 401
        answer = await console.call(
            "GET", "/admin/console/me", role="proxy", x_original_principal="friend"
        )
        assert answer.status == 200
        assert b'"role":"friend"' in answer.body


async def test_a_name_that_is_none_is_refused(console: ConsoleCalls) -> None:
    status, reason = await console.reason("GET", f"{RIGHTS}?topic=persistent://a")
    assert status == 400
    assert reason


async def test_each_call_has_an_action_or_says_why_it_needs_no_right(
    console: ConsoleCalls,
) -> None:
    routes = list(console_routes(console.service, Assets({}), lambda *_: console.client))
    Router(routes)
    free = {route.template for route in routes if isinstance(route.needs, str)}
    assert free == {
        "/console",
        "/admin/console/me",
        "/admin/console/openapi.json",
        "/admin/console/rights",
        "/admin/console/tenants",
        "/admin/console/namespaces/{tenant}",
        "/admin/console/topics/{tenant}/{namespace}",
    }
    for route in routes:
        if isinstance(route.needs, str):
            assert route.needs.startswith("open to every caller: ")
        elif route.needs.scope.value in {"tenant", "namespace", "topic", "subscription"}:
            assert f"{{{route.needs.scope.value}}}" in route.template
