"""`pulsar-py secure`: three commands after installing, an official client publishes over TLS."""

from __future__ import annotations

import http.client
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pulsar
import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.commands import main
from tests.listening_sockets import listening_ports

COMMAND = str(Path(sys.executable).with_name("pulsar-py"))
SECRET = {"ca.key.pem", "broker.key.pem", "tokens.private.key", "operator.jwt", "client.jwt"}


def secure(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["secure", *map(str, arguments)])


def client_of(url: str, directory: Path, token: str) -> pulsar.Client:
    return pulsar.Client(
        url,
        authentication=pulsar.AuthenticationToken((directory / token).read_text()),
        tls_trust_certs_file_path=str(directory / "ca.pem"),
        tls_validate_hostname=True,
        operation_timeout_seconds=10,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )


def plain_http(port: int | None, token: str) -> int:
    """The status of a request with a token in clear text."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("GET", "/admin/v2/clusters", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_three_commands_after_installing_a_client_publishes_over_tls(tmp_path: Path) -> None:
    directory = tmp_path / "secure"
    made = secure("init", "--directory", directory)
    assert made.exit_code == 0, made.output
    command = [COMMAND, "standalone", "--in-memory", "--config", str(directory / "standalone.conf")]
    ports = ["--port", "0", "--web-port", "0"]  # those of TLS: the settings open no others
    process = subprocess.Popen(
        [*command, *ports], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        url, web_url = words[2:4]
        assert (urlsplit(url).scheme, urlsplit(url).hostname) == ("pulsar+ssl", "localhost")
        assert (urlsplit(web_url).scheme, words[4:]) == ("https", ["data", "in", "memory"])
        open_ports = {urlsplit(url).port, urlsplit(web_url).port}
        assert listening_ports(process.pid) == open_ports
        for port in open_ports:
            with pytest.raises((OSError, http.client.HTTPException)):
                plain_http(port, (directory / "operator.jwt").read_text())
        client = client_of(url, directory, "client.jwt")
        with pytest.raises(pulsar.PulsarException):
            client.create_producer("public/default/t")
        allowed = secure(
            "allow", "-d", directory, "client", "public/default", "--web-service-url", web_url
        )
        assert allowed.output == "client may produce and consume in public/default\n"
        client.create_producer("public/default/t").send(b"x")
        client.close()
        refused = secure(
            "allow", "-d", directory, "client", "no/where", "--web-service-url", web_url
        )
        assert (refused.exit_code, "no right was granted" in refused.output) == (1, True)
    finally:
        process.send_signal(signal.SIGTERM)
        log = process.communicate()[1]
    assert "all who reach this machine can connect, and have to authenticate" in log
    assert "can be read by others" not in log
    assert "without TLS" not in log
    for secret in SECRET:
        assert (directory / secret).read_bytes()[:40] not in log.encode()


def test_what_is_secret_is_the_owners_alone_and_no_setting_has_it(tmp_path: Path) -> None:
    assert secure("init", "-d", tmp_path / "s", "--host", "b.example", "-e", "30d").exit_code == 0
    files = {each.name: each for each in (tmp_path / "s").iterdir()}
    assert {name for name, each in files.items() if not each.stat().st_mode & 0o077} == SECRET
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    settings = files["standalone.conf"].read_text()
    assert "advertisedAddress=b.example\n" in settings
    assert re.search(r"eyJ|BEGIN", settings) is None
    assert "https://b.example:8443/" in files["client.conf"].read_text()


def test_what_it_says_is_next_can_be_pasted(tmp_path: Path) -> None:
    directory = tmp_path / "a b"
    said = secure("init", "-d", directory, "--port", "7000", "--web-port", "7001").output
    assert f"  export PULSAR_CLIENT_CONF='{directory}'/client.conf\n" in said
    assert f"  pulsar-py standalone --config '{directory}'/standalone.conf\n" in said
    assert "https://localhost:7001/" in (directory / "client.conf").read_text()
    assert "brokerServicePortTls=7000\n" in (directory / "standalone.conf").read_text()


def test_nothing_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    found = secure("init", "-d", tmp_path)
    assert found.exit_code == 1
    assert "is there already" in found.output
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--operator", "client"], "two roles"),
        (["--port", "8443"], "two ports"),
        (["--host", "b\u00fcro.example"], "neither a name in ASCII nor an address"),
        (["-e", "soon"], "expected such as"),
    ],
)
def test_what_can_not_be_made_leaves_nothing(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    found = secure("init", "-d", tmp_path / "s", *arguments)
    assert found.exit_code == 1
    assert words in found.output
    assert not list(tmp_path.iterdir())


def test_a_directory_of_something_else_is_named(tmp_path: Path) -> None:
    found = secure("allow", "-d", tmp_path, "client", "public/default")
    assert found.exit_code == 1
    assert "secure init" in found.output
