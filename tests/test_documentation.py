"""What the documents say about the code is there: paths, classes, settings, links, examples."""

from __future__ import annotations

import builtins
import re
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

from pulsar_py.server.config import BrokerConfig
from tests.package_source import PACKAGE, ROOT, modules

GENERATED = {"SETTINGS.md", "WITHOUT_EFFECT.md", "API.md"}
"""Made from the code, so what they name is there."""

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ADRS = sorted((ROOT / "docs" / "adr").glob("*.md"))
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS if path.name not in GENERATED]

ELSEWHERE = {
    # Names that are not ours, or of the protocol.
    "PositionInfo", "ManagedLedgerInfo", "ManagedLedgerInfoMetadata", "ManagedCursorInfo",
    "SchemaLocator", "Policies", "InvalidTopicName", "TooManyRequests", "GetMessageClass",
    "EnumTypeWrapper", "URLEncoder", "PulP", "None", "PulsarApi",
    "CursorExtension", "CursorSegment", "CursorSegmentList",
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

PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)+/?|\w+\.(?:py|md|txt|toml|conf)")


def code_spans(text: str) -> list[str]:
    """What stands between backticks outside of code blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def anchors(path: Path) -> set[str]:
    """Headings as they are linked to."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def defined() -> set[str]:
    """Names that the package's source defines or sets."""
    text = "\n".join(module.path.read_text() for module in modules())
    members = r"^    ([A-Z]\w+) = "
    found = re.findall(rf"\b(?:class|def) (\w+)|^(\w+)\b.* = |{members}", text, re.MULTILINE)
    return {name for names in found for name in names if name} | set(dir(builtins))


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


@pytest.mark.parametrize("name", NAMES)
def test_paths_that_are_named_exist(name: str) -> None:
    missing = []
    for span in code_spans((ROOT / name).read_text()):
        if not PATH.fullmatch(span) or span.startswith((".", "//")) or "..." in span:
            continue
        # Data directories, protocols and requests have paths, too; ours begin with what is there.
        first = span.split("/")[0]
        if not span.endswith((".py", ".md")) and not (ROOT / first).is_dir():
            continue
        homes = (ROOT, PACKAGE, (ROOT / name).parent)
        if not any(list(home.glob(span)) for home in homes) and first not in DATA:
            missing.append(span)
    assert not missing


def test_modules_in_the_diagrams_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    blocks = "\n".join(re.findall(r"```.*?```", text, re.DOTALL))
    named = re.findall(r"[\w/*]+/[\w*]+\.py", blocks)
    assert named
    assert not [path for path in named if not list(PACKAGE.glob(path))]


@pytest.mark.parametrize("name", NAMES)
def test_classes_that_are_named_exist(name: str) -> None:
    spans = code_spans((ROOT / name).read_text())
    words = [span for span in spans if re.fullmatch(r"[A-Z]\w*[a-z]\w*(\.\w+)?", span)]
    missing = []
    for word in words:
        class_name, _, member = word.partition(".")
        if (
            class_name not in ELSEWHERE | OFFICIAL
            and not {class_name, member or class_name} <= defined()
        ):
            missing.append(word)
    assert not missing


@pytest.mark.parametrize("name", NAMES)
def test_modules_and_functions_that_are_named_exist(name: str) -> None:
    spans = code_spans((ROOT / name).read_text())
    words = {span for span in spans if re.fullmatch(r"pulsar_py(\.[a-z_]\w*)+", span)}
    for word in words:
        try:
            resolve_name(word)
        except (ImportError, AttributeError):
            pytest.fail(f"{name}: {word}")


@pytest.mark.parametrize("name", NAMES)
def test_settings_that_are_named_exist(name: str) -> None:
    known = BrokerConfig.declared().keys() | BrokerConfig.settings_without_effect().keys()
    spans = code_spans((ROOT / name).read_text())
    looks_like_one = re.compile(
        r"(?:managedLedger|dbStorage|maxPending|maxMessage|maxConcurrent|subscriptionPattern)\w*[A-Z]\w*"
    )
    missing = [span for span in spans if looks_like_one.fullmatch(span) and span not in known]
    assert not missing


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
