"""Directories on file systems that sync them, and on others; test_power_loss.py has tables."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pulsar_py.pipeline.tables.directories import sync_directory


def failing_with(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(number, "said the system")

    monkeypatch.setattr("os.fsync", fail)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_can_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    failing_with(monkeypatch, number)
    sync_directory(tmp_path)


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_with(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="said the system"):
        sync_directory(tmp_path)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_directory(tmp_path / "no")
