"""Reads the package's source for the tests about its shape; imports nothing of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pulsar_py"


@dataclass(frozen=True)
class Module:
    """One module of ours."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.tree) or ""


@dataclass(frozen=True)
class Import:
    """One import statement's target, absolute."""

    module: Module
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.module.path.relative_to(ROOT)}:{self.line} imports {self.target}"


@cache
def modules() -> list[Module]:
    """Every module but the generated ones."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name.endswith("_pb2.py"):
            continue
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        tree = ast.parse(path.read_text("utf-8"))
        found.append(Module(path, ".".join(parts), tree))
    return found


def imports(module: Module) -> list[Import]:
    """Everything a module imports, also late, and also for the type checker alone."""
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found += [Import(module, alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.path}: relative import in line {node.lineno}"
            found += [
                Import(module, f"{node.module}.{alias.name}", node.lineno) for alias in node.names
            ]
    return found
