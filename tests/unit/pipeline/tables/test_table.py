"""Names, partitions and groups of a table's files."""

from __future__ import annotations

from pulsar_py.pipeline.tables.table import (
    TableFile,
    Transaction,
    partition_values,
    small_file_groups,
)


def test_values_of_partitions() -> None:
    path = "d=2026-01-31/k=a%3Ab/n=__HIVE_DEFAULT_PARTITION__/f.parquet"
    assert partition_values(path) == {"d": "2026-01-31", "k": "a:b", "n": None}
    assert partition_values("f.parquet") == {}


def test_names_of_files_tell_their_batch() -> None:
    assert Transaction("q", 7).file_prefix == "q-00000007"


def test_small_files_of_one_partition_make_a_group() -> None:
    files = [
        TableFile("a/1", 40, 1),
        TableFile("b/1", 10, 1),
        TableFile("a/2", 40, 1),
        TableFile("a/3", 40, 1),
        TableFile("a/4", 99, 1),
        TableFile("b/2", 10, 1),
        TableFile("c/1", 10, 1),
    ]
    groups = small_file_groups(files, 100)
    assert [[file.path for file in group] for group in groups] == [["a/1", "a/2"], ["b/1", "b/2"]]
