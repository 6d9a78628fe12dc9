"""Lists are searched and paged by the broker, and have only what the caller may see."""

from __future__ import annotations

from pulsar_py.common.loops.work import Turns
from pulsar_py.console.listings import ListPage, page_of
from tests.unit.console.conftest import ConsoleCalls, console_of
from tests.unit.test_web import GUARDED

TOPICS = "/admin/console/topics/public/default"


async def test_pages_follow_each_other_and_leave_nothing_out() -> None:
    names = [f"topic-{n:05}" for n in range(10_000)]
    seen: list[str] = []
    after = ""
    while True:
        page = ListPage(search="", after=after, limit=200)
        found, total = await page_of(names, page, Turns())
        assert total == 10_000
        assert len(found) <= 201
        seen += found[:200]
        if len(found) <= 200:
            break
        after = found[199]
    assert seen == names


async def test_a_search_is_for_a_part_of_the_name_in_any_case() -> None:
    page = ListPage(search="ORD".casefold(), after="", limit=10)
    found, total = await page_of(["Orders", "clicks", "reorder"], page, Turns())
    assert (found, total) == (["Orders", "reorder"], 2)


async def test_a_partitioned_topic_is_one_line(console: ConsoleCalls) -> None:
    made = await console.call("PUT", "/admin/v2/persistent/public/default/p/partitions", 3)
    assert made.status == 204
    await console.client.create_producer("p")
    await console.client.subscribe("plain", "s")
    found = await console.get(TOPICS)
    assert [each["name"].rpartition("/")[2] for each in found["items"]] == ["p", "plain"]
    partitioned, plain = found["items"]
    assert (partitioned["partitions"], partitioned["loaded"]) == (3, 3)
    assert partitioned["producers"] == 3
    assert (plain["subscriptions"], plain["consumers"], plain["backlog"]) == (1, 1, 0)


async def test_looking_at_a_list_loads_nothing(console: ConsoleCalls) -> None:
    path = "/admin/v2/persistent/public/default/idle"
    await console.call("PUT", path)
    await console.call("PUT", path + "/unload")
    (line,) = (await console.get(TOPICS))["items"]
    assert line["loaded"] == 0
    assert "backlog" not in line
    assert (await console.get(TOPICS))["items"][0]["loaded"] == 0


async def test_tenants_and_namespaces_are_counted(console: ConsoleCalls) -> None:
    found = await console.get("/admin/console/tenants?search=PUB")
    assert found == {"items": [{"name": "public", "namespaces": 1}], "more": False, "total": 1}
    await console.call("PUT", "/admin/v2/persistent/public/default/t")
    found = await console.get("/admin/console/namespaces/public")
    assert found["items"] == [{"name": "default", "topics": 1}]


async def test_a_limit_has_bounds(console: ConsoleCalls) -> None:
    for limit in ("0", "201", "-1", "x", "9" * 400):
        assert (await console.reason("GET", f"{TOPICS}?limit={limit}"))[0] == 400


async def test_a_namespace_that_is_not_there_is_404(console: ConsoleCalls) -> None:
    assert await console.status("GET", "/admin/console/topics/public/nothing") == 404


async def test_a_role_sees_where_it_has_a_right_and_nothing_else() -> None:
    async with console_of(**GUARDED) as console:
        for path, body in (
            ("/admin/v2/clusters/standalone", {"serviceUrl": "http://127.0.0.1:1"}),
            ("/admin/v2/tenants/public", {"adminRoles": [], "allowedClusters": ["standalone"]}),
            ("/admin/v2/tenants/other", {"adminRoles": [], "allowedClusters": ["standalone"]}),
            ("/admin/v2/namespaces/public/default", {}),
            ("/admin/v2/namespaces/public/hidden", {}),
            ("/admin/v2/namespaces/other/ns", {}),
            ("/admin/v2/persistent/public/default/mine", ...),
            ("/admin/v2/persistent/public/default/theirs", ...),
        ):
            assert await console.status("PUT", path, body, role="admin") in {204, 409}
        listed = "/admin/console/tenants"
        assert (await console.get(listed, role="friend"))["items"] == []
        assert await console.status("GET", TOPICS, role="friend") == 403
        grant = "/admin/v2/persistent/public/default/mine/permissions/friend"
        assert await console.status("POST", grant, ["consume"], role="admin") == 204
        names = [each["name"] for each in (await console.get(listed, role="friend"))["items"]]
        assert names == ["public"]
        found = await console.get("/admin/console/namespaces/public", role="friend")
        assert [each["name"] for each in found["items"]] == ["default"]
        found = await console.get(TOPICS, role="friend")
        assert [each["name"].rpartition("/")[2] for each in found["items"]] == ["mine"]
        everything = await console.get(listed, role="admin")
        assert {"other", "public"} <= {each["name"] for each in everything["items"]}
