"""All resources have their place in one router."""

from __future__ import annotations

from pulsar_py.admin.resources.all_routes import all_routes
from pulsar_py.admin.router import Match, Router
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
