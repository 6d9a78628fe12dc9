"""reach: where a broker listens when nobody says, and what the log says of who can connect."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
from pathlib import Path

import pytest

from pulsar_py.cli.reach import Reach
from pulsar_py.cli.standalone import reach_of
from pulsar_py.server.config import BrokerConfig

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("settings", "host", "is_of_cluster", "expected"),
    [
        ({}, None, False, ("127.0.0.1", "localhost")),
        ({"bindAddress": ""}, None, False, ("127.0.0.1", "localhost")),
        ({"authenticationEnabled": True}, None, False, ("0.0.0.0", "localhost")),
        ({"bindAddress": "0.0.0.0"}, None, False, ("0.0.0.0", "")),
        ({"bindAddress": "192.0.2.1"}, "127.0.0.1", False, ("127.0.0.1", "")),
        ({"advertisedAddress": "a"}, None, False, ("127.0.0.1", "a")),
        ({}, None, True, ("0.0.0.0", socket.getfqdn())),
        ({"bindAddress": "127.0.0.1"}, None, True, ("127.0.0.1", "")),
    ],
)
def test_where_a_broker_listens(
    *,
    settings: dict[str, object],
    host: str | None,
    is_of_cluster: bool,
    expected: tuple[str, str],
) -> None:
    reach = reach_of(BrokerConfig(**settings), host, is_of_cluster=is_of_cluster)
    assert (reach.host, reach.advertised) == expected


@pytest.mark.parametrize(
    ("host", "is_authenticated", "level", "words"),
    [
        ("127.0.0.1", False, logging.INFO, "programs of this machine can connect and do everyth"),
        ("127.0.0.1", True, logging.INFO, "programs of this machine can connect, and have to"),
        ("0.0.0.0", False, logging.WARNING, "all who reach this machine can connect and do every"),
        ("0.0.0.0", True, logging.INFO, "all who reach this machine can connect, and have to"),
    ],
)
def test_one_line_says_who_can_reach_it(
    *, host: str, is_authenticated: bool, level: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    Reach(host=host, advertised="localhost", is_authenticated=is_authenticated).log()
    (record,) = caplog.records
    assert record.levelno == level
    assert words in record.message


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_broker_of_a_cluster_warns_without_authentication_wherever_it_listens(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = BrokerConfig(bindAddress=host, advertisedAddress="localhost")
    reach_of(config, None, is_of_cluster=True).log()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "authentication is off" in record.message


@pytest.mark.parametrize(("advertised", "warns"), [("", True), ("localhost", False)])
def test_a_broker_of_a_cluster_on_loopback_warns_if_no_address_is_advertised(
    *, advertised: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    config = BrokerConfig(bindAddress="127.0.0.1", advertisedAddress=advertised)
    reach_of(config, None, is_of_cluster=True).log()
    assert ("are told a loopback address" in caplog.text) == warns
    caplog.clear()
    reach_of(config, None, is_of_cluster=False).log()
    assert not caplog.records


def test_an_address_for_clients_at_which_nobody_listens_brings_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = BrokerConfig(bindAddress="127.0.0.1", advertisedAddress="broker1.example")
    reach_of(config, None, is_of_cluster=True).log()
    assert "an address at which nobody listens" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["standalone", "--no-functions-worker", "-nss", "--set", "a=b c"],
            (
                f"standalone|--data-dir|{ROOT}/docker/data|--ready-too|"
                "Successfully updated the policies on namespace public/default|--set|a=b c|"
            ),
        ),
        (["tokens", "show", "-nss"], "tokens|show|-nss|"),
    ],
)
def test_the_script_of_the_image_listens_on_all_addresses(
    arguments: list[str], expected: str, tmp_path: Path
) -> None:
    command = tmp_path / "pulsar-py"
    command.write_text('#!/bin/sh\nprintf "%s|" "$PULSAR_PREFIX_bindAddress" "$@"\n')
    command.chmod(0o700)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = [str(ROOT / "docker" / "bin" / "pulsar"), *arguments]
    found = subprocess.run(script, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == f"0.0.0.0|{expected}"
