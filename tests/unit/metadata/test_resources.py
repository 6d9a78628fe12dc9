"""Resources: typed objects over both stores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pulsar_py.common.errors import MetadataExistsError, MetadataNotFoundError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.common.policies import BacklogQuota, BacklogQuotaAction, BacklogQuotaType
from pulsar_py.metadata.documents import (
    ClusterData,
    DynamicConfiguration,
    LocalPolicies,
    NamespacePolicies,
    PartitionedTopicMetadata,
    TenantInfo,
    TopicPolicies,
    equal_boundaries,
)
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.resources import Resources

NAMESPACE = NamespaceName("t", "n")
TOPIC = TopicName.parse("persistent://t/n/a b")


@pytest.fixture
async def local() -> MemoryMetadataStore:
    return MemoryMetadataStore(SystemClock())


@pytest.fixture
async def configuration() -> MemoryMetadataStore:
    return MemoryMetadataStore(SystemClock())


@pytest.fixture
async def resources(
    local: MemoryMetadataStore, configuration: MemoryMetadataStore
) -> AsyncIterator[Resources]:
    made = Resources(local, configuration)
    yield made
    await made.close()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_object_is_created_once(resources: Resources) -> None:
    assert not await resources.tenants.exists("t")
    await resources.tenants.create("t", TenantInfo(admin_roles=("r",)))
    assert await resources.tenants.exists("t")
    with pytest.raises(MetadataExistsError):
        await resources.tenants.create("t", TenantInfo())
    found = await resources.tenants.get("t")
    assert found is not None
    assert found.admin_roles == ("r",)


async def test_an_update_is_seen_at_once_without_waiting(resources: Resources) -> None:
    await resources.tenants.create("t", TenantInfo())
    await resources.tenants.update("t", lambda old: old.replace(admin_roles=("x",)))
    cached = resources.tenants.get_cached("t")
    assert cached is not None
    assert cached.admin_roles == ("x",)


async def test_an_update_of_nothing_is_an_error(resources: Resources) -> None:
    with pytest.raises(MetadataNotFoundError, match="/admin/policies/t"):
        await resources.tenants.update("t", lambda old: old)


async def test_an_update_that_was_overtaken_runs_again(
    resources: Resources, configuration: MemoryMetadataStore
) -> None:
    await resources.tenants.create("t", TenantInfo())
    seen: list[tuple[str, ...] | None] = []

    def change(old: TenantInfo) -> TenantInfo:
        seen.append(old.admin_roles)
        if len(seen) == 1:
            work = configuration.put("/admin/policies/t", b'{"adminRoles":["first"]}')
            with pytest.raises(StopIteration):
                work.send(None)
        return old.replace(allowed_clusters=("c",))

    changed = await resources.tenants.update("t", change)
    assert seen == [None, ("first",)]
    assert changed.admin_roles == ("first",)
    assert changed.allowed_clusters == ("c",)


async def test_concurrent_updates_are_all_in(resources: Resources) -> None:
    await resources.tenants.create("t", TenantInfo(admin_roles=()))
    await asyncio.gather(
        *(
            resources.tenants.update(
                "t",
                lambda old, role=f"r{n}": old.replace(admin_roles=(*(old.admin_roles or ()), role)),  # type: ignore[misc]
            )
            for n in range(5)
        )
    )
    found = await resources.tenants.get("t")
    assert found is not None
    assert sorted(found.admin_roles or ()) == [f"r{n}" for n in range(5)]


async def test_delete_is_seen_at_once_and_may_repeat(resources: Resources) -> None:
    await resources.tenants.create("t", TenantInfo())
    await resources.tenants.delete("t")
    assert resources.tenants.get_cached("t") is None
    await resources.tenants.delete("t")
    await resources.tenants.create("t", TenantInfo())


async def test_clusters_are_listed_without_the_hidden_one(resources: Resources) -> None:
    for name in ("b", "global", "a"):
        await resources.clusters.create(name, ClusterData())
    assert await resources.clusters.list() == ["a", "b"]


async def test_tenants_and_namespaces_share_a_tree(resources: Resources) -> None:
    await resources.tenants.create("t", TenantInfo())
    await resources.namespaces.create_with_bundles(NAMESPACE, NamespacePolicies(), 4)
    assert await resources.tenants.list() == ["t"]
    assert await resources.namespaces.list("t") == [NAMESPACE]
    assert await resources.namespaces.list("missing") == []


async def test_a_namespace_has_policies_in_one_store_and_bundles_in_the_other(
    resources: Resources, local: MemoryMetadataStore, configuration: MemoryMetadataStore
) -> None:
    await resources.namespaces.create_with_bundles(NAMESPACE, NamespacePolicies(), 2)
    assert await configuration.exists("/admin/policies/t/n")
    assert await local.exists("/admin/local-policies/t/n")
    policies = await resources.local_policies.get(NAMESPACE)
    assert policies is not None
    assert policies.boundaries == equal_boundaries(2)
    with pytest.raises(MetadataExistsError):
        await resources.namespaces.create_with_bundles(NAMESPACE, NamespacePolicies(), 2)
    await resources.namespaces.delete(NAMESPACE)
    assert not await configuration.exists("/admin/policies/t/n")
    assert not await local.exists("/admin/local-policies/t/n")


async def test_a_namespace_can_bring_its_own_boundaries(resources: Resources) -> None:
    boundaries = (0, 5, 0xFFFFFFFF)
    await resources.namespaces.create_with_bundles(
        NAMESPACE, NamespacePolicies(boundaries=boundaries), 4
    )
    policies = await resources.local_policies.get(NAMESPACE)
    assert policies is not None
    assert policies.boundaries == boundaries


async def test_local_policies_that_were_there_keep_what_they_say(resources: Resources) -> None:
    await resources.local_policies.create(NAMESPACE, LocalPolicies({"other": 1}))
    await resources.namespaces.create_with_bundles(NAMESPACE, NamespacePolicies(), 1)
    policies = await resources.local_policies.get(NAMESPACE)
    assert policies is not None
    assert policies.json["other"] == 1
    assert policies.boundaries == equal_boundaries(1)


async def test_bundles_that_a_crash_left_are_cut_anew(resources: Resources) -> None:
    """They are of a namespace that is gone, or was never there: both stores say the same then."""
    await resources.local_policies.create(NAMESPACE, LocalPolicies(boundaries=equal_boundaries(8)))
    await resources.namespaces.create_with_bundles(NAMESPACE, NamespacePolicies(), 2)
    policies = await resources.namespaces.get(NAMESPACE)
    assert policies is not None
    assert policies.boundaries == equal_boundaries(2)
    assert await resources.namespaces.bundles_of(NAMESPACE) == equal_boundaries(2)


async def test_policies_that_a_crash_left_alone_say_how_a_namespace_is_cut(
    resources: Resources,
) -> None:
    left = NamespacePolicies(boundaries=equal_boundaries(8))
    await resources.namespaces.create(NAMESPACE, left)
    with pytest.raises(MetadataExistsError):
        await resources.namespaces.create_with_bundles(NAMESPACE, NamespacePolicies(), 2)
    assert await resources.namespaces.bundles_of(NAMESPACE) == equal_boundaries(8)
    local = await resources.local_policies.get(NAMESPACE)
    assert local is not None
    assert local.boundaries == equal_boundaries(8)


async def test_partitioned_topics_are_listed_by_domain(resources: Resources) -> None:
    volatile = TopicName.parse("non-persistent://t/n/v")
    for topic in (TOPIC, volatile):
        await resources.partitioned_topics.create(
            topic, PartitionedTopicMetadata(partitions_count=2)
        )
    assert await resources.partitioned_topics.list(NAMESPACE) == [TOPIC, volatile]
    assert await resources.partitioned_topics.list(NAMESPACE, ["non-persistent"]) == [volatile]


async def test_a_topics_own_policies_are_local_or_global(resources: Resources) -> None:
    await resources.topic_policies.create(TOPIC.partition(1), TopicPolicies(max_producers=1))
    await resources.global_topic_policies.create(TOPIC, TopicPolicies(max_producers=2))
    mine = await resources.topic_policies.get(TOPIC)
    shared = await resources.global_topic_policies.get(TOPIC)
    assert mine is not None
    assert shared is not None
    assert (mine.max_producers, shared.max_producers) == (1, 2)


async def test_watchers_hear_of_their_kind_only(
    resources: Resources, configuration: MemoryMetadataStore
) -> None:
    tenants: list[str] = []
    namespaces: list[tuple[NamespaceName, int | None]] = []
    topics: list[TopicName] = []
    resources.tenants.watch(lambda name, _: tenants.append(name))
    resources.namespaces.watch(
        lambda name, value: namespaces.append((name, value.message_ttl_seconds if value else None))
    )
    resources.partitioned_topics.watch(lambda name, _: topics.append(name))
    await resources.tenants.create("t", TenantInfo())
    await configuration.put("/admin/policies/t/n", b'{"message_ttl_in_seconds":3}')
    await configuration.put("/admin/policies/t/n/too/deep", b"{}")
    await configuration.put("/admin/partitioned-topics/t/n/persistent/a+b", b"{}")
    await configuration.put("/admin/partitioned-topics/t/n", b"{}")
    await settle()
    await configuration.delete_recursive("/admin/policies/t/n/too")
    await resources.namespaces.delete(NAMESPACE)
    await settle()
    assert tenants == ["t"]
    assert namespaces == [(NAMESPACE, 3), (NAMESPACE, None)]
    assert topics == [TOPIC]


async def test_dynamic_configuration_is_one_object(resources: Resources) -> None:
    await resources.dynamic_configuration.update_or_create(
        "", lambda old: DynamicConfiguration({**(old.json if old else {}), "maxTenants": "3"})
    )
    found = await resources.dynamic_configuration.get("")
    assert found is not None
    assert found.texts == {"maxTenants": "3"}


async def test_topics_with_policies_are_listed(
    resources: Resources, configuration: MemoryMetadataStore
) -> None:
    volatile = TopicName.parse("non-persistent://t/n/a")
    for topic in (TOPIC, volatile, TopicName.parse("persistent://t/other/a")):
        await resources.global_topic_policies.create(topic, TopicPolicies(max_producers=1))
    shared = resources.global_topic_policies
    assert sorted(map(str, await shared.list(NAMESPACE))) == sorted([str(TOPIC), str(volatile)])
    assert await resources.topic_policies.list(NAMESPACE) == []
    stored = await configuration.get("/admin/topic-policies/global/t/n/persistent/a+b")
    assert stored is not None
    assert await shared.modified_millis(TOPIC) == stored.modified_millis
    assert await resources.topic_policies.modified_millis(TOPIC) == 0


async def test_policies_of_one_cluster_count_before_those_of_all(resources: Resources) -> None:
    assert await resources.policies_of_topic(TOPIC) is None
    size = BacklogQuota(100, -1, BacklogQuotaAction.PRODUCER_EXCEPTION)
    age = BacklogQuota(-1, 10, BacklogQuotaAction.PRODUCER_EXCEPTION)
    of_all = TopicPolicies(
        max_producers=2,
        max_consumers=2,
        backlog_quotas={BacklogQuotaType.MESSAGE_AGE: age},
        subscription_policies={"a": {"dispatchRate": 1}, "b": {"dispatchRate": 2}},
    )
    await resources.global_topic_policies.create(TOPIC, of_all)
    assert await resources.policies_of_topic(TOPIC.partition(1)) == of_all
    own = TopicPolicies(
        max_producers=1,
        backlog_quotas={BacklogQuotaType.DESTINATION_STORAGE: size},
        subscription_policies={"b": {"dispatchRate": 3}},
    )
    await resources.topic_policies.create(TOPIC, own)
    found = await resources.policies_of_topic(TOPIC)
    assert found is not None
    assert (found.max_producers, found.max_consumers) == (1, 2)
    assert found.backlog_quotas == {
        BacklogQuotaType.MESSAGE_AGE: age,
        BacklogQuotaType.DESTINATION_STORAGE: size,
    }
    assert found.subscription_policies == {"a": {"dispatchRate": 1}, "b": {"dispatchRate": 3}}
