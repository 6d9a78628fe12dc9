"""The page with the OpenAPI document; the types for it are imported for it alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterable

import pytest

from pulsar_py.admin.api import openapi
from pulsar_py.admin.api.openapi import document
from pulsar_py.admin.router import Route
from tests.unit.admin.resources.conftest import Admin

_START = """
import asyncio, sys
from urllib.request import urlopen
from pulsar_py.standalone import Broker

async def main():
    async with Broker() as broker:
        url = f"{broker.web_service_url}/admin/v2/clusters"
        with await asyncio.to_thread(urlopen, url) as answer:
            assert answer.status == 200

asyncio.run(main())
assert "pulsar_py.admin.api.all_routes" in sys.modules
late = [f"pulsar_py.admin.api.{name}" for name in ("openapi", "answers", "statistics_answers")]
print([name for name in late if name in sys.modules])
"""


async def test_the_document_names_all_routes_and_itself(admin: Admin) -> None:
    shown = await admin.get("/admin/openapi.json")
    made = json.loads(json.dumps(document(admin.conformance.routes)))
    assert shown == made
    assert "/admin/openapi.json" in shown["paths"]


async def test_others_are_served_while_it_is_made(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, begun = asyncio.get_running_loop(), asyncio.Event()
    serves, makers = threading.Event(), list[int]()

    def made_late(routes: Iterable[Route]) -> dict[str, object]:
        makers.append(threading.get_ident())
        loop.call_soon_threadsafe(begun.set)
        assert serves.wait(30)
        return document(routes)

    monkeypatch.setattr(openapi, "document", made_late)
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(admin.get("/admin/openapi.json")) for _ in range(3)]
        await begun.wait()
        assert await admin.get("/admin/v2/clusters")
        assert not any(each.done() for each in asking)
        serves.set()
    assert all("/admin/openapi.json" in each.result()["paths"] for each in asking)
    assert len(makers) == 1
    assert makers != [threading.get_ident()]


def test_a_start_of_a_broker_and_a_request_import_none_of_it() -> None:
    started = subprocess.run(
        [sys.executable, "-c", _START], capture_output=True, text=True, check=True, timeout=60
    )
    assert started.stdout.strip() == "[]"
