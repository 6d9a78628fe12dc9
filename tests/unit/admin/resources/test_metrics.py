"""Prometheus' page."""

from __future__ import annotations

import pytest

from pulsar_py.common.names import TopicName
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.server.broker import managed_ledger_config
from pulsar_py.standalone import Broker
from tests.unit.admin.resources.conftest import Admin


@pytest.mark.parametrize("path", ["/metrics", "/metrics/"])
async def test_both_forms_answer_with_text(admin: Admin, path: str) -> None:
    await admin.call("PUT", "/admin/v2/persistent/public/default/a")
    response = await admin.call("GET", path, accept="text/plain;version=0.0.4")
    assert response.status == 200
    assert (response.content_type or "").startswith("text/plain")
    assert 'pulsar_topics_count{cluster="standalone"} 1' in response.body.decode().splitlines()


async def test_the_storage_engine_has_its_figures(admin: Admin) -> None:
    response = await admin.call("GET", "/metrics", accept="text/plain")
    lines = response.body.decode().splitlines()
    assert "# TYPE pulsar_py_storage_entry_log_read_bytes_total counter" in lines
    assert 'pulsar_py_storage_writable{cluster="standalone"} 1' in lines


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
        ledger = await service.managed_ledgers.open(
            name.managed_ledger_name, managed_ledger_config(service.config)
        )
        cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
        positions = [await ledger.append_and_wait(b"x" * 20) for _ in range(9)]
        before = (await admin.call("GET", "/metrics")).body.decode().splitlines()
        cursor.acknowledge(positions[1::2])
        await cursor.flush()
        after = (await admin.call("GET", "/metrics")).body.decode().splitlines()

    assert [line for line in before if OVER in line] == [f"# TYPE {OVER} gauge"]
    assert (
        f'{OVER}{{cluster="standalone",namespace="public/default",'
        f'topic="persistent://public/default/a\\"b",subscription="sub"}} 3'
    ) in after
