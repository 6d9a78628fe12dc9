"""Nothing in the checkout sends its reader to a document that a clone does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.package_source import ROOT

FOLDERS = ("pulsar_py", "tests", "benchmarks", "examples", "docs", "proto", "docker", "conf", ".ci")
ENDINGS = {
    ".py",
    ".pyi",
    ".md",
    ".txt",
    ".json",
    ".toml",
    ".proto",
    ".conf",
    ".yaml",
    ".sh",
    ".svg",
}
NO_ENDING = {"Makefile", "Dockerfile", "run"}
SKIPPED = {"__pycache__", ".venv", "build"}

DOCUMENT = re.compile(r"(?<![\w/:.-])([\w.][\w./-]*\.md)\b")
"""A document's name or path; those behind `https://` belong to somebody else."""

OTHERS = {"PROTOCOL.md", "reference.md", "folder.md"}
"""The protocol of Delta Lake, and pages that the documents' site alone has."""

ELSEWHERE = (
    re.compile(r"(?<![\w/.-])spec(?:ification)?/\w"),
    re.compile(r"(?<![\w/.-])shared/[a-z]+\.\w"),
    re.compile(r"\bspec(?:'s)? sections? \d"),
    re.compile(
        r"\bsections? [\d.]+(?:(?:,| and| to) [\d.]+)* of (?:the spec\b|`?spec/|the protocol's doc)"
    ),
    re.compile(r"\b(?:DESIGN|STYLE|REVIEW|BRIEF)\b"),
    re.compile(r"(?<![\w.])/work/(?:main|wt|shared)\b"),
)
"""What points out of the checkout: specifications, rules and paths that only its authors have."""


OWN = Path(__file__)
"""This module has examples of what is forbidden."""


@cache
def files() -> tuple[Path, ...]:
    """Every text that is part of the checkout."""
    return tuple(_walk())


def _walk() -> Iterator[Path]:
    yield from (path for path in sorted(ROOT.iterdir()) if path.is_file() and _is_text(path))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and _is_text(path) and not SKIPPED & set(path.parts):
                yield path


def _is_text(path: Path) -> bool:
    return path.suffix in ENDINGS or path.name in NO_ENDING


@cache
def documents() -> frozenset[str]:
    """Paths of all documents, and each of their ends: `docs/client/API.md`, `client/API.md`, `API.md`."""
    found = set()
    for path in files():
        if path.suffix == ".md":
            parts = path.relative_to(ROOT).parts
            found.update("/".join(parts[start:]) for start in range(len(parts)))
    return frozenset(found)


def citations(text: str) -> list[str]:
    """What a text cites that is not in the checkout."""
    unknown = [
        name
        for name in DOCUMENT.findall(text)
        if re.sub(r"^(?:\.\.?/)+", "", name) not in documents() | OTHERS
    ]
    return unknown + [match[0] for pattern in ELSEWHERE for match in pattern.finditer(text)]


PARTS = sorted(
    {
        "/".join(path.relative_to(ROOT).parts[:2])
        for path in files()
        if path.parent != ROOT and path != OWN
    }
)


@pytest.mark.parametrize("part", [".", *PARTS])
def test_citations_are_of_what_a_clone_has(part: str) -> None:
    mine = [
        path
        for path in files()
        if path != OWN
        and (path.parent == ROOT if part == "." else path.is_relative_to(ROOT / part))
    ]
    assert mine
    found = {str(path.relative_to(ROOT)): citations(path.read_text("utf-8")) for path in mine}
    assert not {name: cited for name, cited in found.items() if cited}


@pytest.mark.parametrize(
    "text",
    [
        "Source: admin.md 3.1 with its corrections.",
        "Source: `spec/wire.md` section 10.",
        "Source: spec section 8.5; docs/adr/0019.",
        "Source: section 8 of the protocol's documentation.",
        "sections 7 and 11 of `spec/wire.md`",
        "STYLE's bounded queues.",
        "written to /work/main/data",
    ],
)
def test_a_citation_of_what_is_elsewhere_is_found(text: str) -> None:
    assert citations(text)


@pytest.mark.parametrize(
    "text",
    [
        "Source: PIP-107; docs/FORMATS.md; [ADR](adr/0001-messages-in-a-pool-of-our-own.md)",
        "Source: RFC 6749 section 4.4; the Avro 1.11 specification.",
        "from pulsar_py.client.shared.retries import retry",
        "see `client/shared/retries.py`",
        "https://example.org/guide/nowhere.md",
    ],
)
def test_a_citation_of_what_is_here_is_none(text: str) -> None:
    assert not citations(text)
