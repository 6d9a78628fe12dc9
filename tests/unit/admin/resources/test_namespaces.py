"""Namespaces: list, create, delete, bundles, topics, unload."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from msgspec.structs import replace

from pulsar_py.admin.resources.namespaces import MAX_BUNDLES
from pulsar_py.common.errors import ServiceError, TopicNotFoundError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.managed_ledger.log.ledger_format import (
    decode_ledger_list,
    encode_ledger_list,
    ledger_path,
)
from pulsar_py.metadata.documents import equal_boundaries
from tests.unit.admin.resources.conftest import Admin

NAMESPACES = "/admin/v2/namespaces"
N = NAMESPACES + "/public/n"


async def test_a_namespace_is_created_listed_and_deleted(admin: Admin) -> None:
    assert await admin.status("PUT", N) == 204
    assert await admin.reason("PUT", N) == (409, "Namespace already exists")
    assert await admin.get(NAMESPACES + "/public") == ["public/default", "public/n"]
    policies = await admin.get(N)
    assert policies["replication_clusters"] == ["standalone"]
    assert policies["bundles"]["numBundles"] == 4
    assert await admin.status("DELETE", N) == 204
    assert await admin.reason("GET", N) == (404, "Namespace does not exist")
    assert (await admin.reason("DELETE", N))[0] == 404


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/nobody/n", ..., (404, "Tenant does not exist")),
        ("/public/bad%20name", ..., (412, "Namespace name is not valid")),
        ("/public/a%2Fb", ..., (412, "Namespace name is not valid")),
    ],
)
async def test_a_namespace_needs_a_tenant_and_a_name(
    admin: Admin, path: str, body: object, expected: tuple[int, str]
) -> None:
    assert await admin.reason("PUT", NAMESPACES + path, body) == expected


async def test_replication_needs_clusters_of_the_tenant(admin: Admin) -> None:
    assert (await admin.reason("PUT", N, {"replication_clusters": ["west"]}))[0] == 403


async def test_policies_given_at_creation_are_completed(admin: Admin) -> None:
    body = {
        "message_ttl_in_seconds": "9",
        "backlog_quota_map": {"destination_storage": {"limit": 5, "policy": "producer_exception"}},
        "schema_compatibility_strategy": "SIDEWAYS",
        "unheard_of": 1,
    }
    assert await admin.status("PUT", N, body) == 204
    policies = await admin.get(N)
    assert policies["message_ttl_in_seconds"] == 9
    assert policies["backlog_quota_map"]["destination_storage"]["limitSize"] == 5
    assert policies["schema_compatibility_strategy"] == "UNDEFINED"
    assert policies["unheard_of"] == 1


@pytest.mark.parametrize(
    ("bundles", "boundaries"),
    [
        ({"numBundles": 2}, ["0x00000000", "0x80000000", "0xffffffff"]),
        ({"numBundles": 1, "boundaries": None}, ["0x00000000", "0xffffffff"]),
        (
            {"boundaries": ["0x00000000", "0x1", "0xffffffff"]},
            ["0x00000000", "0x00000001", "0xffffffff"],
        ),
        (
            {"numBundles": -1},
            ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"],
        ),
    ],
)
async def test_a_namespace_is_cut_as_wanted(
    admin: Admin, bundles: object, boundaries: list[str]
) -> None:
    assert await admin.status("PUT", N, {"bundles": bundles}) == 204
    assert (await admin.get(N + "/bundles"))["boundaries"] == boundaries


async def test_boundaries_have_to_cover_everything(admin: Admin) -> None:
    bundles = {"boundaries": ["0x10000000", "0x20000000"]}
    status, reason = await admin.reason("PUT", N, {"bundles": bundles})
    assert status == 400
    assert "first:0x10000000, last:0x20000000" in reason


async def test_the_number_of_namespaces_is_limited(admin: Admin) -> None:
    admin.service.config = admin.service.config.replace(maxNamespacesPerTenant=1)
    assert (await admin.reason("PUT", N))[0] == 412


async def test_a_namespace_with_topics_stays_unless_forced(admin: Admin) -> None:
    await admin.call("PUT", N)
    await admin.call("PUT", "/admin/v2/persistent/public/n/a")
    assert await admin.reason("DELETE", N) == (409, "Cannot delete non empty namespace")
    assert (await admin.reason("DELETE", N + "?force=true"))[0] == 405
    admin.service.config = admin.service.config.replace(forceDeleteNamespaceAllowed=True)
    assert await admin.status("DELETE", N + "?force=true") == 204
    assert await admin.status("GET", N) == 404


async def cut_short(admin: Admin, name: str, *, max_consumers: int = 0) -> None:
    """Leave what a broker does that stops while it deletes this topic, which is there."""
    topic = TopicName.parse(name)
    schema = {"type": "STRING", "schema": "", "properties": {}}
    await admin.call("PUT", f"/admin/v2/{name.replace('://', '/')}")
    await admin.call("PUT", f"/admin/v2/{name.replace('://', '/')}/subscription/s")
    await admin.call("POST", f"/admin/v2/schemas/{topic.schema_id}/schema", schema)
    if max_consumers:
        await admin.call(
            "POST", f"/admin/v2/{name.replace('://', '/')}/maxConsumers", max_consumers
        )
    await admin.service.topics.unload(topic)
    path = ledger_path(topic.managed_ledger_name)
    found = await admin.service.metadata.get(path)
    assert found is not None
    doomed = replace(decode_ledger_list(found.value), is_being_deleted=True)
    await admin.service.metadata.put(path, encode_ledger_list(doomed))
    admin.service.managed_ledgers.deletions.note(path)  # as the first look at all lists does


async def left(admin: Admin) -> list[str]:
    """The keys of topics and schemas of the namespace."""
    metadata = admin.service.metadata
    paths = ("/managed-ledgers/public/n/persistent", "/schemas/public/n")
    return [f"{path}/{name}" for path in paths for name in await metadata.children(path)]


async def test_nothing_is_left_of_a_namespace_whose_deletion_was_cut_short(admin: Admin) -> None:
    await admin.call("PUT", N)
    await cut_short(admin, "persistent://public/n/a")
    schema = {"type": "STRING", "schema": "", "properties": {}}
    await admin.call("POST", "/admin/v2/schemas/public/n/never-made/schema", schema)
    assert await left(admin) == [
        "/managed-ledgers/public/n/persistent/a",
        "/schemas/public/n/a",
        "/schemas/public/n/never-made",
    ]
    assert await admin.get(N + "/topics") == []
    assert await admin.status("DELETE", N) == 204
    assert await left(admin) == []


async def test_a_deletion_that_was_cut_short_ends_with_the_next_one(admin: Admin) -> None:
    await admin.call("PUT", N)
    await cut_short(admin, "persistent://public/n/a")
    assert await admin.status("DELETE", "/admin/v2/persistent/public/n/a") == 404
    assert await left(admin) == []


@pytest.mark.parametrize("is_asked_for", [False, True])
async def test_a_topic_whose_deletion_was_cut_short_comes_back_without_what_it_had(
    admin: Admin, *, is_asked_for: bool
) -> None:
    await admin.call("PUT", N)
    await cut_short(admin, "persistent://public/n/a", max_consumers=3)
    path = "/admin/v2/persistent/public/n/a"
    if is_asked_for:
        assert await admin.status("PUT", path) == 204
    else:
        name = TopicName.parse("persistent://public/n/a")
        await admin.service.topics.get_or_load(name, create_if_missing=True)
    assert await admin.get(path + "/subscriptions") == []
    assert await admin.status("GET", "/admin/v2/schemas/public/n/a/schema") == 404
    assert (await admin.call("GET", path + "/maxConsumers")).body == b""


async def test_clients_that_connect_while_a_namespace_goes_make_nothing_of_it_again(
    admin: Admin,
) -> None:
    admin.service.config = admin.service.config.replace(forceDeleteNamespaceAllowed=True)
    await admin.call("PUT", N)
    names = [TopicName.parse(f"persistent://public/n/t{number:02}") for number in range(60)]
    for name in names:
        await admin.call("PUT", f"/admin/v2/persistent/public/n/{name.local_name}")
    await admin.call("PUT", "/admin/v2/persistent/public/n/p/partitions", 3)
    names += [TopicName.parse(f"persistent://public/n/p-partition-{index}") for index in range(3)]
    topics = admin.service.topics
    is_over = asyncio.Event()

    async def connect() -> None:
        while not is_over.is_set():
            for name in names:
                with contextlib.suppress(ServiceError):
                    await admin.service.namespaces.lookup(name)
                    await topics.get_or_load(name, create_if_missing=True)
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(connect())
        await asyncio.sleep(0)
        assert await admin.status("DELETE", N + "?force=true") == 204
        is_over.set()
    assert await admin.status("PUT", N) == 204
    assert await admin.get(N + "/topics?mode=ALL&includeSystemTopic=true") == []


async def test_a_deletion_that_was_cut_short_is_finished_by_the_next_one(admin: Admin) -> None:
    admin.service.config = admin.service.config.replace(forceDeleteNamespaceAllowed=True)
    await admin.call("PUT", N)
    await admin.call("PUT", "/admin/v2/persistent/public/n/a")
    namespace = NamespaceName("public", "n")
    await admin.service.resources.namespaces.update(
        namespace, lambda policies: policies.replace(is_deleted=True)
    )
    for path, body in (("b", ...), ("c/partitions", 2)):
        answer = await admin.reason("PUT", f"/admin/v2/persistent/public/n/{path}", body)
        assert answer == (404, "Namespace not found")
    await admin.service.namespaces.lookup(namespace.topic("d"))
    with pytest.raises(TopicNotFoundError):
        await admin.service.topics.get_or_load(namespace.topic("d"), create_if_missing=True)
    with pytest.raises(TopicNotFoundError):
        await admin.service.topics.partitioned.count_or_create(
            namespace.topic("e"), auto_create=True
        )
    assert (await admin.get(N))["deleted"]
    assert (await admin.reason("DELETE", N))[0] == 409
    assert await admin.status("DELETE", N + "?force=true") == 204
    assert await admin.status("GET", N) == 404


async def test_who_deletes_a_namespace_that_is_being_deleted_waits_and_finds_it_gone(
    admin: Admin,
) -> None:
    admin.service.config = admin.service.config.replace(forceDeleteNamespaceAllowed=True)
    await admin.call("PUT", N)
    for number in range(20):
        await admin.call("PUT", f"/admin/v2/persistent/public/n/t{number}")
    answers = await asyncio.gather(*(admin.call("DELETE", N + "?force=true") for _ in range(3)))
    assert [each.status for each in answers] == [204, 404, 404]
    assert b"Namespace public/n does not exist." in answers[1].body
    assert await admin.status("PUT", N) == 204


async def test_topics_are_listed_by_mode(admin: Admin) -> None:
    await admin.call("PUT", N)
    await admin.call("PUT", "/admin/v2/persistent/public/n/a")
    await admin.call("PUT", "/admin/v2/non-persistent/public/n/b")
    stored, loaded = "persistent://public/n/a", "non-persistent://public/n/b"
    assert await admin.get(N + "/topics") == [stored]
    assert await admin.get(N + "/topics?mode=NON_PERSISTENT") == [loaded]
    assert sorted(await admin.get(N + "/topics?mode=ALL")) == [loaded, stored]
    assert await admin.status("GET", N + "/topics?mode=all") == 404
    assert await admin.status("GET", NAMESPACES + "/public/nowhere/topics") == 404


async def test_unloading_closes_the_topics(admin: Admin) -> None:
    await admin.call("PUT", "/admin/v2/persistent/public/default/a")
    name = TopicName.parse("a")
    assert admin.service.topics.loaded(name)
    assert await admin.status("PUT", NAMESPACES + "/public/default/unload") == 204
    assert admin.service.topics.loaded(name) is None
    assert await admin.status("PUT", NAMESPACES + "/public/nowhere/unload") == 404


async def test_one_bundle_can_be_unloaded(admin: Admin) -> None:
    await admin.call("PUT", "/admin/v2/persistent/public/default/a")
    name = TopicName.parse("a")
    bundle = await admin.service.namespaces.bundle_of(name)
    path = f"{NAMESPACES}/public/default/{bundle}"
    assert (await admin.reason("DELETE", path))[0] == 409
    assert await admin.status("PUT", path + "/unload") == 204
    assert admin.service.topics.loaded(name) is None
    wrong = f"{NAMESPACES}/public/default/0x00000000_0x00000001"
    assert await admin.status("PUT", wrong + "/unload") == 412
    assert await admin.reason("DELETE", wrong) == (
        412,
        "Invalid bundle range: 0x00000000_0x00000001",
    )


async def test_a_namespace_is_not_cut_into_more_bundles_than_are_allowed(admin: Admin) -> None:
    def cut(count: int) -> dict[str, object]:
        return {"bundles": {"boundaries": [f"{each:x}" for each in equal_boundaries(count)]}}

    many = "/admin/v2/namespaces/public/many"
    status, reason = await admin.reason("PUT", many, cut(MAX_BUNDLES + 1))
    assert (status, str(MAX_BUNDLES) in reason) == (400, True)
    assert await admin.status("PUT", many, cut(MAX_BUNDLES)) == 204
    assert await admin.status("PUT", many + "2", {"bundles": {"numBundles": 2**31}}) == 400
