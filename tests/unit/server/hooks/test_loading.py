"""loading: users' classes by name, and from a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.hooks.entry_filter import EntryFilter
from pulsar_py.server.hooks.loading import load_class, load_from_directory
from tests.hook_classes import ByPayload

FILE = """
from dataclasses import dataclass
from pulsar_py.server.hooks import EntryFilter

@dataclass
class Mine(EntryFilter):
    number: int = 1
"""


def test_a_class_by_name() -> None:
    assert load_class("tests.hook_classes.ByPayload", EntryFilter, "s") is ByPayload


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ByPayload", "as module.Class"),
        ("tests.not_there.ByPayload", "tests.not_there"),
        ("tests.hook_classes.Missing", "has no class Missing"),
        ("tests.hook_classes.NoFilter", "derive it from"),
        ("tests.hook_classes.annotations", "has no class annotations"),
    ],
)
def test_what_is_no_such_class(name: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as error:
        load_class(name, EntryFilter, "theSetting")
    assert "theSetting" in str(error.value)


def test_a_class_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    found = load_from_directory("mine.Mine", str(tmp_path), EntryFilter, "s")
    assert found is not None
    assert issubclass(found, EntryFilter)
    assert load_from_directory("mine.Mine", str(tmp_path), EntryFilter, "s") is found
    assert load_from_directory("other.Mine", str(tmp_path), EntryFilter, "s") is None
    assert (
        load_from_directory("tests.hook_classes.ByPayload", str(tmp_path), EntryFilter, "") is None
    )
    with pytest.raises(ConfigurationError, match="has no class Yours"):
        load_from_directory("mine.Yours", str(tmp_path), EntryFilter, "s")


def test_a_file_that_fails_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise OSError('not now')")
    for _ in range(2):
        with pytest.raises(OSError, match="not now"):
            load_from_directory("broken.Mine", str(tmp_path), EntryFilter, "s")


def test_a_directory_and_a_file_may_be_newer_than_the_last_look(tmp_path: Path) -> None:
    directory = tmp_path / "later"
    assert load_from_directory("mine.Mine", str(directory), EntryFilter, "s") is None
    directory.mkdir()
    assert load_from_directory("mine.Mine", str(directory), EntryFilter, "s") is None
    (directory / "mine.py").write_text(FILE)
    assert load_from_directory("mine.Mine", str(directory), EntryFilter, "s") is not None
