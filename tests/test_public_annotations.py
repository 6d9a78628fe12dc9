"""Whatever a public signature names can be imported from `pulsar_py`, and is in the reference."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import typing
from collections.abc import Iterator
from functools import cache
from importlib import import_module

import pytest

import pulsar_py
import pulsar_py.schema
from docs import client_api

DOCUMENTED = [name for names in client_api.sections().values() for name in names]
EXPORTED = {*pulsar_py.__all__, *pulsar_py.schema.__all__, "blocking"}
OF_OTHERS = {"opentelemetry", "prometheus_client"}
"""Packages whose names those who use `pulsar_py.telemetry` know."""


def annotations(name: str) -> Iterator[tuple[str, str, str]]:
    """Of one documented class, function or alias: place, home module, and text of each."""
    thing = client_api.get(name)
    if typing.get_origin(thing) is not None:
        yield name, client_api.home_of(name).__name__, client_api.alias_source(name)
        return
    if not isinstance(thing, type):
        yield from of_function(name, thing)
        return
    if not issubclass(thing, BaseException):  # errors are a table without members
        for field, annotation in vars(thing).get("__annotations__", {}).items():
            is_internal = f"{name}.{field}" in client_api.INTERNAL_MEMBERS
            if not field.startswith("_") and not is_internal:
                yield f"{name}.{field}", thing.__module__, text_of(annotation)
    yield from of_constructor(name, thing)
    for method_name, method in client_api.methods(thing):
        yield from of_function(f"{name}.{method_name}", client_api._function(method))


def of_constructor(name: str, thing: type) -> Iterator[tuple[str, str, str]]:
    function = client_api.constructor(thing)
    for way in (function and typing.get_overloads(function)) or [function]:
        for place, home, text in of_function(name, way):
            if f"{name}.{place.rpartition('.')[2]}" not in client_api.INTERNAL_MEMBERS:
                yield place, home if home != "builtins" else thing.__module__, text


def of_function(name: str, function: typing.Any) -> Iterator[tuple[str, str, str]]:
    home = getattr(function, "__module__", "") or ""
    for parameter, annotation in getattr(function, "__annotations__", {}).items():
        yield f"{name}.{parameter}", home, text_of(annotation)


def text_of(annotation: typing.Any) -> str:
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    return client_api.annotation(annotation)


def names_in(text: str) -> set[str]:
    """The names of an annotation, of `a.b` the first one."""
    tree = ast.parse(text, mode="eval")
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@cache
def imported(home: str) -> dict[str, str]:
    """The module that each imported name of a module comes from, for type checkers only, too."""
    found = {}
    for node in ast.walk(ast.parse(inspect.getsource(import_module(home)))):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: node.module or "" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
    return found


def is_known(name: str, home: str) -> bool:
    if name in EXPORTED or hasattr(builtins, name):
        return True
    origin = imported(home).get(name, home)
    package = origin.split(".")[0]
    if package in sys.stdlib_module_names or package in OF_OTHERS:
        return True
    return isinstance(getattr(import_module(origin), name, None), typing.TypeVar)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_what_signatures_name_is_exported_and_documented(name: str) -> None:
    unknown = [
        f"{place}: {text}, {each} is not exported"
        for place, home, text in annotations(name)
        for each in sorted(names_in(text))
        if not is_known(each, home)
    ]

    assert not unknown, "\n".join(unknown)


def test_the_walk_sees_methods_fields_options_and_aliases() -> None:
    def places(name: str) -> set[str]:
        return {place for place, _, _ in annotations(name)}

    assert {"Producer.send.properties", "Producer.send.return"} <= places("Producer")
    assert "ProducerOptions.message_router" in places("ProducerOptions")
    assert "ConsumerConfig.dead_letter_policy" in places("ConsumerConfig")
    assert "AuthenticationToken.token" in places("AuthenticationToken")
    assert not is_known("OwnMetadata", "pulsar_py.client.messages.message")
    assert not is_known("MessageMetadata", "pulsar_py.client.messages.message")


def test_members_that_are_left_out_are_there() -> None:
    for name in client_api.INTERNAL_MEMBERS:
        owner, _, member = name.partition(".")
        thing = client_api.get(owner)
        assert hasattr(thing, member) or member in thing.__annotations__, name
