"""Prometheus' page."""

from __future__ import annotations

import pytest

from pulsar_py.admin.metrics.store_lines import ZOOKEEPER_METRICS
from pulsar_py.common.names import TopicName
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.server.broker_settings import managed_ledger_config
from pulsar_py.standalone import Broker
from pulsar_py.zookeeper.statistics import ZooKeeperCounters
from tests.unit.admin.resources.conftest import Admin
from tests.unit.zookeeper.test_statistics import statistics


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
async def test_both_forms_answer_with_text(admin: Admin, path: str) -> None:
    await admin.call("PUT", "/admin/v2/persistent/public/default/a")
    response = await admin.call("GET", path, accept="text/plain;version=0.0.4")
    assert response.status == 200
    assert (response.content_type or "").startswith("text/plain")
    line = 'pulsar_topics_count{cluster="standalone",namespace="public/default"} 1'
    assert line in response.body.decode().splitlines()


async def test_the_storage_engine_has_its_figures(admin: Admin) -> None:
    response = await admin.call("GET", "/metrics", accept="text/plain")
    lines = response.body.decode().splitlines()
    assert "# TYPE pulsar_py_storage_entry_log_read_bytes_total counter" in lines
    assert 'pulsar_py_storage_writable{cluster="standalone"} 1' in lines


async def test_errors_of_hooks_are_counted(admin: Admin) -> None:
    page = await admin.call("GET", "/metrics", accept="text/plain")
    assert b"pulsar_py_hook_errors_total" not in page.body
    admin.service.hooks.errors.counts["a.Hook.close"] = 3
    page = await admin.call("GET", "/metrics", accept="text/plain")
    line = 'pulsar_py_hook_errors_total{cluster="standalone",hook="a.Hook.close"} 3'
    assert line in page.body.decode().splitlines()


async def test_figures_of_the_stores_parts_bear_their_labels(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        ("bookie_pending_bytes", {"bookie": "b:1"}, 7.0),
        ("bookie_errors_count", {"bookie": "b:1", "code": "EIO"}, 3),
        ("bookie_pending_bytes", {"bookie": "b:2"}, 8.0),
    ]
    store = admin.service.ledger_store
    monkeypatch.setattr(store, "labelled_figures", lambda: found)
    response = await admin.call("GET", "/metrics", accept="text/plain")
    name = "pulsar_py_bookkeeper_bookie_pending_bytes"
    lines = [line for line in response.body.decode().splitlines() if name in line]
    assert lines.pop(0).startswith(f"# HELP {name} ")
    assert lines == [
        f"# TYPE {name} gauge",
        f'{name}{{cluster="standalone",bookie="b:1"}} 7',
        f'{name}{{cluster="standalone",bookie="b:2"}} 8',
    ]


OVER = "pulsar_py_cursor_ranges_over_limit"


async def test_a_cursor_beyond_its_limits_is_shown() -> None:
    async with Broker(config={"managedLedgerMaxUnackedRangesToPersist": 1}) as broker:
        admin = Admin(broker.service)
        name = TopicName.parse('persistent://public/default/a"b')
        service = broker.service
        await service.namespaces.lookup(name)
        ledger = await service.managed_ledgers.open(
            name.managed_ledger_name, managed_ledger_config(service.config)
        )
        cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
        positions = [await ledger.append_and_wait(b"x" * 20) for _ in range(9)]
        before = (await admin.call("GET", "/metrics")).body.decode().splitlines()
        cursor.acknowledge(positions[1::2])
        await cursor.flush()
        after = (await admin.call("GET", "/metrics")).body.decode().splitlines()

    assert [line for line in before if OVER in line][1:] == [f"# TYPE {OVER} gauge"]
    assert (
        f'{OVER}{{cluster="standalone",namespace="public/default",'
        f'topic="persistent://public/default/a\\"b",subscription="sub"}} 3'
    ) in after


async def test_a_metadata_store_on_zookeeper_has_its_figures() -> None:
    counters = ZooKeeperCounters()
    counters.changes.answered(0.002)
    async with Broker() as broker:
        figures = statistics(counters).figures
        broker.service.metadata.labelled_figures = figures  # type: ignore[method-assign]
        page = (await Admin(broker.service).call("GET", "/metrics")).body.decode().splitlines()
    assert 'pulsar_py_zookeeper_connected{cluster="standalone"} 1' in page
    assert page.count("# TYPE pulsar_py_zookeeper_latency_ms histogram") == 1
    labels = 'cluster="standalone",operation="change"'
    assert f'pulsar_py_zookeeper_latency_ms_bucket{{{labels},le="3"}} 1' in page
    assert f"pulsar_py_zookeeper_latency_ms_sum{{{labels}}} 2" in page
    exported = {line.split()[2] for line in page if line.startswith("# TYPE pulsar_py_zookeeper")}
    assert exported == {name for name, _ in ZOOKEEPER_METRICS.values()}


async def test_refused_topics_of_a_cluster_are_counted_by_reason() -> None:
    async with Broker(is_of_cluster=True) as broker:
        assert broker.service.refused_topics is not None
        broker.service.refused_topics.counts["shadow"] += 2
        page = (await Admin(broker.service).call("GET", "/metrics")).body.decode().splitlines()
    name = "pulsar_py_refused_topics_total"
    assert f"# TYPE {name} counter" in page
    assert f'{name}{{cluster="standalone",reason="shadow"}} 2' in page
    assert f'{name}{{cluster="standalone",reason="transactions"}} 0' in page


async def test_a_standalone_broker_refuses_no_topics(admin: Admin) -> None:
    page = (await admin.call("GET", "/metrics")).body.decode()
    assert "pulsar_py_refused_topics_total" not in page
