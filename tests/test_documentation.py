"""What the documents say about the code is there: paths, classes, settings, links, examples."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

from tests.document_texts import DOCUMENTS, NAMES, WRITTEN, code_spans
from tests.package_source import PACKAGE, ROOT, imports, modules

ADRS = sorted((ROOT / "docs" / "adr").glob("*.md"))

ELSEWHERE = {
    # Names that are not ours, or of the protocol.
    "AuthenticationProviderOpenID",
    "PositionInfo", "ManagedLedgerInfo", "ManagedLedgerInfoMetadata", "ManagedCursorInfo",
    "SchemaLocator", "Policies", "InvalidTopicName", "TooManyRequests", "GetMessageClass",
    "EnumTypeWrapper", "URLEncoder", "PulP", "None", "PulsarApi",
    "CursorExtension", "CursorSegment", "CursorSegmentList",
    "CompactedTopicLedger", "MessageIdData", "Prefix", "SnapshotMetadata", "SnapshotSegment",
    # Of Python, pydantic, and the tests of the document: what schemas refuse.
    "Any", "Flag", "HttpUrl", "Loose", "Names", "Path", "Permission", "RootModel", "SecretStr",
}  # fmt: skip
"""CamelCase words in code spans that name no class of ours."""

OFFICIAL = {
    "PulsarException", "Timeout", "AlreadyClosed", "NotConnected", "ProducerQueueIsFull",
    "MemoryBufferIsFull", "MessageTooBig", "InvalidConfiguration", "InvalidUrl", "InvalidMessage",
    "TopicNotFound", "TopicTerminated", "SubscriptionNotFound", "ProducerBusy", "ProducerFenced",
    "ConsumerBusy", "IncompatibleSchema", "ErrorGettingAuthenticationData",
    "OperationNotSupported", "BrokerPersistenceError", "BrokerMetadataError",
    "ServiceUnitNotReady", "TooManyLookupRequestException", "UnknownError",
}  # fmt: skip
"""Names of the official Python client, in the table for who comes from there."""

DATA = {"data", "entries", "index", "journal"}
"""Directories of a data directory."""
MADE = "build"
"""What commands write; a fresh clone does not have it."""

PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)+/?|\w+\.(?:py|md|txt|toml|conf)")


def anchors(path: Path) -> set[str]:
    """Headings as they are linked to; a second one of the same words has `-1` at its end."""
    found: Counter[str] = Counter()
    named = set()
    for heading in re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        named.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return named


@cache
def defined() -> set[str]:
    """Names that the package's source defines or sets."""
    text = "\n".join(module.path.read_text() for module in modules())
    members = r"^    ([A-Z]\w+) = "
    found = re.findall(rf"\b(?:class|def) (\w+)|^(\w+)\b.* = |{members}", text, re.MULTILINE)
    return {name for names in found for name in names if name} | set(dir(builtins))


def of_its_programs(text: str) -> set[str]:
    """What the Python programs in a document define, import and name."""
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return {word for program in programs for word in re.findall(r"\b[A-Z]\w+", program)}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    path = ROOT / name
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("name", WRITTEN)
def test_paths_that_are_named_exist(name: str) -> None:
    missing = []
    for span in code_spans((ROOT / name).read_text()):
        if not PATH.fullmatch(span) or span.startswith((".", "//")) or "..." in span:
            continue
        # Data directories, protocols and requests have paths, too; ours begin with what is there.
        first = span.split("/")[0]
        is_home = (ROOT / first).is_dir() and first != MADE
        if not span.endswith((".py", ".md")) and not is_home:
            continue
        homes = (ROOT, PACKAGE, (ROOT / name).parent)
        if not any(list(home.glob(span)) for home in homes) and first not in DATA:
            missing.append(span)
    assert not missing


