"""Checkpoints that fit a table or the options, and those that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.resuming.checkpoints import (
    NOTE,
    Batches,
    batches_in,
    check_query,
    check_table,
)


class Table:
    """One whose log has batches of the query `q` up to a number."""

    path = Path("/table")

    def __init__(self, last: int | None) -> None:
        self._last = last

    def last_batch(self, application: str) -> int | None:
        assert application == "q"
        return self._last


def checkpoint(directory: Path, *, planned: int, done: int) -> str:
    (directory / "metadata").write_text(json.dumps({"id": "q"}))
    for name, newest in (("offsets", planned), ("commits", done)):
        (directory / name).mkdir()
        (directory / name / ".0.crc").touch()
        for batch in range(newest + 1):
            (directory / name / str(batch)).touch()
    return str(directory)


def test_how_far_a_query_has_come(tmp_path: Path) -> None:
    assert batches_in(tmp_path) is None
    checkpoint(tmp_path, planned=11, done=10)
    found = batches_in(tmp_path)
    assert found == Batches("q", 11, 10)
    assert found.is_midway


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    metadata = tmp_path / "metadata"
    metadata.touch()
    assert batches_in(metadata) is None
    with pytest.raises(
        ConfigurationError, match=f"{metadata} is damaged: it does not name its query"
    ):
        batches_in(tmp_path)
    metadata.unlink()
    metadata.mkdir()
    with pytest.raises(ConfigurationError, match=f"checkpoint: {tmp_path}: Is a directory"):
        batches_in(tmp_path)


@pytest.mark.parametrize(
    ("planned", "done", "last"),
    [(-1, -1, None), (0, -1, None), (0, -1, 0), (0, 0, 0), (5, 4, 4), (5, 4, 5), (5, 5, 5)],
)
def test_tables_that_go_with_a_checkpoint(
    tmp_path: Path, planned: int, done: int, last: int | None
) -> None:
    check_table(checkpoint(tmp_path, planned=planned, done=done), Table(last))


@pytest.mark.parametrize(
    ("planned", "done", "last", "text"),
    [
        (
            5,
            4,
            None,
            "up to 4, and /table has none of its batches: the checkpoint belongs to another table",
        ),
        (5, 4, 3, "up to 4, and /table has its batches up to 3"),
        (5, 5, 6, "has come to batch 5, and /table has its batches up to 6"),
        (-1, -1, 0, "has come to none, and /table has its batches up to 0"),
    ],
)
def test_tables_that_do_not(
    tmp_path: Path, planned: int, done: int, last: int | None, text: str
) -> None:
    place = f"file:{checkpoint(tmp_path, planned=planned, done=done)}"
    with pytest.raises(ConfigurationError, match=f"^checkpoint {place}: its query .*{text}"):
        check_table(place, Table(last))


def test_checkpoints_elsewhere_are_not_looked_at(tmp_path: Path) -> None:
    check_table("hdfs:/cp", Table(5))
    check_query("hdfs:/cp", {"--window": 5})
    check_table(str(tmp_path / "new"), Table(None))


def test_settings_of_a_query_stay(tmp_path: Path) -> None:
    place = str(tmp_path)
    check_query(place, {"--window": 5.0, "--where": None})
    check_query(place, {"--window": 7.0, "--where": None})  # nothing was read yet
    checkpoint(tmp_path, planned=0, done=0)
    check_query(place, {"--window": 7.0, "--where": None})
    with pytest.raises(
        ConfigurationError, match=r"--window was 7.0, and is 8.0: .* another --checkpoint"
    ):
        check_query(place, {"--window": 8.0, "--where": None})
    (tmp_path / NOTE).unlink()  # as of an older version
    check_query(place, {"--window": 8.0})


def test_settings_of_a_batch_stay_until_it_ends(tmp_path: Path) -> None:
    place = checkpoint(tmp_path, planned=3, done=3)
    check_query(place, {}, {"--where": "a"})
    check_query(place, {}, {"--where": "b"})
    (tmp_path / "offsets" / "4").touch()
    check_query(place, {}, {"--where": "b"})
    with pytest.raises(ConfigurationError, match=r"--where was 'b', and is None, and batch 4 was"):
        check_query(place, {}, {"--where": None})
    check_query(place, {}, {})  # at least once: numbers do not matter


def test_a_batch_that_goes_on_without_numbers_keeps_what_it_began_with(tmp_path: Path) -> None:
    place = checkpoint(tmp_path, planned=4, done=3)
    check_query(place, {}, {"--where": "a"})
    check_query(place, {}, {})  # at least once, and it fails, too
    with pytest.raises(ConfigurationError, match=r"--where was 'a', and is 'b', and batch 4 was"):
        check_query(place, {}, {"--where": "b"})
    (tmp_path / "commits" / "4").touch()
    check_query(place, {}, {"--where": "b"})


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"query": 5, "batch": {}}'])
def test_a_damaged_note_is_told_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / NOTE).write_text(text)
    with pytest.raises(ConfigurationError, match=f"^checkpoint: {tmp_path / NOTE} is damaged"):
        check_query(str(tmp_path), {"--window": 5})


def test_a_note_is_durable_before_the_query_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(f"os.{name}", lambda each: synced.append(f"/proc/self/fd/{each}"))
    check_query(str(tmp_path), {"--window": 5})
    assert len(synced) == 2


def test_a_note_of_another_version_is_told_with_both(tmp_path: Path) -> None:
    (tmp_path / NOTE).write_text('{"version": 2, "query": {}, "batch": {}}')
    with pytest.raises(
        ConfigurationError, match=f"{NOTE} has version 2, and this pulsar_py reads 1"
    ):
        check_query(str(tmp_path), {})
