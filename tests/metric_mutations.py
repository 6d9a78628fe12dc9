"""Runs each test that is marked with metrics while one of them is wrong: it has to fail then.

    .venv/bin/pytest -n 0 -p no:unraisableexception -p tests.metric_mutations tests/integration

A metric is wrong in two ways: each of its lines says half as much again and one, or each says 0. A
metric of which no marked test fails in one of them has no test; their names end the run, with exit
code 1. `--wrong NAME` tries one metric alone. Tests that fail leave connections behind, of which
pytest need not tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from unittest import mock

import pytest
from _pytest.runner import runtestprotocol

from tests.unit.admin.metrics import metric_pages

WAYS: dict[str, Callable[[float], float]] = {
    "wrong": lambda value: value * 1.5 + 1,
    "always 0": lambda _value: 0.0,
}


def metrics_of(item: pytest.Item) -> list[str]:
    """The metrics that a test is marked with."""
    return [name for marker in item.iter_markers("metric") for name in marker.args]


@contextmanager
def wrong(name: str, way: Callable[[float], float]) -> Iterator[None]:
    """While this lasts, pages have other values of a metric."""

    def shown(metric: str, value: float) -> float:
        return way(value) if metric == name else value

    with mock.patch.object(metric_pages, "shown", shown):
        yield


class Mutations:
    """Collects what was noticed."""

    def __init__(self, only: str | None) -> None:
        self._only = only
        self._noticed: defaultdict[tuple[str, str], bool] = defaultdict(bool)

    @property
    def survivors(self) -> list[tuple[str, str]]:
        """Metrics and ways that no test noticed."""
        return sorted(each for each, is_noticed in self._noticed.items() if not is_noticed)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for name in metrics_of(item):
            for kind, way in WAYS.items():
                if self._only in (None, name) and not self._noticed[name, kind]:
                    item._initrequest()  # type: ignore[attr-defined]
                    with wrong(name, way):
                        # Without a next item fixtures end, and the next run makes them anew.
                        reports = runtestprotocol(item, nextitem=None, log=False)
                    self._noticed[name, kind] |= any(report.failed for report in reports)
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
        count = len(self._noticed) // len(WAYS)
        terminalreporter.write_line(f"{count} metrics, each wrong and each 0")
        for name, kind in self.survivors:
            terminalreporter.write_line(f"no test notices {name}, {kind}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--wrong` chooses one metric."""
    parser.addoption("--wrong", help="try this metric alone")


def pytest_configure(config: pytest.Config) -> None:
    """Take over running the tests."""
    config.pluginmanager.register(Mutations(config.getoption("--wrong")))
