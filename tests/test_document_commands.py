"""Commands, flags and settings that documents and examples name are there."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from functools import cache

import click
import pytest

from docs import make_recording
from pulsar_py.cli.commands import main
from pulsar_py.server.config import BrokerConfig
from tests.document_texts import NAMES, WRITTEN, block_lines, code_spans, literals, text_of
from tests.package_source import ROOT

PROGRAMS = [
    str(path.relative_to(ROOT))
    for folder in ("examples", "benchmarks", "docs", "proto")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
"""Programs of the checkout: their docstrings say how they are started."""

FLAGS_OF_OTHERS = {"--py-files", "--archives", "--disable-gil"}
"""Of `spark-submit`, and of CPython's `configure`."""

PYTHON = re.compile(r"(?:\.venv/bin/)?(?:python|pytest)3? (.*)")
PULSAR_PY = re.compile(r"(?:\.venv/bin/)?pulsar-py( .*)?")
MAKE = re.compile(r"make (.*)")
PIP = re.compile(r"pip install '\.\[([\w,]+)\]'")


@cache
def make_targets() -> frozenset[str]:
    heads = re.findall(r"^([\w -]+):(?!=)", text_of("Makefile"), re.MULTILINE)
    return frozenset(target for head in heads for target in head.split())


@cache
def extras() -> frozenset[str]:
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    return frozenset(project["optional-dependencies"])


@cache
def flags_of_pulsar_py() -> frozenset[str]:
    found: set[str] = set()
    left: list[click.Command] = [main]
    while left:
        command = left.pop()
        found |= _flags(command)
        context = click.Context(command)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                left.append(child)
    return frozenset(found)


@cache
def flags_of_programs() -> frozenset[str]:
    """Flags that programs, tests and their options define."""
    paths = [ROOT / name for name in PROGRAMS] + list((ROOT / "tests").glob("**/conftest.py"))
    texts = [path.read_text() for path in [*paths, ROOT / "proto" / "generate.py"]]
    return frozenset(flag for text in texts for flag in re.findall(r'"(--[a-z][\w-]*)"', text))


def _flags(command: click.Command) -> set[str]:
    """Of one command, with those that say no and those for help."""
    found = set(command.get_help_option_names(click.Context(command)))
    for parameter in command.params:
        found.update(parameter.opts + parameter.secondary_opts)
    return found


def _understood_by_pulsar_py(words: list[str]) -> bool:
    """Whether commands and flags are there; values and arguments are not looked at."""
    command: click.Command = main
    context = click.Context(main)
    for word in words:
        if word.startswith("--"):
            flag = word.partition("=")[0]
            if flag not in _flags(command):
                return False
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z-]+,?", word):
            found = command.get_command(context, word.rstrip(","))
            if found is None:
                return False
            if not word.endswith(","):  # a list of commands of one group otherwise
                command = found
    return True


def _understood_by_python(words: list[str]) -> bool:
    """Whether a program of the checkout is there and has the flags that it is given."""
    if words[0] == "-m":
        base = ROOT.joinpath(*words[1].split("."))
        paths = [base.with_suffix(".py"), base / "__main__.py"]
        words = words[1:]
    else:
        paths = [ROOT / words[0]]
    found = [path for path in paths if path.exists()]
    flags = [
        word.partition("=")[0].strip("[]") for word in words if word.lstrip("[").startswith("--")
    ]
    return bool(found) and all(f'"{flag}"' in found[0].read_text() for flag in flags)


def understood(line: str) -> bool:
    """Whether a command line names what is there; lines of other programs are taken."""
    words = [word for word in shlex.split(line, comments=True) if word not in {"&", "..."}]
    line = " ".join(words)
    if match := PULSAR_PY.fullmatch(line):
        return _understood_by_pulsar_py((match[1] or "").split())
    if match := PYTHON.fullmatch(line):
        return _understood_by_python(match[1].split())
    if match := MAKE.fullmatch(line):
        return set(match[1].split()) <= make_targets()
    return True


@pytest.mark.parametrize("name", NAMES)
def test_commands_that_documents_name_are_there(name: str) -> None:
    text = text_of(name)
    commands = re.compile(r"(?:\.venv/bin/)?(?:pulsar-py|python|pytest|make)\b.*")
    lines = [line for line in block_lines(text) + code_spans(text) if commands.fullmatch(line)]
    assert not [line for line in lines if not understood(line)]


@pytest.mark.parametrize("name", NAMES)
def test_extras_that_documents_install_are_there(name: str) -> None:
    named = {extra for found in PIP.findall(text_of(name)) for extra in found.split(",")}
    assert named <= extras()


