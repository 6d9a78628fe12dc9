"""Settings that may be changed while a broker runs: a change takes effect as if made before."""

from __future__ import annotations

import asyncio
import json
import logging
from enum import Enum
from typing import Any

import pytest

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.app import AdminApp
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.metadata.documents import DynamicConfiguration
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.settings.declaring import Setting, Value
from pulsar_py.server.settings.load import LoadSettings
from pulsar_py.server.topics.topic_loads import TopicLoads
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.dispatch_parts import FakeConnection, settle
from tests.unit.server.topics.rig import Rig, name_of, send
from tests.unit.settings.parts import broker, connect, dispatching
from tests.unit.settings.test_connections import lookup
from tests.unit.settings.test_managed_ledger import cached_bytes, caching

READ_WHEN_NEEDED = {
    "brokerDeleteInactivePartitionedTopicMetadataEnabled",
    "brokerServiceCompactionPhaseOneLoopTimeInSeconds",
    "brokerShutdownTimeoutMs",
    "defaultNumberOfNamespaceBundles",
    "forceDeleteNamespaceAllowed",
    "forceDeleteTenantAllowed",
    "maxNamespacesPerTenant",
    "maxTenants",
    "superUserRoles",
    "topicCompactionMaxMemoryMB",
    "topicCompactionRetainNullKey",
    "defaultNamespaceBundleSplitAlgorithm",
    *LoadSettings.declared(),
}
"""Those that no component holds: each has a test of its own, below or in those of compaction and
of load balancing."""

NOTHING_PASSES = "tests.hook_classes.NothingPasses"

DYNAMIC = sorted(
    name for name, declaration in BrokerConfig.declared().items() if declaration.is_dynamic
)


async def change(rig: Rig, **texts: object) -> None:
    """Change settings of all brokers, as an administrator does."""
    documents = rig.broker.resources.dynamic_configuration
    changed = DynamicConfiguration({name: str(value) for name, value in texts.items()})
    await documents.update_or_create("", lambda _: changed)
    await rig.clock.sleep(0.01)


def other_value(declaration: Setting) -> Value:
    """Some value that the setting can have and does not."""
    default = declaration.default
    if isinstance(default, bool):
        return not default
    if isinstance(default, Enum):
        return next(member for member in type(default) if member is not default)
    if isinstance(default, frozenset):
        return frozenset({"Shared"})
    if isinstance(default, tuple | str):
        return (NOTHING_PASSES,) if isinstance(default, tuple) else "other"
    if isinstance(default, float):
        return default / 2
    return default + 8 if isinstance(default, int) else 7


def in_force(rig: Rig) -> list[Any]:
    """What the components of a broker go by, and its one topic."""
    running = rig.broker
    cache = running.managed_ledgers.cache_manager
    (topic,) = running.topics.topics.values()
    return [
        running.config,
        running.topics.settings,
        running.connections.settings,
        (cache.budget_bytes, cache.watermark, cache.max_age_seconds),
        running.maintenance.intervals,
        running.hooks.filters.settings,
        topic.settings,
    ]


@pytest.mark.parametrize("name", DYNAMIC)
async def test_a_change_does_what_the_file_does(virtual_clock: VirtualClock, name: str) -> None:
    declaration = BrokerConfig.declared()[name]
    value = other_value(declaration)
    async with broker(virtual_clock) as rig:
        await rig.topic("t")
        before = in_force(rig)
        await change(rig, **{name: declaration.render(value)})
        changed = in_force(rig)
        await rig.broker.resources.dynamic_configuration.delete("")
        await rig.clock.sleep(0.01)
        assert in_force(rig) == before
    async with broker(virtual_clock, **{name: value}) as rig:
        await rig.broker.topics.create_topic(name_of("t"))
        await rig.topic("t")
        assert changed == in_force(rig)
    assert (changed[1:] == before[1:]) == (name in READ_WHEN_NEEDED)


async def test_others_are_not_changed(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock) as rig:
        await change(rig, maxProducersPerTopic=1, maxTenants=2)
        assert (rig.broker.config.maxProducersPerTopic, rig.broker.config.maxTenants) == (0, 2)


# What components do with it.


async def test_the_cache_shrinks(virtual_clock: VirtualClock) -> None:
    async with caching(virtual_clock) as rig:
        assert cached_bytes(rig) > 1024 * 1024
        await change(rig, managedLedgerCacheSizeMB=1, managedLedgerCacheEvictionWatermark=0.5)
        assert 0 < cached_bytes(rig) <= 512 * 1024
        await change(rig, managedLedgerCacheEvictionTimeThresholdMillis=100)
        await rig.clock.sleep(0.2)
        assert cached_bytes(rig) == 0


async def test_lookups_are_refused_sooner(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock) as rig:
        client = await connect(rig)
        await change(rig, maxConcurrentLookupRequest=1)
        client.sends(lookup(1), lookup(2))
        await rig.clock.sleep(0.1)
        assert sorted(bool(each.error) for each in await client.receives()) == [False, True]


