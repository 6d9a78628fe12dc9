"""Locks on directories."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_py.common.disks.directory_lock import DirectoryLock, is_locked


def test_a_directory_is_locked_until_the_lock_is_released(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    lock = DirectoryLock.take(tmp_path)
    assert lock is not None
    assert is_locked(tmp_path)
    lock.release()
    lock.release()
    assert not is_locked(tmp_path)


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys\n"
        "from pulsar_py.common.disks.directory_lock import DirectoryLock, is_locked\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "lock = DirectoryLock.take(path)\n"
        "assert is_locked(path)\n"
        "os.abort()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert ended.returncode < 0
    assert not is_locked(tmp_path)


def test_what_is_gone_cannot_be_locked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DirectoryLock.take(tmp_path / "missing")
    assert is_locked(tmp_path / "missing")
