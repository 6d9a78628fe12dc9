"""The journal's histogram, on a disk that needs a known time."""

from __future__ import annotations

from pulsar_py.admin.metrics.store_lines import JOURNAL_METRICS, store_lines
from pulsar_py.common.names import TopicName
from pulsar_py.server.broker_settings import managed_ledger_config
from pulsar_py.standalone import Broker
from tests.unit.admin.metrics.metric_pages import parsed


async def test_the_journal_counts_each_group_once() -> None:
    async with Broker() as broker:
        service = broker.service
        name = TopicName.parse("persistent://public/default/a")
        await service.namespaces.lookup(name)
        writer = await service.managed_ledgers.open(
            name.managed_ledger_name, managed_ledger_config(service.config)
        )
        for _ in range(5):
            await writer.append_and_wait(b"x")
        metrics = parsed("".join(store_lines(service, "c")))
        histogram = JOURNAL_METRICS["journal_write_seconds"][0]
        groups = metrics["pulsar_py_storage_journal_groups_total"][(("cluster", "c"),)]
    assert groups >= 5
    assert metrics[f"{histogram}_count"] == {(("cluster", "c"),): groups}
    assert metrics[f"{histogram}_bucket"][(("cluster", "c"), ("le", "+Inf"))] == groups
