"""The page with the OpenAPI document; the types for it are imported for it alone."""

from __future__ import annotations

import json
import subprocess
import sys

from pulsar_py.admin.api.openapi import document
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


def test_a_start_of_a_broker_and_a_request_import_none_of_it() -> None:
    started = subprocess.run(
        [sys.executable, "-c", _START], capture_output=True, text=True, check=True, timeout=60
    )
    assert started.stdout.strip() == "[]"
