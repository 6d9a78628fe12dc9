"""Every block of docs/SECURITY.md does what the text around it says: its settings and commands are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import bcrypt
import pytest

from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.security.revoked_tokens import parse_rules
from pulsar_py.standalone import Broker
from tests.certificates import Authority
from tests.document_texts import text_of
from tests.integration.test_authentication import status
from tests.integration.test_tls import client_context, get

SETTING = re.compile(r"(\w+)=(.*)")
FREE_PORTS = {"brokerServicePortTls": "0", "webServicePortTls": "0"}


def blocks() -> list[list[str]]:
    """The indented blocks, in the order of the document."""
    found: list[list[str]] = [[]]
    without_fenced = re.sub(
        r"^```.*?^```", "", text_of("docs/SECURITY.md"), flags=re.MULTILINE | re.DOTALL
    )
    for line in without_fenced.splitlines():
        if line.startswith("    "):
            found[-1].append(line.strip())
        elif found[-1]:
            found.append([])
    return found[:-1] if not found[-1] else found


def settings_of(block: list[str], place: Path) -> dict[str, str]:
    """The settings among a block's lines, with files in a place of the test."""
    pairs = (SETTING.fullmatch(line) for line in block)
    return {each[1]: each[2].replace("/etc/pulsar", str(place)) for each in pairs if each}


BLOCKS = [
    each
    for each in blocks()
    if any(map(SETTING.fullmatch, each)) and "brokerServicePortTls=6651" not in each
]
"""Those with settings, but for that of TLS alone, which has a test of its own."""


def block_with(words: str) -> list[str]:
    """The only block that contains these words."""
    (found,) = [each for each in blocks() if words in "\n".join(each)]
    return found


def run(block: list[str], place: Path) -> None:
    """Run the commands of a block as they stand, with this installation's `pulsar-py`."""
    commands = "\n".join(each for each in block if not SETTING.fullmatch(each))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        ["sh", "-e", "-c", commands.replace("/etc/pulsar", str(place))],
        cwd=place, env=os.environ | {"PATH": path}, check=True, capture_output=True,
    )  # fmt: skip


def with_files(place: Path) -> Authority:
    """Write what the settings name: certificates, keys, users."""
    authority = Authority(place)
    for name, source in zip(("broker.pem", "broker.key.pem"), authority.issue("x"), strict=True):
        (place / name).write_bytes(Path(source).read_bytes())
    for name in ("clients-ca.pem", "issuer-ca.pem"):
        (place / name).write_bytes(Path(authority.path).read_bytes())
    (place / "secret.key").write_bytes(bytes(32))
    (place / "users").write_bytes(b"me:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(4)))
    return authority


@pytest.mark.parametrize("block", BLOCKS, ids=lambda each: each[0].replace("=", "-"))
async def test_a_broker_starts_with_the_settings_of_each_block(
    block: list[str], tmp_path: Path
) -> None:
    with_files(tmp_path)
    settings = settings_of(block, tmp_path)
    assert not settings.keys() - BrokerConfig.declared().keys()
    if "authorizationEnabled" in settings:  # they stand beside those that say who somebody is
        settings |= settings_of(block_with("tokenSecretKey="), tmp_path)
    async with Broker(config=settings) as broker:
        is_guarded = settings.get("authenticationEnabled") == "true"
        assert await status(broker) == (401 if is_guarded else 200)


async def test_the_keys_and_tokens_of_the_document_are_taken(tmp_path: Path) -> None:
    run(block_with("tokens create-secret-key"), tmp_path)
    for name in ("secret.key", "me.jwt"):
        assert not (tmp_path / name).stat().st_mode & 0o077, name
    settings = settings_of(block_with("tokenSecretKey="), tmp_path)
    plugin = {"brokerClientAuthenticationPlugin": "AuthenticationToken"}
    async with Broker(config=settings | plugin) as broker:
        token = (tmp_path / "me.jwt").read_text().strip()
        assert await status(broker, f"Bearer {token}") == 200
        assert await status(broker) == 401


async def test_the_ports_of_the_document_take_tls_alone(tmp_path: Path) -> None:
    authority = with_files(tmp_path)
    settings = settings_of(block_with("tlsCertificateFilePath="), tmp_path)
    async with Broker(config=settings | FREE_PORTS, port=None, web_port=None) as broker:
        url = broker.web_service_url
        assert (urlsplit(url).scheme, urlsplit(broker.service_url).scheme) == (
            "https",
            "pulsar+ssl",
        )
        answer = await get(url, "/admin/v2/clusters", client_context(authority))
        assert answer.startswith(b"HTTP/1.1 200")
        assert not await get(url, "/admin/v2/clusters", None)


def test_the_lines_of_revoked_tokens_are_understood() -> None:
    rules = parse_rules("\n".join(block_with("jti 4f9c2a")).encode())
    assert rules.match({"jti": "4f9c2a", "iat": 2**40})
    assert rules.match({"sub": "reports", "iat": 2**40})
    assert rules.match({"sub": "x", "iat": 1767225599})
    assert not rules.match({"sub": "x", "iat": 1767225600})
