"""`pulsar-py admin` has every word and flag that is documented, and takes what all words take."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from pulsar_py import __version__
from pulsar_py.cli.admin.absent import ABSENT
from pulsar_py.cli.admin.command import GROUPS, admin, command_of, words_of
from pulsar_py.cli.commands import main
from tests.package_source import ROOT
from tests.unit.admin_client.recorded_calls import recording
from tests.unit.cli.admin.replayed import run

SHEET = (ROOT / "tests" / "recordings" / "admin_words.md").read_text()
"""Words and flags, from the documentation of Apache Pulsar 4.2."""
ALIASES = {("topics", "delete"): {"regex"}}
"""A switch of pulsar-admin that has no dashes, by a mistake there; `--regex` here."""


def names_of(group: str, word: str) -> set[str]:
    return {name for option in words_of(group)[word].parsed_options() for name in option.names}


@pytest.mark.parametrize("group", sorted(set(recording()["words"]) - set(ABSENT)))
def test_it_has_what_help_of_pulsar_admin_lists(group: str) -> None:
    for word, given in recording()["words"][group].items():
        assert word in words_of(group), f"{group} {word}"
        theirs = {name for option in given["options"] for name in option["names"]}
        missing = theirs - names_of(group, word) - ALIASES.get((group, word), set())
        assert not missing, f"{group} {word}"
        assert len(given["parameters"]) == len(words_of(group)[word].parameters.split())


def daily_words() -> Iterator[tuple[str, str, list[str]]]:
    """Group, word and flags of the table of daily words."""
    table = SHEET.partition("### 9.3")[0]
    for row in re.findall(r"^\| (\w[\w-]*) \| (`.*) \|$", table, re.MULTILINE):
        for cell in re.findall(r"`([^`]+)`", row[1]):
            word, *rest = re.sub(r"<[^>]*>", "", cell).split()
            yield row[0], word, [name for each in rest for name in each.split("/")]


def policy_words() -> Iterator[tuple[str, str, list[str]]]:
    """Group, word and flags of the tables of policies; a policy of topics is in one group or both."""
    for title, table in re.findall(
        r"\*\*(namespaces|topics / topicPolicies)\*\*\n(.*?)(?=\n\*\*|\n`topicPolicies`|\Z)",
        SHEET,
        re.DOTALL,
    ):
        for policy, verbs, cell in re.findall(
            r"^\| `([\w-]+)` \| ([\w ]+) \| (.*) \|$", table, re.MULTILINE
        ):
            flags = [name for each in re.findall(r"`([^`]+)`", cell) for name in each.split("/")]
            for verb in verbs.split():
                yield title, f"{verb}-{policy}", flags if verb == "set" else []


def test_it_has_the_daily_words() -> None:
    found = list(daily_words())
    assert len(found) == 96
    assert len({group for group, _, _ in found}) == 8
    for group, word, flags in found:
        assert word in words_of(group), f"{group} {word}"
        assert set(flags) <= names_of(group, word), f"{group} {word}: {flags}"


def test_it_has_the_words_of_policies() -> None:
    found = list(policy_words())
    assert len(found) == 213
    for title, word, flags in found:
        groups = ["namespaces"] if title == "namespaces" else ["topics", "topicPolicies"]
        having = [group for group in groups if word in words_of(group)]
        assert having, f"{title} {word}"
        assert any(set(flags) <= names_of(group, word) for group in having), f"{word}: {flags}"


def test_each_word_tells_the_version_but_those_whose_own_flag_it_is() -> None:
    for line in ("-v", "topics list -v", "topics stats --version"):
        _, done = run(*line.split())
        assert (done.exit_code, done.stdout) == (0, f"pulsar-py, version {__version__}\n")
    with_own = [f"{group} {name}" for group in GROUPS for name in words_of(group)
                if "-v" in names_of(group, name)]  # fmt: skip
    assert with_own == [
        "namespaces set-property",
        "schemas get",
        "brokers update-dynamic-config",
    ]


@pytest.mark.parametrize("group", GROUPS)
def test_each_word_makes_a_command(group: str) -> None:
    for word in words_of(group).values():
        command = command_of(word)
        assert command.get_help(click.Context(command))
        assert not word.summary.endswith(".")


def test_help_lists_groups_and_words() -> None:
    _, done = run("--help")
    assert all(each in done.stdout for each in (*GROUPS, *ABSENT))
    _, done = run("topics", "--help")
    assert "peek-messages" in done.stdout
    assert "set-max-producers" not in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tenants nosuch", "No such command 'nosuch'"),
        ("nosuch", "No such command 'nosuch'"),
        ("topic list x", "No such command 'topic'. Did you mean 'topics'"),
        ("topics creat x", "No such command 'creat'. Did you mean 'create'"),
        ("-nosuch", "No such option"),
        ("topics stats", "Missing argument 'TOPIC'"),
        ("topics stats x --nope", "No such option"),
        ("topics skip -s s t", "Missing option '-n'"),
        ("topics skip -s s -n x t", "no whole number"),
        ("namespaces set-retention -t 1x -s 1 t/n", "no time"),
        ("namespaces set-property -k a t/n", "Missing option"),
        ("topics update-properties -p a t", "expected KEY=VALUE"),
        ("brokers healthcheck -tv V3", "V3"),
    ],
)
def test_a_wrong_line_ends_with_2_and_sends_nothing(line: str, said: str) -> None:
    server, done = run(*line.split())
    assert done.exit_code == 2
    assert said in done.stderr
    assert not server.requests


def test_json_and_tables_wherever_the_option_stands() -> None:
    for line in ("-o json tenants list", "tenants list -o json", "tenants list --output json"):
        assert run(*line.split())[1].stdout == '[\n  "a",\n  "b"\n]\n'
    _, done = run("topics", "get-retention", "t", "-o", "table")
    assert done.stdout == "retentionTimeInMinutes  60\nretentionSizeInMB       10\n"
    assert run("-o", "json", "tenants", "list", "-o", "text")[1].stdout == "a\nb\n"


def test_a_dry_run_changes_nothing() -> None:
    for line in ("--dry-run tenants delete t", "tenants delete t --dry-run"):
        server, done = run(*line.split())
        assert not server.requests
        assert done.stdout == (
            "would send DELETE /admin/v2/tenants/t?force=false; lost: tenant t\n"
        )


def test_it_imports_no_loop_and_nothing_of_the_broker() -> None:
    code = (
        "import sys; from pulsar_py.cli.admin import running\n"
        "from pulsar_py.cli.admin.command import GROUPS, words_of\n"
        "for group in GROUPS: words_of(group)\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "asyncio" not in loaded
    assert "rich" not in loaded
    ours = {each.split(".")[1] for each in loaded if each.startswith("pulsar_py.")}
    assert ours <= {"cli", "admin_client", "common", "proto"}


def test_it_is_a_command_of_pulsar_py() -> None:
    assert main.get_command(click.Context(main), "admin") is admin
