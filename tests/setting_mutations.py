"""Runs each test that is marked with settings while one of them is deaf: it has to fail then.

    .venv/bin/pytest -p tests.setting_mutations tests/unit/settings tests/integration/test_settings.py

A deaf setting has its default whatever it is set to, for everything that reads a `BrokerConfig`. A
setting of which no marked test fails has no test; their names end the run, with exit code 1.
`--deaf NAME` tries one setting alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from _pytest.runner import runtestprotocol

from pulsar_py.server import config
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.settings.declaring import Value


def settings_of(item: pytest.Item) -> list[str]:
    """The settings that a test is marked with."""
    return [name for marker in item.iter_markers("setting") for name in marker.args]


class _Deaf:
    """Stands before what an instance holds: reads give the default."""

    def __init__(self, default: Value) -> None:
        self._default = default

    def __get__(self, instance: object, owner: type) -> Value:
        return self._default

    def __set__(self, instance: object, value: Value) -> None:
        raise AttributeError("settings are immutable")


@contextmanager
def deaf(name: str) -> Iterator[None]:
    """While this lasts, a setting has its default."""
    default = BrokerConfig.declared()[name].default
    if name == "tokenSettingPrefix":  # read before there is a `BrokerConfig`: it names settings
        with mock.patch.object(config, "token_settings_prefix", return_value=default):
            yield
        return
    setattr(BrokerConfig, name, _Deaf(default))
    try:
        yield
    finally:
        delattr(BrokerConfig, name)


class Mutations:
    """Collects which settings were noticed."""

    def __init__(self, only: str | None) -> None:
        self._only = only
        self._noticed: defaultdict[str, bool] = defaultdict(bool)

    @property
    def survivors(self) -> list[str]:
        """Settings that no test noticed to be deaf."""
        return sorted(name for name, is_noticed in self._noticed.items() if not is_noticed)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for name in settings_of(item):
            if self._only in (None, name) and not self._noticed[name]:
                item._initrequest()  # type: ignore[attr-defined]
                with deaf(name):
                    reports = runtestprotocol(item, nextitem=nextitem, log=False)
                self._noticed[name] |= any(report.failed for report in reports)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, None, None]:
        del exitstatus
        if self.survivors or not self._noticed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        yield

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(f"{len(self._noticed)} settings, each deaf once")
        for name in self.survivors:
            terminalreporter.write_line(f"no test notices {name}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--deaf` chooses one setting."""
    parser.addoption("--deaf", help="try this setting alone")


def pytest_configure(config: pytest.Config) -> None:
    """Take over running the tests."""
    config.pluginmanager.register(Mutations(config.getoption("--deaf")))
