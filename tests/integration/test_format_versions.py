"""A data directory of another format version is refused at start, and nothing of it is touched."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pulsar_py.common.errors import FormatVersionError
from pulsar_py.standalone import Broker
from tests.data_directory import BEFORE, BEHIND, TOPICS, body, fill, received

RECORDINGS = Path(__file__).parents[1] / "recordings"


def in_manifest(data: Path, version: int) -> Path:
    path = data / "ledgers" / "MANIFEST"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"STORAGE 1 ", b"STORAGE %d " % version, 1))
    return path


def in_journal(data: Path, version: int) -> Path:
    return _in_number(max((data / "ledgers" / "journal").iterdir()), 8, version)


def in_entry_log(data: Path, version: int) -> Path:
    return _in_number(min((data / "ledgers" / "entries").iterdir()), 8, version)


def in_index(data: Path, version: int) -> Path:
    return _in_number(min((data / "ledgers" / "index").iterdir()), -48, version)


def in_metadata(data: Path, version: int) -> Path:
    path = data / "metadata.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    return path


def _in_number(path: Path, at: int, version: int) -> Path:
    content = bytearray(path.read_bytes())
    at %= len(content)
    content[at : at + 4] = version.to_bytes(4, "big")
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a checkpoint and a journal behind it."""
    directory = tmp_path_factory.mktemp("filled")
    asyncio.run(fill(directory / "data", directory / "killed"))
    return directory / "killed"


@pytest.mark.parametrize("version", [0, 4])
@pytest.mark.parametrize("change", [in_manifest, in_journal, in_entry_log, in_index, in_metadata])
def test_each_kind_of_file(
    tmp_path: Path, filled: Path, change: Callable[[Path, int], Path], version: int
) -> None:
    data = tmp_path / "data"
    shutil.copytree(filled, data)
    changed = change(data, version)
    before = contents(data)
    with pytest.raises(FormatVersionError) as refused:
        asyncio.run(Broker(data_dir=data).start())
    assert changed.name in str(refused.value)
    ours = {in_metadata: 2, in_journal: 3}.get(change, 1)
    assert f"version {version}, this pulsar_py reads version {ours}" in str(refused.value)
    after = contents(data)
    if change is not in_metadata:  # which had been opened by then, and the lock taken
        before, after = ledgers_of(before), ledgers_of(after)
    assert after == before


@pytest.mark.parametrize("version", [1, 2])
async def test_a_journal_of_a_former_version_is_replayed_and_goes_on(
    tmp_path: Path, version: int
) -> None:
    """The directory was left by a killed broker that wrote that version."""
    with tarfile.open(RECORDINGS / f"journal_version_{version}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    journal = tmp_path / "data" / "ledgers" / "journal"
    assert (journal / "0000000001").read_bytes()[8:12] == version.to_bytes(4, "big")

    async with Broker(data_dir=tmp_path / "data") as broker:
        for topic in TOPICS:
            expected = [body(topic, number) for number in range(BEFORE + BEHIND)]
            of_sub = [each for n, each in enumerate(expected) if n >= BEFORE or n % 2]
            assert await received(broker, topic, "sub") == of_sub
        assert (journal / "0000000002").read_bytes()[8:12] == (3).to_bytes(4, "big")


def contents(data: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}


def ledgers_of(files: dict[Path, bytes]) -> dict[Path, bytes]:
    return {
        path: data
        for path, data in files.items()
        if "ledgers" in path.parts and path.name != "LOCK"
    }
