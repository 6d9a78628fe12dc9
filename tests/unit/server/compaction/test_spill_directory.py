"""The directory that a broker makes for its compactions."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from pulsar_py.common.errors import StorageError
from pulsar_py.server.compaction.spill_directory import PREFIX, SpillDirectory


def made_in(parent: Path) -> list[Path]:
    return list(parent.iterdir())


def rights_of(path: Path) -> int:
    return path.stat().st_mode


async def test_it_is_made_when_needed_and_removed_with_what_is_in_it(tmp_path: Path) -> None:
    spill = SpillDirectory(str(tmp_path))
    assert not made_in(tmp_path)
    disk = spill.disk()
    file = await disk.create("a.run")
    await file.append([b"x"])
    await file.close()
    (made,) = made_in(tmp_path)
    assert await disk.read_whole("a.run") == b"x"
    assert rights_of(made) & 0o77 == 0
    await spill.remove()
    assert not made_in(tmp_path)
    await spill.remove()


def test_where_none_can_be_made_the_compaction_can_fail(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no directory for a compaction"):
        SpillDirectory(str(tmp_path / "missing")).disk()


async def test_what_a_killed_broker_left_goes_at_the_next_start_and_what_is_in_use_stays(
    tmp_path: Path,
) -> None:
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    (left / "compaction-0-0.run").write_bytes(b"x")
    (tmp_path / "of-others").mkdir()
    other = SpillDirectory(str(tmp_path))
    file = await other.disk().create("a.run")
    await file.close()
    spill = SpillDirectory(str(tmp_path))
    await spill.remove_leftovers()
    assert not left.exists()
    assert len(made_in(tmp_path)) == 2
    assert await other.disk().read_whole("a.run") == b""
    await other.remove()
    assert [path.name for path in made_in(tmp_path)] == ["of-others"]


async def test_nothing_is_looked_for_where_nothing_was_made(tmp_path: Path) -> None:
    await SpillDirectory().remove_leftovers()
    await SpillDirectory(str(tmp_path / "missing")).remove_leftovers()


async def test_one_that_is_taken_for_left_over_while_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def made_and_removed_once(prefix: str, dir: str) -> str:  # noqa: A002 - as in tempfile
        path = Path(dir) / f"{prefix}{len(names)}"
        names.append(path.name)
        if len(names) > 1:
            path.mkdir(mode=0o700)
        return str(path)

    monkeypatch.setattr(tempfile, "mkdtemp", made_and_removed_once)
    spill = SpillDirectory(str(tmp_path))
    spill.disk()
    assert [path.name for path in made_in(tmp_path)] == [names[1]]
    await spill.remove()


async def test_a_parent_of_our_own_is_made_with_the_first_file(tmp_path: Path) -> None:
    parent = tmp_path / "tmp"
    spill = SpillDirectory(str(parent), makes_parent=True)
    await spill.remove_leftovers()
    assert not parent.exists()
    spill.disk()
    assert len(made_in(parent)) == 1
    await spill.remove()
