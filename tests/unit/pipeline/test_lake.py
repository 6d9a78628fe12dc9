"""Targets, sizes of files and snapshots; tests/spark/test_pipelines.py writes tables."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.lake import (
    LakeSettings,
    LakeWriter,
    Snapshot,
    _written_schema,
    open_table,
    rows_of_a_file,
    snapshot_of,
)
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.tables.manifest import ManifestTable
from pulsar_py.pipeline.tables.places import Target
from pulsar_py.pipeline.tables.table import TableConflictError, TableFile


def test_tables_of_each_format(tmp_path: Path) -> None:
    assert isinstance(open_table(Target.parse(f"parquet:{tmp_path}")), ManifestTable)
    pytest.importorskip("deltalake")
    assert open_table(Target.parse(f"delta:{tmp_path}")).last_batch("q") is None


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        ([], 0),
        ([TableFile("a", 1000, 100), TableFile("b", 1000, 100)], 50),
        ([TableFile("a", 100_000, 1)], 1),
    ],
)
def test_rows_of_a_file(files: list[TableFile], rows: int) -> None:
    assert rows_of_a_file(files, 500) == rows


def test_files_of_a_directory_without_a_log(tmp_path: Path) -> None:
    for name in ("b.parquet", "a=1/a.parquet", "_c=1/a.parquet", "_x/a.parquet", ".a.parquet", "d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1234")
    found = snapshot_of(Target.parse(f"parquet:{tmp_path}")).files
    assert found == [
        TableFile(path, 4, 0) for path in ("_c=1/a.parquet", "a=1/a.parquet", "b.parquet")
    ]


def test_a_table_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no table"):
        snapshot_of(Target.parse(f"parquet:{tmp_path}"))


def test_a_file_that_is_merged_while_the_table_is_read(tmp_path: Path) -> None:
    target = Target.parse(f"parquet:{tmp_path}")
    snapshot = Snapshot(target, [TableFile("a.parquet", 1, 1)], {"type": "struct", "fields": []})
    with pytest.raises(TableConflictError, match=f"{target}: a.parquet was merged or replaced"):
        _written_schema(snapshot)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "Error writing bytes to file"),
        OSError("Generic LocalFileSystem error: No space left on device (os error 28)"),
    ],
)
def test_small_files_stay_where_there_is_no_room_to_merge_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: OSError,
) -> None:
    writer = LakeWriter(LakeSettings(target=Target.parse(f"parquet:{tmp_path}")), Watch())

    def fail(_table: ManifestTable, _target_bytes: int) -> None:
        raise error

    monkeypatch.setattr(ManifestTable, "compact", fail)
    writer.compact()
    assert [each.message for each in caplog.records] == ["small files are not merged"]
    error = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output"):
        writer.compact()
