"""The commands that look into a cluster, and their options."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pulsar_py.cli.main import main

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
