"""Each metric has a test in which another value of it would be noticed.

The mark `@pytest.mark.metric(names)` is the map from names to tests. That a test marked so fails
when a line says something else, or is always 0, is tried by `make test-all`, see
tests/metric_mutations.py.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from pulsar_py.admin.metrics import store_lines, topic_names
from pulsar_py.admin.metrics.broker_lines import BROKER_SUMS
from tests.package_source import PACKAGE, ROOT

NOT_EXPORTED = {"absent_names.py", "help_texts.py"}
"""Modules of metrics that name what others export, or what nobody does."""

_NAME = re.compile(r"(pulsar|process)_\w*[a-zA-Z0-9]")


@cache
def exported() -> frozenset[str]:
    """All names that a page can have; a histogram's without `_bucket`, `_sum` and `_count`."""
    names: set[str] = set()
    for module in (store_lines, topic_names):
        for text in vars(module).values():
            names.update(_names_in(text))
    names |= {name.replace("pulsar_", "pulsar_broker_", 1) for name in BROKER_SUMS}
    for path in (PACKAGE / "admin" / "metrics").glob("*.py"):
        if path.name not in NOT_EXPORTED:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant):
                    names.update(_names_in(node.value))
    return frozenset(names)


def _names_in(value: object) -> set[str]:
    if isinstance(value, str):
        return {value} if _NAME.fullmatch(value) else set()
    if isinstance(value, tuple):
        return {name for each in value for name in _names_in(each)}
    if isinstance(value, dict):
        return {name for each in value.values() for name in _names_in(each)}
    return set()


@cache
def map_of_metrics() -> Mapping[str, list[str]]:
    """The map: ids of the tests that hold a metric to its value, by its name."""
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "@pytest.mark.metric(" not in path.read_text() or path == Path(__file__):
            continue
        place = path.relative_to(ROOT)
        module = import_module(".".join(place.with_suffix("").parts))
        for name, function in vars(module).items():
            for mark in getattr(function, "pytestmark", ()):
                if mark.name == "metric":
                    for metric in mark.args:
                        tests[metric].append(f"{place}::{name}")
    return tests


def test_each_metric_has_a_test_of_its_value() -> None:
    assert not sorted(exported() - map_of_metrics().keys())


def test_no_test_is_of_a_metric_that_is_not_there() -> None:
    assert not sorted(map_of_metrics().keys() - exported())


def test_names_are_found() -> None:
    assert len(exported()) > 200
    assert {
        "pulsar_rate_in",
        "pulsar_broker_rate_in",
        "pulsar_storage_ledger_write_latency_le_0_5",
        "pulsar_py_zookeeper_latency_ms",
        "process_open_fds",
    } <= exported()


@pytest.mark.slow
def test_each_metric_that_says_something_else_fails_a_test() -> None:
    files = {test_id.partition("::")[0] for ids in map_of_metrics().values() for test_id in ids}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.metric_mutations"]
    command += ["-p", "no:unraisableexception"]  # tests that fail leave connections behind
    run = subprocess.run(
        [*command, *sorted(files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert f"{len(exported())} metrics, each wrong and each 0" in run.stdout
