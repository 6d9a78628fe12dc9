"""The directory that a broker makes for its compactions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.common.errors import StorageError
from pulsar_py.server.compaction.spill_directory import SpillDirectory


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
