"""What is copied belongs together; tests/integration restores it under load."""

from __future__ import annotations

from pathlib import Path

from pulsar_py.embedded_backup import SCRATCH, EmbeddedBackup
from pulsar_py.metadata.sqlite_file import SqliteFile
from pulsar_py.standalone import Broker


async def test_a_broker_in_memory_has_none(tmp_path: Path) -> None:
    async with Broker() as broker:
        assert broker.service.backups is None
        service = broker.service
        assert EmbeddedBackup.of(tmp_path, service.metadata, service.ledger_store) is None


async def test_metadata_ledgers_and_cookie_are_there_and_nothing_is_left(tmp_path: Path) -> None:
    left = tmp_path / "data" / SCRATCH / "metadata.sqlite"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"of an earlier process")
    async with Broker(data_dir=tmp_path / "data") as broker:
        source = broker.service.backups
        assert source is not None
        await broker.service.metadata.put("/there", b"1")
        async with source.opened() as files:
            await broker.service.metadata.put("/later", b"1")
            stored = {file.path: b"".join([part async for part in file.parts()]) for file in files}
        assert not left.parent.exists()
    cookie = (tmp_path / "data" / "ledgers" / "COOKIE").read_bytes()
    assert stored["ledgers/COOKIE"] == cookie
    assert {"metadata.sqlite", "ledgers/MANIFEST"} <= stored.keys()
    path = tmp_path / "copy.sqlite"
    path.write_bytes(stored["metadata.sqlite"])
    copy = SqliteFile(path)
    assert copy.get("/there") is not None
    assert copy.get("/later") is None
    copy.close()
