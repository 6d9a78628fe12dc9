"""The sources of the documents' site: every link leads somewhere, every public name is there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs import site
from tests.package_source import ROOT


def test_what_documents_link_to_is_copied_to_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    site.assemble(tmp_path)
    for page in tmp_path.rglob("*.md"):
        for match in site.LINK.finditer(page.read_text()):
            link = match[2].partition("#")[0]
            if not match[2].startswith(site.OUTSIDE):
                assert (page.parent / link).is_file(), f"{page.relative_to(tmp_path)}: {link}"


def test_a_link_to_nothing_is_told_with_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("[here](there)")
    with pytest.raises(FileNotFoundError, match=r"README.md links to there"):
        site.assemble(tmp_path / "target")


def test_the_reference_names_each_public_class_and_function() -> None:
    page = site.reference()
    for package in site.PACKAGES:
        for name in package.__all__:
            named = getattr(package, name)
            if isinstance(named, type):
                assert f"::: {named.__module__}.{name}\n" in page, name


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed (`make docs` does)"
)
def test_the_site_is_built_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    site.assemble()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "class" in (tmp_path / "reference.html").read_text()
