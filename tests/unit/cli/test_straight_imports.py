"""Modules found straight are those that Python finds, and Python finds what is not found so."""

from __future__ import annotations

import importlib.machinery
import os
import py_compile
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

import pytest

from pulsar_py.cli.straight_imports import StraightFinder, find_modules_straight

NAME = "pulsar_py.found"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A module with bytecode, as a member of our package."""
    path = tmp_path / "found.py"
    path.write_text("value = 1\n")
    py_compile.compile(str(path))
    return path


def value_found(source: Path) -> object:
    """What the module has, if it is found straight; else None."""
    spec = StraightFinder().find_spec(NAME, [str(source.parent)])
    if spec is None:
        return None
    module = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module.value


def facts(spec: importlib.machinery.ModuleSpec | None) -> list[object]:
    assert spec is not None
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    return [
        spec.name,
        spec.origin,
        spec.cached,
        spec.has_location,
        spec.submodule_search_locations,
        spec.parent,
        spec.loader.path,
        spec.loader.get_source(spec.name),
        spec.loader.get_code(spec.name),
    ]


@pytest.mark.parametrize("name", ["pulsar_py.cli.main", "pulsar_py.cli.admin"])
def test_a_module_is_as_python_finds_it(name: str) -> None:
    import pulsar_py.cli  # noqa: PLC0415 - for its path

    path = list(pulsar_py.cli.__path__)
    expected = PathFinder.find_spec(name, path)
    assert expected is not None
    assert expected.origin is not None
    py_compile.compile(expected.origin)
    assert facts(StraightFinder().find_spec(name, path)) == facts(expected)


def test_bytecode_of_the_source_as_it_is_counts(source: Path) -> None:
    assert value_found(source) == 1


def test_the_code_is_read_again_when_it_is_asked_for_again(source: Path) -> None:
    spec = StraightFinder().find_spec(NAME, [str(source.parent)])
    assert spec is not None
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    first = spec.loader.get_code(NAME)
    source.write_text("value = 2222\n")
    assert first is not None
    assert spec.loader.get_code(NAME) != first


def other_time(source: Path) -> None:
    os.utime(source, (1, 1))


def other_size(source: Path) -> None:
    status = source.stat()
    source.write_text("value = 22\n")
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))


def no_bytecode(source: Path) -> None:
    Path(importlib.util.cache_from_source(str(source))).unlink()


def no_source(source: Path) -> None:
    source.unlink()


def checked_by_hash(source: Path) -> None:
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def of_another_python(source: Path) -> None:
    cached = Path(importlib.util.cache_from_source(str(source)))
    cached.write_bytes(b"\0\0\r\n" + cached.read_bytes()[4:])


def cut_short(source: Path) -> None:
    cached = Path(importlib.util.cache_from_source(str(source)))
    cached.write_bytes(cached.read_bytes()[:10])


@pytest.mark.parametrize(
    "change",
    [
        other_time,
        other_size,
        no_bytecode,
        no_source,
        checked_by_hash,
        of_another_python,
        cut_short,
    ],
)
def test_other_bytecode_is_left_to_python(source: Path, change: object) -> None:
    assert callable(change)
    change(source)
    assert value_found(source) is None


def test_other_packages_are_left_to_python(source: Path) -> None:
    path = [str(source.parent)]
    assert StraightFinder().find_spec("another.found", path) is None
    assert StraightFinder().find_spec("pulsar_py", None) is None
    assert StraightFinder().find_spec(NAME, [*path, "/elsewhere"]) is None


@pytest.fixture
def finders(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", found)
    return found


def test_a_process_has_it_once_and_first(finders: list[object]) -> None:
    before = list(finders)
    find_modules_straight()
    find_modules_straight()
    assert isinstance(finders[0], StraightFinder)
    assert finders[1:] == before


def test_where_bytecode_is_kept_elsewhere_python_looks(
    finders: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list(finders)
    monkeypatch.setattr(sys, "pycache_prefix", "/elsewhere")
    find_modules_straight()
    assert finders == before
