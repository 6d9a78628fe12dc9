"""Backfills that repeat the first run, and those that only share its name."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.resuming.first_run import (
    DIRECTORY,
    Run,
    check_notes,
    difference,
    mark_of,
    remember_or_refuse,
)
from pulsar_py.pipeline.tables.table import TableFile

FILES = [TableFile("b", 20, 2), TableFile("a", 10, 1)]
TOPIC = "persistent://public/default/t"
FIRST = Run(
    name="nightly",
    table="parquet:/t",
    topic=TOPIC,
    order="input",
    tasks=8,
    where=None,
    select=None,
    files=mark_of(FILES),
    cut={"spark.x": "1"},
)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (FILES[::-1], None),
        (FILES[:1], "files: 2 of 30 bytes then, 1 of 20 bytes now"),
        ([TableFile("a", 30, 3)], "files: 2 of 30 bytes then, 1 of 30 bytes now"),
        (
            [TableFile("b", 20, 2), TableFile("c", 10, 1)],
            "files: 2 of 30 bytes then, others of that size now",
        ),
    ],
)
def test_files_have_to_be_the_same_in_any_order(files: list[TableFile], told: str | None) -> None:
    assert difference(FIRST, replace(FIRST, files=mark_of(files))) == told


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (replace(FIRST, tasks=4), "tasks: 8 then, 4 now"),
        (replace(FIRST, where="a > 1"), "where: None then, 'a > 1' now"),
        (replace(FIRST, order="columns:a", files=None), "order: 'input' then, 'columns:a' now"),
        (replace(FIRST, cut={"spark.x": "2"}), "spark.x: '1' then, '2' now"),
        (replace(FIRST, cut={"spark.x": "1", "spark.y": "2"}), None),
    ],
)
def test_what_numbers_depend_on_has_to_be_the_same(now: Run, told: str | None) -> None:
    assert difference(FIRST, now) == told


def remember(notes: Path, now: Run, *, is_known: bool = False, is_shared: bool = False) -> Run:
    return remember_or_refuse(
        notes, now, is_known=lambda _: is_known, clock=SystemClock(), is_shared=is_shared
    )


def test_the_first_run_is_remembered(tmp_path: Path) -> None:
    notes = tmp_path / "_backfill"
    for _ in range(2):
        assert remember(notes, FIRST) == FIRST
    (path,) = notes.iterdir()
    with pytest.raises(ConfigurationError, match=r"2 of 30 bytes then, 1 of 20 bytes now") as error:
        remember(notes, replace(FIRST, files=mark_of(FILES[:1])))
    for each in ("'nightly'", "parquet:/t", TOPIC, "--order-by", "--name", str(path)):
        assert each in str(error.value)
    remember(notes, replace(FIRST, files=mark_of(FILES)))


def test_each_name_and_each_topic_has_its_own(tmp_path: Path) -> None:
    remember(tmp_path, FIRST)
    remember(tmp_path, replace(FIRST, name="other", tasks=1))
    remember(tmp_path, replace(FIRST, topic=f"{TOPIC}2", tasks=1))


def test_each_table_has_its_own_key() -> None:
    assert FIRST.key.startswith("nightly-")
    assert FIRST.key == replace(FIRST, order="columns:a", files=None).key
    assert FIRST.key != replace(FIRST, table="parquet:/u").key


def test_a_note_goes_where_its_table_goes(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    first = replace(FIRST, table=f"parquet:{old}")
    remember(old / DIRECTORY, first)
    old.rename(new)
    moved = replace(first, table=f"parquet:{new}")
    assert remember(new / DIRECTORY, moved).key == first.key
    # Under two names at once, as mounts have it.
    old.symlink_to(new)
    assert remember(new / DIRECTORY, moved).key == first.key


def test_a_copied_table_is_another_one(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    remember(old / DIRECTORY, replace(FIRST, table=f"parquet:{old}"))
    shutil.copytree(old, new)
    with pytest.raises(ConfigurationError, match=f"is parquet:{old}, not parquet:{new}:"):
        remember(new / DIRECTORY, replace(FIRST, table=f"parquet:{new}"))
    with pytest.raises(ConfigurationError, match=f"is parquet:{old}, not delta:{old}:"):
        remember(old / DIRECTORY, replace(FIRST, table=f"delta:{old}"))


def test_two_tables_with_shared_notes_need_two_names(tmp_path: Path) -> None:
    remember(tmp_path, FIRST, is_shared=True)
    other = replace(FIRST, table="parquet:/u")
    with pytest.raises(ConfigurationError, match=r"is parquet:/t, not parquet:/u:"):
        remember(tmp_path, other, is_shared=True)
    remember(tmp_path, replace(other, name="other"), is_shared=True)


def test_rows_that_no_note_tells_of_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"note of its first run is missing.*--notes of the first run.*--name",
    ):
        remember(tmp_path, FIRST, is_known=True)
    assert not list(tmp_path.iterdir())
    remember(tmp_path, FIRST)
    remember(tmp_path, FIRST, is_known=True)


def test_rows_that_the_broker_forgot_are_an_error(tmp_path: Path) -> None:
    remember(tmp_path, FIRST)
    (path,) = tmp_path.iterdir()
    os.utime(path, (0, 0))
    remember(tmp_path, FIRST, is_known=True)
    with pytest.raises(ConfigurationError, match=f"InactivityTimeoutMinutes.*delete {path}"):
        remember(tmp_path, FIRST)


def test_notes_of_another_version_are_refused(tmp_path: Path) -> None:
    remember(tmp_path, FIRST)
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 1}))
    with pytest.raises(ConfigurationError, match="version 1, and this pulsar_py reads 2"):
        remember(tmp_path, FIRST)


def test_notes_that_cannot_be_kept_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"No such file .*--notes DIR.*at-least-once"):
        remember(tmp_path / "a" / "b", FIRST)


def test_whether_notes_can_be_kept_is_known_before(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    check_notes(notes, FIRST.file_name)
    assert not list(notes.iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"file: File exists; .*--notes DIR"):
        check_notes(tmp_path / "file", FIRST.file_name)
    # What is there already need not be written.
    remember(notes, FIRST)
    notes.chmod(0o500)
    check_notes(notes, FIRST.file_name)
