"""Puts the sources of the documents' site together; `make docs` lets mkdocs build it from them.

The documents are written to be read in a checkout: they link to programs, folders and settings
beside `docs/`. So the site's sources are copies at the same places, of the documents and of every
file that one of them links to; a folder gets a page that lists its files. The page `reference.md`
names each public name of the package, whose docstrings mkdocstrings shows.
"""  # noqa: INP001 - tools of the checkout, no package

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pulsar_py
import pulsar_py.blocking
import pulsar_py.schema
import pulsar_py.telemetry

SOURCE: Final = Path("build/site-source")
OUTSIDE: Final = ("http://", "https://", "mailto:", "#")
LINK: Final = re.compile(r"(\]\()([^)\s]+)(\))")
PACKAGES: Final = (pulsar_py, pulsar_py.schema, pulsar_py.blocking, pulsar_py.telemetry)
"""Those that users import from; `blocking` has the names of the first, too."""
FOLDER_PAGE: Final = "folder.md"
"""The page of a folder that a document links to; no folder has a file of this name."""


def documents() -> list[Path]:
    """All documents of the checkout, relative to its root."""
    return sorted([*Path().glob("*.md"), *Path("docs").rglob("*.md")])


def assemble(target: Path = SOURCE) -> None:
    """Write the sources anew.

    Raises:
        FileNotFoundError: A document links to what is not there; the text names both.
    """
    shutil.rmtree(target, ignore_errors=True)
    for document in documents():
        text, linked = adapted(document)
        _write(target / document, text)
        for path in linked:
            _copy(path, target)
    _write(target / "reference.md", reference())


def adapted(document: Path) -> tuple[str, list[Path]]:
    """A document with links that a site can follow, and what else it links to."""
    linked: list[Path] = []

    def follow(match: re.Match[str]) -> str:
        link, _, anchor = match[2].partition("#")
        if match[2].startswith(OUTSIDE):
            return match[0]
        path = _from_root(document.parent / link)
        if not path.exists():
            raise FileNotFoundError(f"{document} links to {path}, which is not there")
        if path.suffix != ".md":
            linked.append(path)
        if path.is_dir():
            link = f"{link.rstrip('/')}/{FOLDER_PAGE}"
        return f"{match[1]}{link}{'#' if anchor else ''}{anchor}{match[3]}"

    return LINK.sub(follow, document.read_text()), linked


def _from_root(path: Path) -> Path:
    return path.resolve().relative_to(Path.cwd())


def _copy(path: Path, target: Path) -> None:
    if not path.is_dir():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target / path)
        return
    files = sorted(each for each in path.rglob("*") if each.is_file() and _is_shown(each))
    for each in files:
        _copy(each, target)
    names = [each.relative_to(path) for each in files]
    lines = [f"# {path}", "", *(f"- [{name}]({name})" for name in names)]
    _write(target / path / FOLDER_PAGE, "\n".join(lines) + "\n")


def _is_shown(path: Path) -> bool:
    return "__pycache__" not in path.parts and path.suffix != ".md"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def reference() -> str:
    """The page of the package's public names; each is a directive of mkdocstrings."""
    lines = [
        "# Reference",
        "",
        "Every public name, package by package, in the order of the alphabet.",
        "",
    ]
    return "\n".join([*lines, *(f"::: {name}\n" for name in public_names())])


def public_names() -> Iterator[str]:
    """The full names of what the package exports, by the module that defines it."""
    seen = set()
    for package in PACKAGES:
        for name in sorted(package.__all__):
            module = getattr(getattr(package, name), "__module__", None)
            full_name = f"{module}.{name}"
            if module is None or not module.startswith("pulsar_py.") or full_name in seen:
                continue
            seen.add(full_name)
            yield full_name


if __name__ == "__main__":
    assemble()
