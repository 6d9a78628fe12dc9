"""What a support bundle has, and what it does not have."""

from __future__ import annotations

import asyncio
import json
import stat
import tarfile
from pathlib import Path

import pytest

from pulsar_py.admin_client import AdminSettings
from pulsar_py.cli.watching.bundle_jobs import collect, write_bundle
from pulsar_py.client import Client
from pulsar_py.standalone import Broker

SECRET = "a-secret-that-nobody-may-see"


async def test_it_has_what_helps_and_neither_secrets_nor_payloads(tmp_path: Path) -> None:
    config = {"brokerClientAuthenticationParameters": f"token:{SECRET}"}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.log").write_bytes(b"12345")
    async with Broker(config=config) as broker, Client(broker.service_url) as client:
        await client.subscribe("orders", "billing")
        producer = await client.create_producer("orders")
        await producer.send(b"payload-that-nobody-may-see")
        admin = AdminSettings(url=broker.web_service_url)
        files = await asyncio.to_thread(lambda: dict(collect(admin, tmp_path / "data")))
    assert {"README.txt", "settings.json", "symptoms.json", "metrics.txt", "topics.json"} <= set(
        files
    )
    whole = b"\n".join(files.values())
    assert b"that-nobody-may-see" not in whole
    assert "brokerClientAuthenticationParameters" in json.loads(files["settings.json"])
    assert b"pulsar_topics_count" in files["metrics.txt"]
    assert "ledgers" in json.loads(files["internal/00.json"])
    assert files["files.txt"].split() == [b"5", b"a.log"]
    assert "policies" not in files
    assert json.loads(files["namespaces/public-default.json"])


def test_a_broker_that_is_not_there_leaves_its_errors() -> None:
    files = dict(collect(AdminSettings(url="http://127.0.0.1:1", timeout_seconds=5), None))
    assert "127.0.0.1:1" in json.loads(files["settings.json"])["error"]
    assert files["metrics.txt"].startswith(b"error: ")
    assert b"python" in files["process.json"]


def test_an_archive_is_for_its_owner_and_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    assert write_bundle(path, iter([("x/y.txt", b"hello")])) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as archive:
        (entry,) = archive.getmembers()
        found = archive.extractfile(entry)
        assert entry.name == "b/x/y.txt"
        assert found is not None
        assert found.read() == b"hello"
    with pytest.raises(FileExistsError):
        write_bundle(path, iter(()))