def test_modules_in_the_diagrams_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    blocks = "\n".join(re.findall(r"```.*?```", text, re.DOTALL))
    named = re.findall(r"[\w/*]+\.py", blocks)
    assert named
    # Those that stand without their folder are somewhere.
    homes = {True: PACKAGE.glob, False: PACKAGE.rglob}
    assert not [path for path in named if not list(homes["/" in path](path))]


def layers() -> list[list[list[str]]]:
    """The packages' lines in the drawing of layers, as floors: `a  <-  b, c  <-  d`."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    chapter = text.partition("\n## Layers")[2]
    drawing = chapter.split("```")[1].strip().partition("\n\n")[0]
    return [
        [[name.strip() for name in floor.split(",")] for floor in line.split("<-")]
        for line in drawing.splitlines()
    ]


def test_the_drawing_of_layers_has_every_package() -> None:
    drawn = {name for line in layers() for floor in line for name in floor}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    chapter = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Layers")[2]
    said = {span for span in code_spans(chapter) if span in packages}
    assert packages <= drawn | said
    assert drawn - packages <= {path.stem for path in PACKAGE.glob("*.py")}


def test_no_import_goes_up_in_the_drawing_of_layers() -> None:
    above = {
        (low, high)
        for line in layers()
        for index, floor in enumerate(line)
        for low in floor
        for higher in line[index + 1 :]
        for high in higher
    }
    assert above
    going = {
        (module.name.split(".")[1], one.target.split(".")[1])
        for module in modules()
        for one in imports(module)
        if one.target.startswith("pulsar_py.") and module.name != "pulsar_py"
    }
    assert not going & above


@pytest.mark.parametrize("name", WRITTEN)
def test_classes_that_are_named_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    spans, shown = code_spans(text), of_its_programs(text)
    words = [span for span in spans if re.fullmatch(r"[A-Z]\w*[a-z]\w*(\.\w+)?", span)]
    missing = []
    for word in words:
        class_name, _, member = word.partition(".")
        if (
            class_name not in ELSEWHERE | OFFICIAL | shown
            and not {class_name, member or class_name} <= defined()
        ):
            missing.append(word)
    assert not missing


@pytest.mark.parametrize("name", WRITTEN)
def test_modules_and_functions_that_are_named_exist(name: str) -> None:
    spans = code_spans((ROOT / name).read_text())
    words = {span for span in spans if re.fullmatch(r"pulsar_py(\.[a-z_]\w*)+", span)}
    for word in words:
        try:
            resolve_name(word)
        except (ImportError, AttributeError):
            pytest.fail(f"{name}: {word}")


def test_code_of_the_readme_stands_in_an_example() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    examples = [path.read_text() for path in (ROOT / "examples").rglob("*.py")]
    assert blocks
    for block in blocks:
        assert any(block in example for example in examples), block


def test_tests_that_are_named_exist() -> None:
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    named = {span for span in code_spans(text) if re.fullmatch(r"test_\w+", span)}
    assert not [name for name in named if f"def {name}(" not in tests]


def test_decisions_are_numbered_and_have_their_parts() -> None:
    for number, path in enumerate(ADRS, start=1):
        text = path.read_text()
        assert path.name.startswith(f"{number:04}-"), path.name
        assert text.startswith(f"# {number}. "), path.name
        for part in ("**Context.**", "**Choice.**", "**Price.**"):
            assert part in text, f"{path.name}: {part}"


def test_the_index_lists_every_document() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for path in DOCUMENTS:
        if path.name != "README.md":
            assert path.name in index, path.name
    for path in ADRS:
        title = path.read_text().partition("\n")[0].removeprefix("# ").partition(" ")[2]
        assert f"[{title}]" in index, title


def test_the_changelog_has_what_is_new_in_the_form_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert version[1] in text
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", one) for one in headings[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= kinds


def test_the_readme_is_a_page_and_shows_a_picture() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 130
    assert re.search(r"!\[[^\]]+\]\(docs/[\w.]+\)", text)
