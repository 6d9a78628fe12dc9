"""Prometheus' page."""

from __future__ import annotations

import pytest

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
