"""Rates between two looks, and connections."""

from __future__ import annotations

from pulsar_py.admin.metrics.broker_lines import CounterRates
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.unit.admin.metrics.metric_pages import page_text, parsed
from tests.unit.settings.parts import broker, connect


def test_a_rate_is_the_mean_of_the_last_whole_window() -> None:
    rates = CounterRates(60)
    assert rates.rates(0, {"a": 5}) == {"a": 0}
    assert rates.rates(10, {"a": 25}) == {"a": 2}
    assert rates.rates(60, {"a": 125}) == {"a": 2}
    assert rates.rates(61, {"a": 1000}) == {"a": 2}
    assert rates.rates(120, {"a": 1325}) == {"a": 20}
    assert rates.rates(120, {"a": 1325}) == {"a": 20}


def test_connections_are_counted() -> None:
    async def run() -> dict[str, float]:
        async with broker(VirtualClock()) as rig:
            clients = [await connect(rig) for _ in range(3)]
            clients[0].cnx.connection_lost(None)
            metrics = parsed(await page_text(rig.broker))
            for each in clients[1:]:
                each.cnx.connection_lost(None)
            return {
                name: next(iter(lines.values()))
                for name, lines in metrics.items()
                if "connection" in name
            }

    assert run_virtual(run()) == {
        "pulsar_active_connections": 2,
        "pulsar_connection_created_total_count": 3,
        "pulsar_connection_create_success_count": 3,
        "pulsar_connection_create_fail_count": 0,
        "pulsar_connection_closed_total_count": 1,
        "pulsar_broker_throttled_connections": 0,
    }
