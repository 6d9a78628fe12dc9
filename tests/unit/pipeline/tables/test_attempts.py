"""Files of attempts that end well, badly, or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.log_format import fields_of
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.tables.attempts import Attempt, attempt, clean, exclusively

ROOT = Path(__file__).parents[4]
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.unit.pipeline.tables.test_attempts import Logged, attempt, leave

with attempt(Logged(Path(sys.argv[1])), "q-1") as own:
    leave(own, 0, 1)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@dataclass
class Logged:
    """A table whose log is a set of paths."""

    path: Path
    log: set[str] = field(default_factory=set)

    def unlogged(self, paths: Sequence[str]) -> Sequence[str]:
        return [each for each in paths if each not in self.log]

    def names(self) -> list[str]:
        return sorted(each.name for each in self.path.rglob("*.parquet"))

    def is_clean(self) -> bool:
        return not list((self.path / "_staging").glob("*"))


@pytest.fixture
def table(tmp_path: Path) -> Logged:
    return Logged(tmp_path)


def leave(own: Attempt, *numbers: int) -> list[str]:
    """Put files in their place, and leave one where it was written."""
    own.staging.mkdir(parents=True)
    (own.staging / "part-0.parquet").touch()
    names = [f"{own.name}-{number:05}.parquet" for number in numbers]
    for each in names:
        (own.table / each).touch()
    return names


def test_two_attempts_at_one_batch_share_no_file(table: Logged) -> None:
    with attempt(table, "q-1") as one, attempt(table, "q-1") as other:
        kept = leave(one, 0)
        leave(other, 0)
        one.is_logged = True
    assert table.names() == kept
    assert table.is_clean()


def test_the_log_decides_what_an_attempt_that_fails_leaves(table: Logged) -> None:
    def fail() -> None:
        with attempt(table, "q-1") as own:
            logged, _ = leave(own, 0, 1)
            table.log.add(logged)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert set(table.names()) == table.log
    assert table.is_clean()


@pytest.mark.parametrize("place", ["_staging/other-1/_temporary/0", "date=2026-01-31"])
def test_directories_may_vanish_while_an_attempt_is_cleaned(
    table: Logged, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    vanishing = table.path / place
    vanishing.mkdir(parents=True)
    scandir = os.scandir

    def late(path: Any = ".") -> Any:
        if not isinstance(path, int) and Path(path) == vanishing:
            vanishing.rmdir()
        return scandir(path)

    def fail() -> None:
        with attempt(table, "q-1") as own:
            leave(own, 0)
            raise KeyError

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", late)
        with pytest.raises(KeyError):
            fail()
    assert table.names() == []
    assert not list((table.path / "_staging").glob("q-1-*"))


def test_files_below_staging_and_logs_are_no_placed_ones(table: Logged) -> None:
    with attempt(table, "q-1") as own:
        (name,) = leave(own, 0)
        for each in ("_staging/other-1", "_delta_log", "_manifest", "_day=1/hour=2"):
            (table.path / each).mkdir(parents=True)
            (table.path / each / name).touch()
    found = [each.relative_to(table.path).parts[0] for each in table.path.rglob(name)]
    assert sorted(found) == ["_delta_log", "_manifest", "_staging"]


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), RuntimeError("the log is torn")])
def test_an_attempt_fails_by_its_own_error_where_cleaning_fails_too(
    table: Logged,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    def unlogged(paths: Sequence[str]) -> Sequence[str]:
        raise error

    def fail() -> None:
        with attempt(table, "q-1") as own:
            leave(own, 0)
            raise KeyError

    monkeypatch.setattr(table, "unlogged", unlogged)
    with pytest.raises(KeyError):
        fail()
    assert not list((table.path / "_staging").glob("*.lock"))
    (record,) = caplog.records
    assert fields_of(record)["reason"] == str(error)


def test_what_killed_attempts_have_left_goes_and_what_others_have_stays(table: Logged) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(table.path)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(table.names()) == 3
    committed = next(name for name in table.names() if name.endswith("-00001.parquet"))
    table.log.add(committed)
    with attempt(table, "q-1") as own:
        running = leave(own, 0)
        clean(table)
        assert table.names() == sorted([committed, "part-0.parquet", *running])
    assert table.names() == [committed]
    assert table.is_clean()


def left_without_a_lock(table: Logged) -> list[Path]:
    """What an attempt of an older version has, unchanged for 25 hours; the inner ones first."""
    own = Attempt(table.path, "q-00000001")
    (name,) = leave(own, 9)
    task = own.staging / "_temporary" / "0"
    task.mkdir(parents=True)
    (task / "part-1.parquet").touch()
    paths = [table.path / name, *own.staging.rglob("*"), own.staging]
    for each in paths:
        age(each, hours=25)
    return paths


def age(path: Path, *, hours: float) -> None:
    os.utime(path, (SystemClock().wall_time_millis() / 1000 - hours * 3600,) * 2)


def test_a_directory_without_a_lock_is_nobodys_after_a_day(table: Logged) -> None:
    left_without_a_lock(table)
    kept = table.path / "q-00000001-12345678-00009.parquet"
    kept.touch()
    clean(table)
    assert table.names() == [kept.name]
    assert table.is_clean()


@pytest.mark.parametrize("number", range(6))
def test_what_has_no_lock_stays_while_any_of_it_changes(table: Logged, number: int) -> None:
    paths = left_without_a_lock(table)
    assert len(paths) == 6
    age(paths[number], hours=23)
    clean(table)
    assert all(each.exists() for each in paths)


def test_one_at_a_time(tmp_path: Path) -> None:
    with exclusively(tmp_path, "work", waits=True) as is_mine:
        assert is_mine
        with exclusively(tmp_path, "work", waits=False) as is_mine_too:
            assert not is_mine_too
        clean(Logged(tmp_path))
        with exclusively(tmp_path, "work", waits=False) as is_mine_too:
            assert not is_mine_too
    with exclusively(tmp_path, "work", waits=False) as is_mine:
        assert is_mine
    assert Logged(tmp_path).is_clean()


def test_locks_of_another_user_are_like_held_ones(
    table: Logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Attempt(table.path, "q-00000001-12345678")
    kept = leave(theirs, 0)
    refused = [theirs.lock, table.path / "_staging" / "work.lock"]
    for each in refused:
        each.touch()
    opened = Path.open

    def refusing(path: Path, *rest: Any, **options: Any) -> Any:
        if path in refused:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *rest, **options)

    # Root, who may run this, may open everything.
    monkeypatch.setattr(Path, "open", refusing)
    with attempt(table, "r-1") as own:
        clean(table)
        leave(own, 0)
    assert table.names() == ["part-0.parquet", *kept]
    assert theirs.lock.exists()
    with exclusively(table.path, "work", waits=False) as is_mine:
        assert not is_mine
    waiting = exclusively(table.path, "work", waits=True)
    with (
        pytest.raises(ConfigurationError, match=r"_staging/work\.lock: Permission denied"),
        waiting,
    ):
        pass