@pytest.mark.parametrize("name", WRITTEN)
def test_flags_that_documents_name_are_there(name: str) -> None:
    spans = code_spans(text_of(name))
    named = {match[0] for span in spans if (match := re.match(r"--[a-z][\w-]*", span))}
    assert named <= flags_of_pulsar_py() | flags_of_programs() | FLAGS_OF_OTHERS


@pytest.mark.parametrize("name", PROGRAMS)
def test_commands_in_the_heads_of_programs_are_there(name: str) -> None:
    head = ast.get_docstring(ast.parse(text_of(name))) or ""
    lines = re.findall(
        r"^ *((?:\.venv/bin/)?(?:pulsar-py|python|pytest|make) .*)$", head, re.MULTILINE
    )
    assert not [line for line in lines if not understood(line)]


@pytest.mark.parametrize("name", [*WRITTEN, "docker/Dockerfile", "docker/compose.yaml", "Makefile"])
def test_settings_that_are_given_values_exist(name: str) -> None:
    known = BrokerConfig.declared().keys() | BrokerConfig.settings_without_effect().keys()
    given = re.findall(r"(?:--set |PULSAR_PREFIX_)(\w+)", text_of(name))
    assert {setting for setting in given if setting != "NAME"} <= known


def unknown_settings(text: str) -> list[str]:
    """Settings that lines `name=value` of code blocks set and that no broker has."""
    known = BrokerConfig.declared().keys() | BrokerConfig.settings_without_effect().keys()
    lines = [re.match(r"([a-z]+[A-Z]\w*)=", line) for line in block_lines(text)]
    return [match[1] for match in lines if match and match[1] not in known]


@pytest.mark.parametrize("name", WRITTEN)
def test_settings_in_code_blocks_exist(name: str) -> None:
    assert not unknown_settings(text_of(name))


def test_the_page_of_commands_has_every_command() -> None:
    named = set(re.findall(r"`pulsar-py ([a-z-]+)", text_of("docs/COMMANDS.md")))
    assert not set(main.list_commands(click.Context(main))) - named


@cache
def words_of_the_code() -> frozenset[str]:
    """Words within literals of the package, and of the messages' sources."""
    texts = [*literals(), *(path.read_text() for path in (ROOT / "proto").glob("*.proto"))]
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


NOT_OURS = {
    "expireTimeOfIncompleteChunkedMessage",  # of the Java client
    "maxOffsetsPerTrigger", "startingTimestamp", "endingTimestamp",  # of other connectors
    "subscribePattern", "includeHeaders",
    "endOffset", "latestOffset", "groupBy",  # of Spark
    "writeLegacyFormat", "datetimeRebaseModeInWrite",
    "requiredDuringSchedulingIgnoredDuringExecution",  # of Kubernetes
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_settings_options_and_keys_that_documents_name_exist(name: str) -> None:
    known = BrokerConfig.declared().keys() | BrokerConfig.settings_without_effect().keys()
    spans = code_spans(text_of(name))
    named = {
        match[1] for span in spans if (match := re.fullmatch(r"([a-z]+[A-Z]\w*)(?:=.*)?", span))
    }
    assert not named - known - NOT_OURS - words_of_the_code()


def test_what_is_not_there_is_not_understood() -> None:
    assert not understood("pulsar-py standalone --no-such-flag")
    assert not understood("pulsar-py storage no-such-command")
    assert not understood(".venv/bin/python -m benchmarks --no-such-flag")
    assert not understood("python examples/no_such_program.py")
    assert not understood("make no-such-target")
    assert unknown_settings("    noSuchSetting=true") == ["noSuchSetting"]
    assert understood("pulsar-py storage verify DIR")


def test_the_recording_is_of_commands_that_are_there() -> None:
    picture = re.sub(r"<[^>]*>", "", make_recording.PICTURE.read_text()).replace("&#160;", " ")
    for words in (make_recording.STANDALONE, *make_recording.PROGRAMS):
        assert understood(" ".join(words))
        assert " ".join(words) in picture
    assert "pulsar-py ready: pulsar://" in picture
    assert "lines came back, complete and in order" in picture


def test_a_session_is_drawn_line_by_line() -> None:
    drawn = make_recording.drawn([make_recording.Said("echo a; echo b", "a\nb")])
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", drawn)
    assert [text.replace("&#160;", " ").strip() for text in texts if text.strip()][-3:] == [
        "echo a; echo b", "a", "b",
    ]  # fmt: skip
    assert "http" not in re.sub(r'xmlns="[^"]*"|<!--.*?-->', "", drawn, flags=re.DOTALL)
