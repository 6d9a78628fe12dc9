"""Every block of docs/SECURITY.md does what the text around it says: its settings and commands are run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
from tests.integration.test_proxies import connect_command
from tests.integration.test_tls import client_context, get
from tests.interop.broker_process import free_port
from tests.package_source import ROOT

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


def run(block: list[str], place: Path) -> str:
    """Run the commands of a block as they stand, with this installation's `pulsar-py`.

    Returns what they print.
    """
    commands = "\n".join(each for each in block if not SETTING.fullmatch(each))
    return output_of(["sh", "-e", "-c", commands.replace("/etc/pulsar", str(place))], place)


def output_of(command: list[str], place: Path) -> str:
    """What a command that ends well prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fenced(language: str) -> list[str]:
    """The fenced blocks of a language; those that name none with ""."""
    pattern = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        each[2] for each in pattern.finditer(text_of("docs/SECURITY.md")) if each[1] == language
    ]


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


async def test_a_certificate_of_the_document_says_who_a_client_is(tmp_path: Path) -> None:
    authority = with_files(tmp_path)
    await asyncio.to_thread(run, block_with("openssl x509"), tmp_path)
    for name in ("clients-ca.key.pem", "reports.key.pem"):
        assert not (tmp_path / name).stat().st_mode & 0o077, name
    settings = settings_of(block_with("tlsCertificateFilePath="), tmp_path)
    settings |= settings_of(block_with("authenticationProviders=tls"), tmp_path)
    own = (str(tmp_path / "reports.pem"), str(tmp_path / "reports.key.pem"))
    async with Broker(config=settings | FREE_PORTS, port=None, web_port=None) as broker:
        path = "/admin/v2/clusters"
        answer = await get(broker.web_service_url, path, client_context(authority, own))
        assert answer.startswith(b"HTTP/1.1 200"), answer
        answer = await get(broker.web_service_url, path, client_context(authority))
        assert answer.startswith(b"HTTP/1.1 401"), answer


def test_the_lines_of_revoked_tokens_are_understood() -> None:
    rules = parse_rules("\n".join(block_with("jti 4f9c2a")).encode())
    assert rules.match({"jti": "4f9c2a", "iat": 2**40})
    assert rules.match({"sub": "reports", "iat": 2**40})
    assert rules.match({"sub": "x", "iat": 1767225599})
    assert not rules.match({"sub": "x", "iat": 1767225600})


@contextmanager
def started(command: str, place: Path) -> Iterator[list[str]]:
    """A broker that the document's command starts, on free ports and in memory; yields its URLs."""
    words = [*command.split(), "--in-memory", "--port", "0", "--web-port", "0"]
    program = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
    with subprocess.Popen(
        program, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2:4]
        finally:
            process.send_signal(signal.SIGTERM)


def test_three_commands_serve_both_clients_the_tools_and_the_example(tmp_path: Path) -> None:
    init, standalone, allow = block_with("pulsar-py secure init")
    run([init], tmp_path)
    with started(standalone, tmp_path) as (url, web_url):
        run([f"{allow} --web-service-url {web_url}"], tmp_path)
        for program in fenced("python"):
            assert "pulsar+ssl://localhost:6651" in program
            here = program.replace("pulsar+ssl://localhost:6651", url)
            assert output_of([sys.executable, "-c", here], tmp_path).strip()
        settings = tmp_path / "secure" / "client.conf"
        text = settings.read_text().replace("https://localhost:8443", web_url)
        settings.write_text(text)
        assert "[produce, consume]" in run(block_with("PULSAR_CLIENT_CONF"), tmp_path)
        example = [sys.executable, str(ROOT / "examples" / "client" / "secure.py"), url]
        assert output_of(example, tmp_path) == "for your eyes only\n"


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")
@pytest.mark.parametrize("option", ["send-proxy", "send-proxy-v2"])
async def test_haproxy_with_the_document_s_lines_tells_the_broker_who_connects(
    tmp_path: Path, option: str
) -> None:
    authority = with_files(tmp_path)
    settings = settings_of(block_with("haProxyProtocolEnabled="), tmp_path)
    settings |= settings_of(block_with("tlsCertificateFilePath="), tmp_path) | FREE_PORTS
    settings["trustedProxyAddresses"] = "127.0.0.1"
    async with Broker(config=settings, port=None, web_port=None) as broker:
        (lines,) = fenced("")
        assert "send-proxy-v2 " in lines
        lines = lines.replace("send-proxy-v2", option)
        balancer_port = free_port()
        lines = lines.replace("bind :6651", f"bind 127.0.0.1:{balancer_port}")
        lines = lines.replace("10.0.4.1:6651", broker.service_url.partition("://")[2])
        timeouts = "".join(f"    timeout {each} 60s\n" for each in ("connect", "client", "server"))
        (tmp_path / "haproxy.cfg").write_text(f"defaults\n{timeouts}{lines}")
        balancer = await asyncio.create_subprocess_exec(
            "haproxy", "-q", "-db", "-f", str(tmp_path / "haproxy.cfg")
        )
        try:
            async with asyncio.timeout(60):
                reader, writer = await connected(balancer_port, client_context(authority))
                writer.write(connect_command())
                assert await reader.read(4096)
            host, port = writer.get_extra_info("sockname")
            (cnx,) = broker.service.connections._open
            assert cnx.remote_address == f"/{host}:{port}"
            writer.close()
        finally:
            balancer.terminate()
            await balancer.wait()


async def connected(
    port: int, context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection through a balancer that is starting, and whose servers are being checked."""
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port, ssl=context)
        except OSError:
            await asyncio.sleep(0.05)
