"""Lists of topics over REST share the bytes that all lists have together."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsar_py.admin.resources.topic_lists import list_response
from pulsar_py.common.errors import MetadataError
from pulsar_py.common.names import NamespaceName
from pulsar_py.server.limits.topic_list_budget import LISTED_BYTES
from pulsar_py.standalone import Broker
from tests.unit.admin.resources.conftest import Admin

DEFAULT = NamespaceName.parse("public/default")
NAMESPACE = "/admin/v2/namespaces/public/default"
NAMES = [f"persistent://public/default/t{number}" for number in range(10)]
NAMES_BYTES = sum(map(len, NAMES)) + 10 * LISTED_BYTES


@pytest.fixture
async def narrow() -> AsyncIterator[Admin]:
    """Of a broker whose lists wait for a moment alone."""
    settings = {
        "maxTopicListInFlightHeapMemSizeMB": 1,
        "maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis": 10,
    }
    async with Broker(config=settings) as broker:
        admin = Admin(broker.service)
        for name in NAMES:
            assert await admin.status("PUT", "/admin/v2/" + name.replace("://", "/")) == 204
        assert await admin.status("PUT", "/admin/v2/persistent/public/default/p/partitions", 1)
        yield admin


async def lists() -> list[str]:
    return NAMES


async def test_a_list_counts_until_its_answer_has_ended(narrow: Admin) -> None:
    budget = narrow.service.connections.topic_lists
    first = await list_response(narrow.service, "a", lists)
    second = await list_response(narrow.service, "a", lists)
    assert budget.in_flight_bytes == 2 * NAMES_BYTES
    for each in (first, second):
        assert each.on_ended is not None
        each.on_ended()
    assert budget.in_flight_bytes == 0


async def test_a_list_that_can_not_be_read_counts_no_longer(narrow: Admin) -> None:
    async def fails() -> list[str]:
        raise MetadataError("broken on purpose")

    with pytest.raises(MetadataError):
        await list_response(narrow.service, "a", fails)
    assert narrow.service.connections.topic_lists.in_flight_bytes == 0


@pytest.mark.parametrize(
    "path",
    [
        f"{NAMESPACE}/topics",
        f"{NAMESPACE}/topics?mode=ALL",
        "/admin/v2/persistent/public/default",
        "/admin/v2/non-persistent/public/default",
        "/admin/v2/persistent/public/default/partitioned",
        "{bundle}/topicHashPositions",
    ],
)
async def test_each_list_waits_for_room_and_is_refused_in_the_end(narrow: Admin, path: str) -> None:
    bundles = await narrow.service.namespaces.bundles_of(DEFAULT)
    path = path.replace("{bundle}", f"{NAMESPACE}/{bundles.names[0]}")
    budget = narrow.service.connections.topic_lists
    before = budget.in_flight_bytes
    held_bytes = budget.correct("of others", await budget.acquire("of others"), 2 << 20)
    status, reason = await narrow.reason("GET", path)
    assert (status, reason) == (
        429,
        "too many bytes of topic lists are under way in this broker",
    )
    budget.give_back(held_bytes)
    assert budget.in_flight_bytes == before
    assert (await narrow.call("GET", path)).status == 200
