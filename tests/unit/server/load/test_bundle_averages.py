from __future__ import annotations

import json

from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.load.averages import UNREPORTED, decode_bundle_data
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats
from pulsar_py.server.load.bundle_averages import BundleAverages
from pulsar_py.testing.clock import VirtualClock

A, B, C = (f"t/n/{name}" for name in "abc")


def reports(millis: int, rate: float, *bundles: str) -> dict[str, BrokerReport]:
    stats = {name: BundleStats(messages_in_rate=rate, bytes_in_rate=rate) for name in bundles}
    report = BrokerReport(broker_id="one:1", start_millis=1, bundles=stats, update_millis=millis)
    return {"one:1": report}


async def test_each_report_is_one_sample(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    averages = BundleAverages(store)
    first = reports(1, 10, A)
    assert averages.rate_of(first["one:1"]) == 10
    assert averages.data_of(A) == UNREPORTED
    assert await averages.take_in(first)
    assert not await averages.take_in(first)
    assert await averages.take_in(reports(2, 30, A, B))
    assert averages.data_of(A).long.messages_rate == 20
    assert averages.rate_of(first["one:1"]) == 50
    await averages.take_in({})
    assert averages.rate_of(first["one:1"]) == 10  # as it reports: it is not known any more
    await store.close()


async def test_the_next_leader_begins_with_what_was_stored(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    averages = BundleAverages(store)
    brokers = reports(1, 10, A, B)
    for millis in range(9):
        await averages.take_in(reports(millis, 10 if millis < 8 else 20, A, B))
    assert await averages.store(brokers, most=1) == 2
    assert await store.get(paths.bundle_data(B)) is None  # the busiest alone, here the first name
    stored = await store.get(paths.bundle_data(A))
    assert stored is not None
    assert decode_bundle_data(stored.value) == averages.data_of(A)
    mean = await store.get(paths.broker_average("one:1"))
    assert mean is not None
    assert json.loads(mean.value)["longTermMsgRateIn"] > 20

    following = BundleAverages(store)
    await following.take_in(reports(99, 10, A))
    assert following.data_of(A).long.samples_count == 10
    await following.forget(A)
    await following.forget(A)
    assert await store.get(paths.bundle_data(A)) is None
    await store.close()


async def test_a_quota_counts_where_nothing_was_stored(virtual_clock: VirtualClock) -> None:
    store = MemoryMetadataStore(virtual_clock)
    await store.put(paths.bundle_quota(C), b'{"msgRateIn":1000.0,"msgRateOut":0}')
    averages = BundleAverages(store)
    await averages.take_in(reports(1, 0, C))
    assert averages.data_of(C).long.messages_rate == 999.0
    await store.close()
