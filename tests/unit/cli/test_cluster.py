"""The commands that look into a cluster, and their options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pulsar_py.cli import migration_jobs as jobs
from pulsar_py.cli.commands import main
from pulsar_py.metadata.moved_marker import FILE

NEEDED = ["-c", "c", "-md", "zk:h:1", "-cms", "zk:h:1", "-uw", "http://w:8080"]


@pytest.mark.parametrize(
    "option",
    [
        "--cluster", "--metadata-store", "--configuration-metadata-store", "--web-service-url",
        "--web-service-url-tls", "--broker-service-url", "--broker-service-url-tls",
        "--existing-bk-metadata-service-uri", "--default-namespace-bundle-number",
        "--initial-num-transaction-coordinators", "--initial-num-stream-storage-containers",
        "--tls-enable", "--auth-plugin", "--auth-parameters", "--proxy-url", "--proxy-protocol",
        "--zookeeper-session-timeout-ms",
    ],
)  # fmt: skip
def test_the_tool_takes_apaches_options(option: str) -> None:
    help_text = CliRunner().invoke(main, ["initialize-cluster-metadata", "--help"]).output
    assert option in help_text.replace(",", " ").split()


@pytest.mark.parametrize("missing", range(0, len(NEEDED), 2))
def test_what_is_needed_is_asked_for(missing: int) -> None:
    arguments = NEEDED[:missing] + NEEDED[missing + 2 :]
    done = CliRunner().invoke(main, ["initialize-cluster-metadata", *arguments])
    assert done.exit_code == 2
    assert "Missing option" in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--initial-num-transaction-coordinators", "0"],
        ["--proxy-protocol", "other"],
        ["--default-namespace-bundle-number", "-1"],
    ],
)
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, ["initialize-cluster-metadata", *NEEDED, *arguments])
    assert done.exit_code == 2


@pytest.mark.parametrize(
    "command",
    [
        ["ledger", "list"], ["ledger", "info"], ["ledger", "read"], ["ledger", "orphans"],
        ["metadata", "ls"], ["metadata", "get"], ["metadata", "stat"],
    ],
)  # fmt: skip
def test_what_looks_says_where(command: list[str]) -> None:
    output = CliRunner().invoke(main, [*command, "--help"]).output
    for option in ("--config", "--metadata-store", "--bookkeeper-metadata-service-uri", "-o"):
        assert option in output


def test_ledgers_have_numbers() -> None:
    assert CliRunner().invoke(main, ["ledger", "info", "x"]).exit_code == 2
    assert CliRunner().invoke(main, ["ledger", "info", "-1"]).exit_code == 2


Call = tuple[str, Path, Mapping[str, Any], bool]  # Any: each option has its own type


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    found: list[Call] = []

    def noted(name: str) -> Any:  # Any: a coroutine function
        async def job(data_dir: Path, options: Mapping[str, Any], *, is_dry_run: bool) -> int:
            found.append((name, data_dir, options, is_dry_run))
            return 0

        return job

    for name in ("move_in", "export"):
        monkeypatch.setattr(jobs, name, noted(name))
    return found


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["migrate", *words])
    return result.exit_code, result.output


def test_a_directory_goes_in(calls: list[Call], tmp_path: Path) -> None:
    code, _ = run(str(tmp_path), "--set", "clusterName=c", "--renumber", "--existing", "keep")
    assert code == 0
    ((name, data_dir, options, is_dry_run),) = calls
    assert (name, data_dir, is_dry_run) == ("move_in", tmp_path, False)
    assert options["is_renumbered"]
    assert options["existing"] == "keep"
    assert options["overrides"] == ("clusterName=c",)


def test_a_cluster_comes_out(calls: list[Call], tmp_path: Path) -> None:
    assert run(str(tmp_path / "new"), "--export", "--dry-run")[0] == 0
    ((name, _, options, is_dry_run),) = calls
    assert (name, is_dry_run, options["as_cluster"]) == ("export", True, "standalone")


def test_wrong_usage_ends_with_two(calls: list[Call], tmp_path: Path) -> None:
    code, text = run(str(tmp_path), "--export", "--renumber")
    assert code == 2
    assert "all ids are kept" in text
    code, text = run(str(tmp_path / "missing"))
    assert code == 2
    assert "is no directory" in text
    assert calls == []


def test_a_directory_is_released(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{}")
    code, text = run(str(tmp_path), "--release")
    assert (code, (tmp_path / FILE).exists()) == (0, False)
    assert "may start here again" in text
    assert run(str(tmp_path), "--release")[0] == 1