async def test_topics_are_looked_at_more_often(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock) as rig:
        await change(rig, brokerDeleteInactiveTopicsFrequencySeconds=10)
        await rig.topic("t")
        await rig.clock.sleep(25)
        assert not rig.broker.topics.topics


async def test_reads_of_running_dispatchers_get_smaller(virtual_clock: VirtualClock) -> None:
    async with dispatching(virtual_clock) as topic:
        connection = FakeConnection(is_writable=False)
        await topic.consume(permits=10, connection=connection)
        topic.set(max_read_batch_entries=1)
        (await topic.subscription()).on_settings_changed()
        await topic.publish_many(3)
        connection.become_writable()
        await settle()
        assert connection.writes_count == 3


async def test_more_and_fewer_topics_are_loaded_at_a_time(virtual_clock: VirtualClock) -> None:
    tasks = TaskOwner("test")
    loads = TopicLoads(tasks, timeout_seconds=100, max_concurrent_loads=2)
    begun: list[str] = []

    async def load(name: str) -> Any:
        async def run() -> Any:
            begun.append(name)
            await virtual_clock.sleep(1)
            return None

        return await loads.load(name, run)

    async with asyncio.TaskGroup() as group:
        for name in "abcdefgh":
            group.create_task(load(name))
        await virtual_clock.sleep(0.5)
        assert "".join(begun) == "ab"
        loads.set_max_concurrent_loads(3)
        await virtual_clock.sleep(0)
        assert "".join(begun) == "abc"
        loads.set_max_concurrent_loads(1)
        await virtual_clock.sleep(0.7)  # Two of three have ended.
        assert "".join(begun) == "abc"
        await virtual_clock.sleep(1)
        assert "".join(begun) == "abcd"
    assert "".join(begun) == "abcdefgh"
    await tasks.close()


async def test_loads_that_wait_end_with_the_broker(virtual_clock: VirtualClock) -> None:
    tasks, waiting = TaskOwner("test"), TaskOwner("waiting")
    loads = TopicLoads(waiting, timeout_seconds=100, max_concurrent_loads=1)

    async def run() -> Any:
        await virtual_clock.sleep(1)

    for name in "ab":
        tasks.spawn(loads.load(name, run), name)
    await virtual_clock.sleep(0.5)
    await waiting.close()
    await tasks.close()
    assert not loads.is_loading("a")
    assert not loads.is_loading("b")


# What is read when it is needed.


async def ask(rig: Rig, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Status and parsed body of an administrator's request."""
    app = AdminApp(all_routes(rig.broker))
    data = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    answer = await app.handle(method, f"/admin/v2{path}", headers, data)
    return answer.status, json.loads(answer.body) if answer.body.startswith(b"{") else None


async def test_bundles_of_new_namespaces(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock) as rig:
        await change(rig, defaultNumberOfNamespaceBundles=2)
        assert (await ask(rig, "PUT", "/namespaces/public/n"))[0] == 204
        _, bundles = await ask(rig, "GET", "/namespaces/public/n/bundles")
        assert bundles["numBundles"] == 2


async def test_most_tenants_and_namespaces(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock) as rig:
        await change(rig, maxTenants=1, maxNamespacesPerTenant=1)
        tenant = {"allowedClusters": ["standalone"]}
        assert (await ask(rig, "PUT", "/tenants/third", tenant))[0] == 412
        assert (await ask(rig, "PUT", "/namespaces/public/n"))[0] == 412


async def test_deletions_by_force(virtual_clock: VirtualClock) -> None:
    async with broker(virtual_clock) as rig:
        await ask(rig, "PUT", "/namespaces/public/n")
        await ask(rig, "PUT", "/tenants/t", {"allowedClusters": ["standalone"]})
        paths = ("/namespaces/public/n?force=true", "/tenants/t?force=true")
        assert [(await ask(rig, "DELETE", path))[0] for path in paths] == [405, 405]
        await change(rig, forceDeleteNamespaceAllowed="true", forceDeleteTenantAllowed="true")
        assert [(await ask(rig, "DELETE", path))[0] for path in paths] == [204, 204]


async def test_the_metadata_of_partitioned_topics_goes(virtual_clock: VirtualClock) -> None:
    settings = {"brokerDeleteInactiveTopicsFrequencySeconds": 10}
    async with broker(virtual_clock, **settings) as rig:
        await change(rig, brokerDeleteInactivePartitionedTopicMetadataEnabled="true")
        await rig.broker.topics.partitioned.create(name_of("p"), 1)
        await rig.topic("p-partition-0")
        await rig.clock.sleep(25)
        assert await rig.broker.topics.partitioned.count(name_of("p")) == 0


async def test_how_long_a_stop_may_take(
    virtual_clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = SimulatedLedgerStore()
    async with broker(virtual_clock, ledgers=store) as rig:
        await change(rig, brokerShutdownTimeoutMs=5000)
        topic = await rig.persistent()
        producer = await rig.producer(topic, rig.cnx())
        store.is_holding = True
        send(producer, 0)
        virtual_clock.call_later(20, store.release)
        with caplog.at_level(logging.WARNING):
            await rig.broker.close()
        assert "topics did not close in time" in caplog.text
