"""The public names are there, and cost nothing before they are used."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import subprocess
import sys
from types import ModuleType
from typing import get_origin

import pytest

import pulsar_py
import pulsar_py.blocking
import pulsar_py.client
import pulsar_py.schema
import pulsar_py.telemetry
from pulsar_py import admin_client
from tests.package_source import modules

PACKAGES = [module for module in modules() if module.is_package]


TYPES = {
    "AnyConsumer", "KeyAnswer", "MessageRouterFunction", "SeekTarget", "TableViewListener",
    "TokenSupplier",
}  # fmt: skip
"""For annotations: unions and calls, which have no name of their own."""


@pytest.mark.parametrize("name", pulsar_py.__all__)
def test_public_names_can_be_had(name: str) -> None:
    thing = getattr(pulsar_py, name)
    if name in TYPES:
        assert get_origin(thing) is not None
    else:
        assert thing.__name__ == name
    assert name in dir(pulsar_py)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert pulsar_py.__version__ == importlib.metadata.version("pulsar_py")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = pulsar_py.Nothing


def test_the_checker_sees_what_is_loaded_on_first_use() -> None:
    tree = next(module.tree for module in PACKAGES if module.name == "pulsar_py")
    checked = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pulsar_py.")
        for alias in node.names
    }
    assert checked == set(pulsar_py.__all__) == set(pulsar_py._HOMES)


@pytest.mark.parametrize("name", [module.name for module in PACKAGES])
def test_what_a_package_exports_is_there(name: str) -> None:
    package = importlib.import_module(name)
    for exported in getattr(package, "__all__", ()):
        assert hasattr(package, exported)


def test_importing_the_package_loads_nothing_else_of_ours() -> None:
    code = "import sys, pulsar_py; print([m for m in sys.modules if m.startswith('pulsar_py.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_clients_names_are_those_of_the_package_without_the_broker() -> None:
    assert set(pulsar_py.client.__all__) == set(pulsar_py.__all__) - {"Broker"}
    assert pulsar_py.client.Client is pulsar_py.Client
    with pytest.raises(AttributeError, match="no attribute 'Broker'"):
        _ = pulsar_py.client.Broker


def test_the_client_loads_nothing_of_the_server() -> None:
    code = "import sys, pulsar_py; pulsar_py.Client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())

    for package in ("server", "storage", "metadata", "managed_ledger", "admin", "standalone"):
        assert f"pulsar_py.{package}" not in loaded
    assert not loaded & {"cryptography", "fastavro", "http.client", "cramjam", "zstandard"}


@pytest.mark.parametrize(
    "name", ["pulsar_py", "pulsar_py.client", "pulsar_py.schema", "pulsar_py.testing"]
)
def test_the_checker_sees_no_getattr_that_takes_any_name(name: str) -> None:
    tree = next(module.tree for module in PACKAGES if module.name == name)

    assert not any(
        isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body
    )


DERIVED_FROM = {
    "Authentication", "Clock", "ConsumerInterceptor", "CryptoKeyReader", "ProducerInterceptor",
}  # fmt: skip
"""Bases of programs' own classes, which say nothing of those."""


@pytest.mark.parametrize(
    "package", [pulsar_py, pulsar_py.schema, pulsar_py.blocking, pulsar_py.telemetry, admin_client]
)
def test_every_public_object_says_what_it_is(package: ModuleType) -> None:
    silent = set()
    for name in package.__all__:
        thing = getattr(package, name)
        if isinstance(thing, type) and not getattr(thing, "_is_protocol", False):
            shown = thing.__repr__  # type: ignore[comparison-overlap] # as `object`'s
            if shown is object.__repr__ and name not in DERIVED_FROM:
                silent.add(name)
    assert silent == set()
