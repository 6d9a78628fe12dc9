"""All resources have their place in one router, and none of them fails for what it is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.operations.absent_services import PREFIXES
from pulsar_py.admin.router import Match, Route, Router
from pulsar_py.server.security.actions import Scope
from tests.unit.admin.resources.conftest import Admin


async def test_no_two_resources_claim_the_same_route(admin: Admin) -> None:
    routes = list(all_routes(admin.service))
    Router(routes)
    assert len({(route.method, route.template) for route in routes}) == len(routes)


async def test_every_route_is_found_by_its_own_template(admin: Admin) -> None:
    routes = list(all_routes(admin.service))
    router = Router(routes)
    for route in routes:
        path = route.template.replace("{domain:persistent|non-persistent}", "persistent")
        found = router.find(route.method, path.replace("{", "").replace("}", ""))
        assert isinstance(found, Match)
        assert found.route.template == route.template


async def test_each_route_takes_an_action_or_says_why_it_needs_no_right(admin: Admin) -> None:
    free = set()
    for route in all_routes(admin.service):
        if isinstance(route.needs, str):
            assert route.needs.startswith("open to every caller: "), route.template
            if not route.template.startswith(tuple(PREFIXES)):
                free.add((route.method, route.template))
        else:
            assert _is_within(route.needs.scope, route.template), route.template
    assert free == {
        ("GET", "/admin/openapi.json"),
        ("GET", "/admin/v2/brokers/ready"),
        ("GET", "/admin/v2/brokers/version"),
        ("GET", "/admin/v2/clusters"),
        ("GET", "/metrics"),
        ("GET", "/status.html"),
    }


def _is_within(scope: Scope, template: str) -> bool:
    """Whether a path names what the right is looked up for."""
    if scope is Scope.CLUSTER:
        return True
    if scope is Scope.SUBSCRIPTION:
        return "{subscription}" in template or "/all_subscription/" in template
    return f"{{{scope.value}}}" in template


# --- hostile requests --------------------------------------------------------------------------

DEEP = "[" * 100_000
FIELDS = [
    "adminRoles",
    "allowedClusters",
    "serviceUrl",
    "brokerServiceUrl",
    "replication_clusters",
    "bundles",
    "policy",
    "limit",
    "limitSize",
    "limitTime",
    "tickTime",
    "active",
    "maxDeliveryDelayInMillis",
    "allowAutoTopicCreation",
    "topicType",
    "defaultNumPartitions",
    "allowAutoSubscriptionCreation",
    "partitions",
    "properties",
    "ledgerId",
    "entryId",
    "excluded",
    "boundaries",
    "numBundles",
    "retention_policies",
    "message_ttl_in_seconds",
    "persistence",
    "backlog_quota_map",
    "topicDispatchRate",
    "max_producers_per_topic",
    "delayed_delivery_policies",
]
"""What any of the routes reads in an object."""
SCALARS = (
    str(2**31),
    str(2**63 - 1),
    str(2**63),
    str(-(2**63)),
    "-1",
    "9" * 4000,
    "9" * 5000,
    "1e308",
    "1e999",
    "NaN",
    "-Infinity",
    '"\\ud800"',
    '"' + "9" * 5000 + '"',
    "[[[]]]",
    '{"a": {"a": []}, "a": 1}',
    "null",
)
BODIES = (
    *SCALARS,
    DEEP,
    '{"a":' * 100_000,
    DEEP + "]" * 100_000,
    '{"properties": ' + "[" * 190 + "]" * 190 + "}",
    "{" + ",".join(f'"{name}": {{"boundaries": {["0x0"] * 9999}}}' for name in FIELDS[5:6]) + "}",
)
NUMBERS = ("0", "-1", str(2**31 - 1), str(2**31), str(2**63 - 1), str(2**63), "9" * 5000, "NaN")


def path_of(route: Route, topic: str = "a") -> Iterator[str]:
    """The route's path, once for each hostile number if it has one."""
    known = {
        "{domain:persistent|non-persistent}": "persistent",
        "{tenant}": "public",
        "{namespace}": "default",
        "{topic}": topic,
        "{subscription}": "s",
        "{cluster}": "standalone",
    }
    path = re.sub(r"\{[^}]*\}", lambda found: known.get(found[0], found[0]), route.template)
    if not path.endswith("}"):
        yield re.sub(r"\{[^}]*\}", "x", path)
        return
    for number in NUMBERS:
        yield re.sub(r"\{[^}]*\}", number, path)


async def furnish(admin: Admin) -> None:
    """Something for each route to work on."""
    await admin.call("PUT", "/admin/v2/persistent/public/default/a")
    await admin.call("PUT", "/admin/v2/persistent/public/default/a/subscription/s")
    await admin.call("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)


async def raw(admin: Admin, route: Route, path: str, body: str) -> int:
    headers = {"content-type": "application/json", "accept": "*/*"}
    return (await admin.app.handle(route.method, path, headers, body.encode())).status


def is_answered(status: int) -> bool:
    return status < HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.NOT_IMPLEMENTED


@pytest.mark.parametrize("topic", ["a", "p"])
async def test_no_number_and_no_json_makes_a_route_fail(admin: Admin, topic: str) -> None:
    """One value after the other, on each route, as the body and as each of its fields."""
    failed = []
    for route in all_routes(admin.service):
        if not route.consumes and "{" not in route.template.rpartition("/")[2]:
            continue
        fields = [f'{{"{name}": {value}}}' for name in FIELDS for value in SCALARS]
        for path in path_of(route, topic):
            await furnish(admin)
            for body in [*BODIES, *fields] if route.consumes else [""]:
                status = await raw(admin, route, path, body)
                if not is_answered(status) and not path.startswith(tuple(PREFIXES)):
                    failed.append((route.method, path[:100], body[:60], status))
    assert not failed


async def test_whatever_a_namespace_is_created_with_its_topics_can_be_used(
    admin: Admin,
) -> None:
    failed = []
    bodies = [f'{{"{name}": {value}}}' for name in FIELDS for value in SCALARS]
    for number, body in enumerate(bodies):
        namespace = f"/admin/v2/namespaces/public/n{number}"
        topic = f"/admin/v2/persistent/public/n{number}/a"
        headers = {"content-type": "application/json"}
        created = (await admin.app.handle("PUT", namespace, headers, body.encode())).status
        answers = [created]
        if created == HTTPStatus.NO_CONTENT:
            answers += [
                await admin.status("GET", namespace),
                await admin.status("PUT", topic),
                await admin.status("GET", topic + "/stats"),
                await admin.status("DELETE", topic),
                await admin.status("DELETE", namespace),
            ]
        if not all(map(is_answered, answers)):
            failed.append((body[:80], answers))
    assert not failed


async def test_json_nested_too_deeply_is_400_wherever_it_is_read(admin: Admin) -> None:
    await furnish(admin)
    for route in all_routes(admin.service):
        if route.consumes:
            for body in (DEEP, DEEP + "]" * 100_000, '{"properties":' * 100_000):
                status = await raw(admin, route, next(path_of(route)), body)
                assert 400 <= status < 500, (route.method, route.template)
