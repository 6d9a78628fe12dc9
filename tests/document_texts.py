"""What the tests of documents share: which there are, their code spans and blocks, and names found in the source.

Names are looked up wherever in the package they are defined, so a test that names a constant holds
when its module moves.
"""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from typing import Any

import msgspec

from tests.package_source import ROOT, modules

DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks").rglob("*.md"),
    ]
)
GENERATED = {"SETTINGS.md", "WITHOUT_EFFECT.md", "API.md", "OPTIONS.md"}
"""Made from the code, so what they name is there."""

NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
WRITTEN = [name for name in NAMES if name.rpartition("/")[2] not in GENERATED]

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def text_of(name: str) -> str:
    """A document by its path in the checkout."""
    return (ROOT / name).read_text("utf-8")


def code_spans(text: str) -> list[str]:
    """What stands between backticks outside of code blocks."""
    return re.findall(r"`([^`\n]+)`", _FENCED.sub("", text))


def block_lines(text: str) -> list[str]:
    """Lines of code blocks, fenced ones of programs left out."""
    fenced = [body for language, body in _FENCED.findall(text) if language != "python"]
    indented = re.findall(r"^    (\S.*)$", _FENCED.sub("", text), re.MULTILINE)
    return [line.strip() for body in fenced for line in body.splitlines()] + indented


@cache
def literals() -> frozenset[str]:
    """Every text that stands as a literal in the package."""
    return frozenset(
        node.value
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@cache
def _homes() -> dict[str, list[str]]:
    """Names defined at the top of modules, and the modules."""
    found: dict[str, list[str]] = {}
    for module in modules():
        for node in module.tree.body:
            names: list[str] = []
            if isinstance(node, ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            elif isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                found.setdefault(name, []).append(module.name)
    return found


def defined_anywhere(name: str) -> bool:
    """Whether a module has a class or constant of that name."""
    return name in _homes()


def value_of(dotted: str) -> Any:  # Any: constants of all types.
    """A constant or a class's default, wherever its module is: `MAX_UNITS`, `Settings.size`.

    Where several modules have the name, a part of one's path comes first: `server.MAX_PARTITIONS`.
    """
    first, *rest = dotted.split(".")
    if first not in _homes():
        homes = [home for home in _homes()[rest[0]] if first in home.split(".")]
        path = rest
    else:
        homes, path = _homes()[first], [first, *rest]
    assert len(homes) == 1, f"{dotted} is in {homes}"
    value: Any = importlib.import_module(homes[0])
    for name in path:
        value = _member(value, name)
    return value


def _member(owner: Any, name: str) -> Any:  # Any: constants of all types.
    """A module's or class's attribute; of a record's field, its default."""
    if isinstance(owner, type) and issubclass(owner, msgspec.Struct):
        defaults = {field.name: field.default for field in msgspec.structs.fields(owner)}
        return defaults[name]
    fields = getattr(owner, "__dataclass_fields__", {})
    return fields[name].default if name in fields else getattr(owner, name)
