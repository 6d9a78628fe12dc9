"""Files and commits are synced before the log has them."""

# ruff: noqa: E402 - imports stand after what may skip them
from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
deltalake = pytest.importorskip("deltalake")

from pulsar_py.pipeline.tables.attempts import attempt
from pulsar_py.pipeline.tables.delta import DeltaLakeTable
from pulsar_py.pipeline.tables.manifest import ManifestTable
from pulsar_py.pipeline.tables.staging import put_in_place
from pulsar_py.pipeline.tables.table import Commit, TableFile, Transaction
from tests.unit.pipeline.tables.test_schemas import schema


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synced, in order, below the table."""
    found: list[str] = []

    def note(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        found.append(path.relative_to(tmp_path / "table").as_posix())

    monkeypatch.setattr("os.fsync", note)
    monkeypatch.setattr("os.fdatasync", note)
    return found


def place(table: ManifestTable | DeltaLakeTable, value: int, directory: str = "") -> TableFile:
    with attempt(table, "q-0") as own:
        path = own.staging / directory / "part-0.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"a": pa.array([value], pa.int64())}), path)
        (placed,) = put_in_place(own)
        own.is_logged = True
    return placed


def commit(table: ManifestTable | DeltaLakeTable, file: TableFile, batch: int) -> None:
    transaction = Transaction("q", batch)
    assert table.commit(Commit(added=[file], schema=schema(a="long"), transaction=transaction))


def test_files_and_their_directories_come_first(tmp_path: Path, synced: list[str]) -> None:
    table = ManifestTable(tmp_path / "table")
    file = place(table, 1, "b=1/c=2")
    assert synced[0] == file.path
    assert sorted(synced[1:]) == [".", "b=1", "b=1/c=2"]


def test_a_commit_is_durable_when_it_is_told(tmp_path: Path, synced: list[str]) -> None:
    table = ManifestTable(tmp_path / "table")
    file = place(table, 1)
    synced.clear()
    commit(table, file, 0)
    assert synced[0].startswith("_manifest/00000000-")
    assert synced[1:] == ["_manifest", "."]


def test_what_is_merged_is_durable_before_its_sources_go(
    tmp_path: Path, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ManifestTable(tmp_path / "table")
    for batch in range(2):
        commit(table, place(table, batch), batch)
    synced.clear()

    def delete(paths: object) -> None:
        if list(paths):  # type: ignore[call-overload]
            synced.append("deleted")

    monkeypatch.setattr(table, "_delete", delete)
    assert table.compact(1 << 20).files_after == 1
    assert [each for each in synced if each.endswith("parquet") or each == "_manifest"] == [
        table.files()[0].path,
        "_manifest",
    ]
    assert synced[-1] == "deleted"


def test_the_log_of_delta_is_durable_from_its_beginning(tmp_path: Path, synced: list[str]) -> None:
    table = DeltaLakeTable(tmp_path / "table")
    commit(table, place(table, 1), 0)
    assert [each for each in synced if each.endswith(".json")] == [
        f"_delta_log/{version:020}.json" for version in range(2)
    ]
    assert synced[-2:] == ["_delta_log", "."]


@pytest.mark.parametrize("kind", [ManifestTable, DeltaLakeTable])
def test_directories_that_can_not_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[ManifestTable | DeltaLakeTable]
) -> None:
    """As those of some file systems of other machines."""

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr("os.fsync", refuse)
    table = kind(tmp_path / "table")
    commit(table, place(table, 1), 0)
    assert table.last_batch("q") == 0


def test_commits_of_delta_may_go_before_they_are_synced(tmp_path: Path, synced: list[str]) -> None:
    """The package takes them away when it has put them together, as a table may ask for."""
    place(DeltaLakeTable(tmp_path / "table"), 0)
    deltalake.DeltaTable.create(
        tmp_path / "table",
        deltalake.Schema.from_json(json.dumps(schema(a="long"))),
        configuration={
            "delta.logRetentionDuration": "interval 0 seconds",
            "delta.checkpointInterval": "1",
            "delta.enableExpiredLogCleanup": "true",
        },
    )
    table = DeltaLakeTable(tmp_path / "table")
    commit(table, place(table, 1), 0)
    file = place(table, 2)
    synced.clear()
    wider = schema(a="long", b="long")  # a commit of its own, that goes with the next
    assert table.commit(Commit(added=[file], schema=wider, transaction=Transaction("q", 1)))
    assert synced == ["_delta_log/00000000000000000003.json", "_delta_log", "."]
