from __future__ import annotations

import json

import pytest

from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats
from pulsar_py.server.load.cluster_rules import ClusterRules
from pulsar_py.testing.clock import VirtualClock

GROUPS = {"t/x": "Apart", "t/y": "apart"}
POLICY = {"p": {"namespaces": ["t/x"], "primary": ["one"], "secondary": []}}


def brokers(**namespaces: list[str]) -> dict[str, BrokerReport]:
    return {
        f"{name}:1": BrokerReport(
            broker_id=f"{name}:1",
            start_millis=1,
            bundles={f"{each}/0x0_0x1": BundleStats() for each in served},
        )
        for name, served in namespaces.items()
    }


async def group_of(namespace: NamespaceName) -> str | None:
    return GROUPS.get(str(namespace))


async def test_a_pattern_that_is_left_out_is_logged(
    virtual_clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryMetadataStore(virtual_clock)
    policy = {"p": {"namespaces": ["t/x", "(?!t).*"], "primary": ["one"], "secondary": []}}
    await store.put(paths.isolation_policies("c"), json.dumps(policy).encode())
    rules = ClusterRules(store, "c", group_of)
    await rules.start()
    assert await rules.allowed("t/x/b", brokers(one=[], two=[])) == ["one:1"]
    (record,) = caplog.records
    assert (record.__dict__["policy"], record.__dict__["pattern"]) == ("p", "(?!t).*")


async def test_rules_follow_what_is_stored(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    rules = ClusterRules(store, "c", group_of)
    await rules.start()
    some = brokers(one=[], two=[])
    assert await rules.allowed("t/x/b", some) == ["one:1", "two:1"]
    assert not await rules.is_bound("t/other/b")
    assert await rules.is_bound("t/x/b")  # by its group
    await store.put(paths.isolation_policies("c"), json.dumps(POLICY).encode())
    await virtual_clock.sleep(0.1)
    assert await rules.allowed("t/x/b", some) == ["one:1"]
    assert await rules.allowed("t/z/b", some) == ["two:1"]
    await store.put(paths.isolation_policies("c"), b"no JSON")
    await virtual_clock.sleep(0.1)
    assert await rules.allowed("t/x/b", some) == ["one:1", "two:1"]
    rules.close()
    await store.close()


async def test_namespaces_of_a_group_are_counted_by_broker(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    await store.put(f"{paths.failure_domains('c')}/east", b'{"brokers":["one:1"]}')
    rules = ClusterRules(store, "c", group_of)
    await rules.start()
    some = brokers(one=["t/x", "t/y", "t/z"], two=["t/y"], three=["t/z"])
    apart = await rules.apart("t/x/new", some, uses_domains=True)
    assert apart is not None
    assert dict(apart.counts) == {"one:1": 2, "two:1": 1, "three:1": 0}
    assert apart.domains == {"east": ["one:1"]}
    plain = await rules.apart("t/x/new", some, uses_domains=False)
    assert plain is not None
    assert not plain.domains
    assert await rules.apart("t/z/new", some, uses_domains=True) is None
    rules.close()
    await store.close()
