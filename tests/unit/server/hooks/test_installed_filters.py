"""installed_filters: what settings and policies may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.server.hooks.contained import HookErrors
from pulsar_py.server.hooks.installed_filters import InstalledFilters
from tests.hook_classes import ByPayload

NAME = "tests.hook_classes.ByPayload"
FILE = """
from pulsar_py.server.hooks import EntryFilter

class Mine(EntryFilter):
    pass
"""


def filters(*names: str, directory: str = "") -> InstalledFilters:
    return InstalledFilters(HookErrors(SystemClock()), names=names, directory=directory)


def test_the_settings_names_are_loaded_at_once_and_once() -> None:
    installed = filters(NAME)
    first = installed.require(NAME)
    assert isinstance(first.filter, ByPayload)
    assert installed.find((NAME,)) == (first,)
    with pytest.raises(ConfigurationError, match="entryFilterNames"):
        filters("tests.hook_classes.NoFilter")


def test_a_policy_may_not_choose_what_is_imported(caplog: pytest.LogCaptureFixture) -> None:
    installed = filters()
    assert installed.refusal_of(NAME) == f"Entry filter '{NAME}' not found"
    assert installed.find((NAME,)) == ()
    assert installed.find((NAME,)) == ()
    assert len(caplog.records) == 1


def test_a_directory_has_filters_for_policies(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "broken.py").write_text("raise OSError('not now')")
    installed = filters(NAME, directory=str(tmp_path))
    assert installed.refusal_of("mine.Mine") is None
    found = installed.find((NAME, "broken.Mine", "mine.Mine"))
    assert [each.name for each in found] == [NAME, "mine.Mine"]


@pytest.mark.parametrize("line", ["raise OSError('not now')", "import sys; sys.exit(1)", "not ="])
def test_a_file_that_fails_is_refused_to_policies(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str
) -> None:
    (tmp_path / "broken.py").write_text(line)
    errors = HookErrors(SystemClock())
    installed = InstalledFilters(errors, names=(), directory=str(tmp_path))
    refusal = installed.refusal_of("broken.Mine")
    assert refusal == "Entry filter 'broken.Mine' can't be loaded: see the broker's log"
    assert errors.counts == {"broken.Mine": 1}
    assert "hook broken.Mine failed" in caplog.text


def test_changed_settings_and_the_end() -> None:
    installed = filters(NAME)
    made = installed.require(NAME).filter
    assert isinstance(made, ByPayload)
    installed.use_settings(names=(NAME,), directory="")
    assert installed.require(NAME).filter is made
    installed.use_settings(names=(), directory="")
    assert installed.refusal_of(NAME) == f"Entry filter '{NAME}' not found"
    assert not made.is_closed, "dispatchers may still ask it"
    installed.close()
    assert made.is_closed


def test_whether_topics_can_have_filters(tmp_path: Path) -> None:
    installed = filters()
    assert not installed.may_be_used
    installed.use_settings(names=(), directory=str(tmp_path))
    assert installed.may_be_used
    installed.use_settings(names=("any.Filter",), directory="")
    assert installed.may_be_used
    installed.use_settings(names=(), directory="")
    assert not installed.may_be_used
