"""Each setting with an effect has a test in which changing it changes what happens.

The mark `@pytest.mark.setting(names)` is the map from settings to tests, read here from the source.
That a test marked so fails when the setting is not honoured is tried by `make test-all`, see
tests/setting_mutations.py.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.admin.http_server import HttpLimits
from pulsar_py.common.policies import AutoTopicCreation, BacklogQuota, InactiveTopicPolicy
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.server.limits.topic_list_budget import TopicListLimits
from pulsar_py.server.namespaces.lookup import LocalAddresses
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.schema_registry import SchemaPolicies
from pulsar_py.server.topics.registry_settings import RegistrySettings
from pulsar_py.storage.shared.settings import BookieSettings
from tests.package_source import PACKAGE, ROOT

HANDED_ON = (
    AutoTopicCreation,
    BacklogQuota,
    BookieSettings,
    ConnectionSettings,
    DispatchSettings,
    HttpLimits,
    InactiveTopicPolicy,
    LocalAddresses,
    ManagedLedgerConfig,
    RegistrySettings,
    SchemaPolicies,
    TopicListLimits,
    TopicSettings,
)
"""What components are given, made of settings by `server.broker` and `standalone`."""

READ_AT_HOME = (HttpLimits, TopicListLimits)
"""Those that stand in one module with the component that reads them."""


def marked(path: Path) -> Iterator[tuple[str, str]]:
    """(setting, test id) for each mark in a test module."""
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(
                "mark.setting"
            ):
                for argument in decorator.args:
                    name = ast.literal_eval(argument)
                    yield name, f"{path.relative_to(ROOT)}::{node.name}"


@cache
def map_of_settings() -> Mapping[str, list[str]]:
    """The map: ids of the tests that show what a setting does, by its name."""
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "mark.setting" in path.read_text():
            for name, test_id in marked(path):
                tests[name].append(test_id)
    return tests


def test_each_setting_has_a_test() -> None:
    assert not sorted(BrokerConfig.declared().keys() - map_of_settings().keys())


def test_no_test_shows_a_setting_that_is_not_there() -> None:
    assert not sorted(map_of_settings().keys() - BrokerConfig.declared().keys())


@cache
def readers() -> Mapping[str, set[Path]]:
    """Modules of the package by the attributes they read."""
    found: defaultdict[str, set[Path]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        if "proto" in path.relative_to(PACKAGE).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found[node.attr].add(path)
    return found


def field_names(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass or `Struct`."""
    if is_dataclass(kind):
        return tuple(each.name for each in fields(kind))
    names: tuple[str, ...] = kind.__struct_fields__
    return names


@pytest.mark.parametrize("settings", HANDED_ON, ids=lambda each: each.__name__)
def test_each_field_that_is_handed_on_is_read_by_somebody(settings: type) -> None:
    handing_on = {PACKAGE / "server/policies/effective_settings.py"}
    if settings not in READ_AT_HOME:
        handing_on.add(PACKAGE.parent / (settings.__module__.replace(".", "/") + ".py"))
    unread = [each for each in field_names(settings) if not readers()[each] - handing_on]
    assert not unread


@pytest.mark.slow
def test_each_setting_that_is_deaf_fails_a_test() -> None:
    files = {test_id.partition("::")[0] for ids in map_of_settings().values() for test_id in ids}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.setting_mutations"]
    run = subprocess.run(
        [*command, *sorted(files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert f"{len(BrokerConfig.declared())} settings, each deaf once" in run.stdout
