"""The page that load balancers ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.standalone import Broker
from tests.unit.admin.resources.conftest import Admin


@pytest.mark.setting("statusFilePath")
async def test_the_page_is_there_while_the_file_is(tmp_path: Path) -> None:
    file = tmp_path / "in-rotation"
    async with Broker(config={"statusFilePath": str(file)}) as broker:
        admin = Admin(broker.service)
        assert await admin.status("GET", "/status.html") == 404
        file.touch()
        answer = await admin.call("GET", "/status.html")
        assert (answer.status, answer.body) == (200, b"OK")
        file.unlink()
        assert await admin.status("GET", "/status.html") == 404


async def test_without_a_file_there_is_no_page(admin: Admin) -> None:
    assert await admin.status("GET", "/status.html") == 404
