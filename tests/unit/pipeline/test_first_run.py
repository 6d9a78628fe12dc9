"""What is the same backfill again, and what only has its name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.first_run import Run, difference, mark_of, remember_or_refuse
from pulsar_py.pipeline.tables import TableFile

FILES = [TableFile("b", 20, 2), TableFile("a", 10, 1)]
TOPIC = "persistent://public/default/t"
FIRST = Run(
    name="nightly",
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


def test_the_first_run_is_remembered(tmp_path: Path) -> None:
    notes = tmp_path / "_backfill"
    for _ in range(2):
        remember_or_refuse(notes, FIRST, "parquet:/t")
    (path,) = notes.iterdir()
    with pytest.raises(ConfigurationError, match=r"2 of 30 bytes then, 1 of 20 bytes now") as error:
        remember_or_refuse(notes, replace(FIRST, files=mark_of(FILES[:1])), "parquet:/t")
    for each in ("'nightly'", "parquet:/t", TOPIC, "--order-by", "--name", str(path)):
        assert each in str(error.value)
    remember_or_refuse(notes, replace(FIRST, files=mark_of(FILES)), "parquet:/t")


def test_each_name_and_each_topic_has_its_own(tmp_path: Path) -> None:
    remember_or_refuse(tmp_path, FIRST, "parquet:/t")
    remember_or_refuse(tmp_path, replace(FIRST, name="other", tasks=1), "parquet:/t")
    remember_or_refuse(tmp_path, replace(FIRST, topic=f"{TOPIC}2", tasks=1), "parquet:/t")


def test_notes_of_another_version_are_refused(tmp_path: Path) -> None:
    remember_or_refuse(tmp_path, FIRST, "parquet:/t")
    (path,) = tmp_path.iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    with pytest.raises(ConfigurationError, match="version 2, this pulsar_py reads 1"):
        remember_or_refuse(tmp_path, FIRST, "parquet:/t")


def test_notes_that_cannot_be_kept_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"No such file .*at-least-once"):
        remember_or_refuse(tmp_path / "a" / "b", FIRST, "parquet:/t")
