from __future__ import annotations

import json
from pathlib import Path

import pytest

from pulsar_py.common.errors import MigrationError
from pulsar_py.metadata.moved_marker import FILE, check_not_moved, remove_marker, write_marker


def test_a_directory_that_was_moved_is_refused_with_the_way_out(tmp_path: Path) -> None:
    check_not_moved(tmp_path)
    write_marker(tmp_path, cluster="large", address="zk:one", time="2026-01-31T12:00:00+00:00")
    assert json.loads((tmp_path / FILE).read_text()) == {
        "format": 1,
        "cluster": "large",
        "metadata": "zk:one",
        "begun": "2026-01-31T12:00:00+00:00",
    }
    with pytest.raises(MigrationError, match=f"large at zk:one.*migrate --release {tmp_path}"):
        check_not_moved(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_the_first_mark_stays_and_goes_when_it_is_removed(tmp_path: Path) -> None:
    for time in ("first", "second"):
        write_marker(tmp_path, cluster="c", address="a", time=time)
    assert json.loads((tmp_path / FILE).read_text())["begun"] == "first"
    assert remove_marker(tmp_path)
    check_not_moved(tmp_path)
    assert not remove_marker(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_mark_that_can_not_be_read_is_one(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(MigrationError, match="moved into a cluster"):
        check_not_moved(tmp_path)


def test_a_directory_that_is_not_there_was_not_moved(tmp_path: Path) -> None:
    check_not_moved(tmp_path / "new")
