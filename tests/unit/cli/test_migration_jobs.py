"""The whole way, in and out again, of a directory that has one of everything."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.cli import migration_jobs as jobs
from pulsar_py.cli.places import ClusterClients
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import ConfigurationError, MigrationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.metadata import paths
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.move_progress import PATH, MoveProgress
from pulsar_py.standalone import Broker
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.shared.settings import BookieSettings
from tests.migration_parts import Listener
from tests.stored_state import SETTINGS, check, fill

OPTIONS: Mapping[str, Any] = {  # Any: each option has its own type
    "is_renumbered": False,
    "existing": "refuse",
    "source_cluster": None,
    "as_cluster": "standalone",
    "output": "text",
}


class LastingBookie(Bookie):
    """A bookie that a client's end leaves as it is."""

    async def close(self) -> None:
        """It is in memory."""


class Cluster:
    """A cluster in memory, initialized, in place of the one that options name."""

    def __init__(self) -> None:
        self.metadata = MemoryMetadataStore(SystemClock())
        self.store: LastingBookie | None = None

    async def initialize(self, ledgers_count: int = 0) -> None:
        ids = MetadataLedgerIds(self.metadata)
        store = await LastingBookie.start(
            MemoryDisk(),
            clock=SystemClock(),
            ledger_ids=ids,
            settings=BookieSettings(is_volatile=True),
        )
        assert isinstance(store, LastingBookie)
        self.store = store
        for _ in range(ledgers_count):
            await store.create(Listener(), LedgerOptions())
        await self.metadata.put(paths.cluster("large"), b"{}")
        await self.metadata.put("/admin/policies/public", b'{"allowedClusters":["large"]}')

    @asynccontextmanager
    async def connected(self, options: Mapping[str, Any]) -> AsyncIterator[ClusterClients]:
        del options
        store = self.store
        assert store is not None

        async def open_ledgers() -> LastingBookie:
            return store

        yield ClusterClients(
            metadata=MetadataStores(local=self.metadata, configuration=self.metadata),
            bookkeeper_metadata=self.metadata,
            ledgers_root="/ledgers",
            clock=SystemClock(),
            open_ledgers=open_ledgers,
            cluster="large",
            address="zk:nowhere",
        )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`stopped` and `killed` in it are directories of a broker."""
    top = tmp_path_factory.mktemp("filled")
    asyncio.run(fill(top / "stopped", top / "killed"))
    return top


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(jobs, "connected", made.connected)
    return made


def digests(top: Path) -> dict[str, str]:
    return {
        str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in top.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("state", "is_renumbered"), [("stopped", False), ("killed", False), ("killed", True)]
)
async def test_into_a_cluster_and_back(
    filled: Path,
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    state: str,
    *,
    is_renumbered: bool,
) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    shutil.copytree(filled / state, source)
    before = digests(source)
    await cluster.initialize(5 if is_renumbered else 0)
    existing = "replace" if is_renumbered else "refuse"
    options = {**OPTIONS, "is_renumbered": is_renumbered, "existing": existing}

    assert await jobs.move_in(source, options, is_dry_run=False) == 0

    printed = capsys.readouterr().out
    assert "cluster: large, in place of standalone\n" in printed
    assert ("message ids that programs have kept" in printed) is is_renumbered
    after = digests(source)
    assert after.pop("MIGRATED")
    assert after == before
    with pytest.raises(MigrationError, match="was moved into cluster large"):
        await Broker(data_dir=source).start()
    assert await jobs.export(back, OPTIONS, is_dry_run=False) == 0
    async with Broker(data_dir=back, config=SETTINGS) as broker:
        await check(broker)


async def test_a_dry_run_writes_nothing(
    filled: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    await cluster.initialize()
    before = digests(filled / "killed")

    assert await jobs.move_in(filled / "killed", OPTIONS, is_dry_run=True) == 0
    assert await jobs.export(tmp_path / "back", OPTIONS, is_dry_run=True) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "ledgers of compacted topics: 1" in lines
    assert any(line.startswith("ids are kept; new ledgers get ids from ") for line in lines)
    assert "replaced there: /admin/policies/public" in lines
    assert digests(filled / "killed") == before
    assert await cluster.metadata.get(PATH) is None
    assert not (tmp_path / "back").exists()
    assert cluster.store is not None
    assert [page async for page in cluster.store.list_ledgers()] == []


async def test_a_refusal_says_why_and_ends_with_one(
    filled: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.initialize(ledgers_count=1)
    assert await jobs.move_in(filled / "stopped", OPTIONS, is_dry_run=False) == 1
    assert "refused: zk:nowhere has ledgers already" in capsys.readouterr().out
    assert not (filled / "stopped" / "MIGRATED").exists()


async def test_a_cluster_that_is_not_initialized_is_refused(filled: Path, cluster: Cluster) -> None:
    await cluster.initialize()
    await cluster.metadata.delete(paths.cluster("large"))
    with pytest.raises(MigrationError, match="there is no cluster large at zk:nowhere"):
        await jobs.move_in(filled / "stopped", OPTIONS, is_dry_run=False)


async def test_released_a_broker_starts_again(
    filled: Path, cluster: Cluster, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    shutil.copytree(filled / "stopped", source)
    await cluster.initialize()
    await jobs.move_in(source, OPTIONS, is_dry_run=False)

    assert await jobs.release(source) == 0

    async with Broker(data_dir=source, config=SETTINGS) as broker:
        await check(broker)
    with pytest.raises(ConfigurationError, match="nothing keeps a broker"):
        await jobs.release(source)


async def test_damage_is_not_moved(filled: Path, cluster: Cluster, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(filled / "stopped", source)
    await cluster.initialize()
    log = next((source / "ledgers" / "entries").iterdir())
    log.write_bytes(log.read_bytes()[:100])
    with pytest.raises(MigrationError, match="storage verify"):
        await jobs.move_in(source, OPTIONS, is_dry_run=False)


async def test_an_export_needs_a_directory_of_its_own(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.initialize()
    (tmp_path / "note").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not empty"):
        await jobs.export(tmp_path, OPTIONS, is_dry_run=False)
    used = tmp_path / "used"
    async with Broker(data_dir=used):
        pass
    with pytest.raises(ConfigurationError, match="is a broker's already"):
        await jobs.export(used, OPTIONS, is_dry_run=False)


async def test_no_broker_starts_where_an_export_has_not_ended(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.initialize()
    back = tmp_path / "back"
    with monkeypatch.context() as changed:
        changed.setattr(jobs.Mover, "_write_keys", _interrupted)
        with pytest.raises(OSError, match="interrupted"):
            await jobs.export(back, OPTIONS, is_dry_run=False)
    with pytest.raises(MigrationError, match="has not ended"):
        await Broker(data_dir=back).start()
    assert await jobs.export(back, OPTIONS, is_dry_run=False) == 0
    async with Broker(data_dir=back):
        pass


async def _interrupted(*_: object) -> None:
    raise OSError("interrupted")


async def test_a_cluster_that_something_is_moved_into_is_not_exported(
    cluster: Cluster, tmp_path: Path
) -> None:
    await cluster.initialize()
    progress = MoveProgress(source="other", fingerprint="", cluster="c")
    await cluster.metadata.put(PATH, progress.encode())
    with pytest.raises(MigrationError, match="moving instance other"):
        await jobs.export(tmp_path / "back", OPTIONS, is_dry_run=False)
