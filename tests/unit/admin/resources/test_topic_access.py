"""Topics are found, or it is said what is missing."""

from __future__ import annotations

import socket

import pytest

from pulsar_py.admin.http_messages import HttpError
from pulsar_py.admin.resources.topic_access import (
    broker_id_of,
    for_each_partition,
    refuse_partitioned,
    require_namespace,
    require_topic,
    topic_not_found,
)
from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MUST_NOT_EXIST
from pulsar_py.server.load.other_brokers import OtherBrokerError
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.owner_record import OwnerRecord
from tests.unit.admin.resources.conftest import Admin

P = "/admin/v2/persistent/public/default"


async def test_a_broker_is_called_by_its_web_address(admin: Admin) -> None:
    assert broker_id_of(admin.service).startswith("127.0.0.1:")


async def test_a_missing_namespace_is_404_in_the_words_of_the_call(admin: Admin) -> None:
    await require_namespace(admin.service, NamespaceName("public", "default"))
    with pytest.raises(HttpError, match="gone") as raised:
        await require_namespace(admin.service, NamespaceName("public", "n"), "gone")
    assert raised.value.status == 404


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere", "Topic persistent://public/default/nowhere not found"),
        ("p", "Topic persistent://public/default/p not found"),
        ("p-partition-2", "Topic partitions were not yet created"),
        ("public/nowhere/a", "Namespace not found"),
    ],
)
async def test_what_is_missing_is_named(admin: Admin, name: str, reason: str) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    with pytest.raises(HttpError) as raised:
        await require_topic(admin.service, TopicName.parse(name))
    assert (raised.value.status, raised.value.reason) == (404, reason)


async def test_a_topic_that_is_not_loaded_gets_loaded(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await admin.call("PUT", "/admin/v2/namespaces/public/default/unload")
    name = TopicName.parse("a")
    assert (await require_topic(admin.service, name)).name == name


async def test_partitions_are_visited_in_order(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 3)
    seen: list[str] = []

    async def note(name: TopicName) -> None:
        seen.append(name.local_name)

    await for_each_partition(admin.service, TopicName.parse("p"), note)
    await for_each_partition(admin.service, TopicName.parse("a"), note)
    assert seen == ["p-partition-0", "p-partition-1", "p-partition-2", "a"]


async def test_partitioned_names_can_be_refused(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 1)
    await refuse_partitioned(admin.service, TopicName.parse("a"), "Peeking at")
    with pytest.raises(HttpError, match="Peeking at a partitioned topic is not allowed"):
        await refuse_partitioned(admin.service, TopicName.parse("p"), "Peeking at")


OTHER = "http://other:8080"


async def owned_by_another(admin: Admin, name: str, url: str = OTHER) -> None:
    """Have another broker serve the bundle of a topic."""
    service, topic = admin.service, TopicName.parse(name)
    bundle = await service.namespaces.bundle_of(topic)
    await service.namespaces.unload_bundle(topic.namespace_name, bundle)
    addresses = BrokerAddresses(broker_url="pulsar://other:6650", http_url=url)
    record = OwnerRecord(LocalAddresses(default=addresses))
    path = paths.bundle_owner(topic.namespace_name, bundle)
    await service.resources.local.put(path, record.encode(), expected_version=MUST_NOT_EXIST)


def nobodys_url() -> str:
    """An address where nobody listens any more."""
    with socket.create_server(("127.0.0.1", 0)) as closed_at_once:
        return f"http://127.0.0.1:{closed_at_once.getsockname()[1]}"


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("DELETE", "", "?force=true&"),
        ("PUT", "", "?"),
        ("GET", "/stats", "?"),
        ("GET", "/internalStats", "?"),
        ("PUT", "/unload", "?"),
        ("PUT", "/subscription/a%2Fb", "?"),
        ("POST", "/subscription/a%2Fb/skip_all", "?"),
        ("POST", "/terminate", "?"),
    ],
)
async def test_a_call_about_a_topic_of_another_broker_is_sent_there(
    admin: Admin, method: str, path: str, query: str
) -> None:
    await admin.call("PUT", P + "/a")
    await owned_by_another(admin, "a")
    ledgers = paths.managed_ledger(TopicName.parse("a").managed_ledger_name)
    before = await admin.service.resources.local.get(ledgers)
    assert before is not None
    answer = await admin.call(method, P + "/a" + path + query.rstrip("?&"))
    location = f"{OTHER}{P}/a{path}{query}authoritative=true"
    assert (answer.status, dict(answer.headers)) == (307, {"Location": location})
    assert await admin.service.resources.local.get(ledgers) == before


async def test_a_topic_of_another_broker_is_neither_deleted_nor_made_here(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await owned_by_another(admin, "a", nobodys_url())
    with pytest.raises(OtherBrokerError, match="persistent/public/default/a"):
        await admin.service.topics.delete(TopicName.parse("a"))
    await admin.service.resources.local.delete_recursive(
        paths.managed_ledger(TopicName.parse("a").managed_ledger_name)
    )
    with pytest.raises(ServiceNotReadyError, match="not served by this instance"):
        await admin.service.topics.create_topic(TopicName.parse("a"))
    assert await admin.get(P) == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/subscriptions"),
        ("GET", "/partitioned-stats"),
        ("POST", "/terminate/partitions"),
        ("DELETE", "/partitions"),
    ],
)
async def test_nobody_is_sent_after_a_single_partition(
    admin: Admin, method: str, path: str
) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    await owned_by_another(admin, "p-partition-1", nobodys_url())
    status, reason = await admin.reason(method, P + "/p" + path)
    assert status == 503
    assert "p-partition-1" in reason


def test_a_topic_that_is_not_there_is_404() -> None:
    assert topic_not_found(TopicName.parse("a")).status == 404
