"""What tools write is private, and in place as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.common.disks.tool_files import put_in_place, sync_directories, write_file


def test_a_directory_gets_its_name_last(tmp_path: Path) -> None:
    place = tmp_path / "new" / "place"
    with put_in_place(place) as partial:
        partial.mkdir()
        write_file(partial / "a", [b"1", b"2"])
        sync_directories(partial)
        assert not place.exists()
    assert (place / "a").read_bytes() == b"12"
    assert (place / "a").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in place.parent.iterdir()] == ["place"]


def test_what_fails_leaves_nothing_and_what_an_earlier_run_left_goes(tmp_path: Path) -> None:
    place = tmp_path / "place"
    left = tmp_path / ".place.partial"
    left.mkdir()
    (left / "old").write_text("old")

    def interrupted() -> None:
        with put_in_place(place) as partial:
            assert partial == left
            assert not left.exists()
            write_file(partial, [b"half"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    with put_in_place(tmp_path / "place") as partial:
        partial.mkdir()
        write_file(partial / "a", [b"1"])
    assert (tmp_path / "place" / "a").read_bytes() == b"1"


def test_a_file_that_exists_is_not_written_over(tmp_path: Path) -> None:
    write_file(tmp_path / "a", [b"1"])
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "a", [b"2"])
    assert (tmp_path / "a").read_bytes() == b"1"
