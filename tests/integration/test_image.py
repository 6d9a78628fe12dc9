"""The image's layout in a scratch directory, called as tools call it; and the unit for systemd."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pulsar_py.testing.broker_thread import BrokerThread
from tests.certificates import Authority

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What the image has as /pulsar."""
    target = tmp_path / "pulsar"
    subprocess.run([ROOT / "docker" / "lay-out", target], check=True)
    return target


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PULSAR_")}
    return kept | {"PATH": f"{PROGRAMS}{os.pathsep}{kept['PATH']}", **more}


def test_it_is_started_as_testcontainers_does(home: Path) -> None:
    command = (
        f"{home}/bin/apply-config-from-env.py {home}/conf/standalone.conf "
        "&& exec bin/pulsar standalone --no-functions-worker -nss"
    )
    settings = environment(
        PULSAR_PREFIX_clusterName="tests",
        PULSAR_PREFIX_brokerServicePort="0",
        PULSAR_PREFIX_webServicePort="0",
        PULSAR_PREFIX_bindAddress="127.0.0.1",
    )
    with subprocess.Popen(
        ["sh", "-c", command], cwd=home, env=settings, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            assert words[:2] == ["pulsar-py", "ready:"]
            for path, body in (("clusters", b'["tests"]'), ("brokers/ready", b"ok")):
                with urllib.request.urlopen(f"{words[3]}/admin/v2/{path}", timeout=30) as answer:
                    assert answer.read() == body
        finally:
            process.terminate()
        assert process.wait(60) == 0
    assert "clusterName=tests\n" in (home / "conf" / "standalone.conf").read_text()
    assert (home / "data").is_dir()


def is_healthy(port: int) -> bool:
    """What the image's health check says of a broker on this port."""
    text = (ROOT / "docker" / "Dockerfile").read_text()
    found = re.search(r"^HEALTHCHECK [^\[]*CMD (\[.*\])$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    program, *arguments = json.loads(found[1].splitlines()[0])
    assert program == "python"
    settings = environment(PULSAR_PREFIX_webServicePort=str(port))
    done = subprocess.run(
        [sys.executable, *arguments], env=settings, capture_output=True, check=False
    )
    return done.returncode == 0


def test_its_health_check_needs_no_rights() -> None:
    key = "data:;base64," + base64.b64encode(bytes(range(32))).decode()
    secured = {
        "authenticationEnabled": True,
        "authenticationProviders": ("token",),
        "tokenSecretKey": key,
    }
    for config in ({}, secured):
        with BrokerThread(config=config) as broker:
            port = urlsplit(broker.web_service_url).port
            assert port is not None
            assert is_healthy(port)
        assert not is_healthy(port), "it has stopped"


def test_whoever_answers_nothing_is_not_alive(home: Path) -> None:
    """As a broker that hangs: its port takes connections, and nobody reads them."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        settings = environment(PULSAR_PREFIX_webServicePort=str(hanging.getsockname()[1]))
        begun = time.monotonic()
        done = subprocess.run([home / "bin" / "alive"], env=settings, check=False)
        assert done.returncode == 1
        assert time.monotonic() - begun < 5, "the probe itself waits no longer"


def test_a_broker_with_tls_alone_is_alive(home: Path, tmp_path: Path) -> None:
    """Also to a probe without the certificate that it asks of callers."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("broker")
    for is_required in (False, True):
        config = {
            "webServicePortTls": 0,
            "tlsCertificateFilePath": certificate,
            "tlsKeyFilePath": key,
            "tlsTrustCertsFilePath": authority.path,
            "tlsRequireTrustedClientCertOnConnect": is_required,
        }
        with BrokerThread(config=config) as broker:
            assert broker.web_service_url_tls is not None
            settings = environment(
                PULSAR_PREFIX_webServicePort="",
                PULSAR_PREFIX_webServicePortTls=str(urlsplit(broker.web_service_url_tls).port),
            )
            assert (
                subprocess.run([home / "bin" / "alive"], env=settings, check=False).returncode == 0
            )


@pytest.fixture
def called(home: Path, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Calls `pulsar standalone` with a `pulsar-py` that prints how it is called itself."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "pulsar-py"
    program.write_text('#!/bin/sh\necho "$*" "at=${PULSAR_PREFIX_advertisedAddress-}"\n')
    program.chmod(0o755)
    settings = environment()
    settings["PATH"] = f"{programs}{os.pathsep}{settings['PATH']}"

    def call(*options: str) -> tuple[int, str]:
        found = subprocess.run(
            [home / "bin" / "pulsar", "standalone", *options],
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )
        return found.returncode, (found.stdout or found.stderr).strip()

    return call


def test_options_of_apache_pulsars_script_are_taken(
    called: Callable[..., tuple[int, str]], home: Path, tmp_path: Path
) -> None:
    data, own = home / "data", tmp_path / "own.conf"
    own.touch()
    usual = f"standalone --data-dir {data} --config {home}/conf/standalone.conf"
    assert called("-nfw", "-nss") == (0, f"{usual} at=")
    assert called("--num-bookies", "3", "--bookkeeper-port=3181") == (0, f"{usual} at=")
    assert called("-a", "here", "--port", "7") == (0, f"{usual} --port 7 at=here")
    given = f"standalone --data-dir {data} --config {own}"
    assert called("-c", str(own), "--set=a=b") == (0, f"{given} --set=a=b at=")
    data.mkdir(exist_ok=True)
    (data / "file").touch()
    assert called("--wipe-data", f"--config={own}") == (0, f"{given} at=")
    assert list(data.iterdir()) == []


def test_options_that_have_no_place_here_say_so(called: Callable[..., tuple[int, str]]) -> None:
    code, text = called("--only-broker")
    assert code == 1
    assert "--only-broker: broker, metadata and ledgers are one process here" in text
    assert called("--config")[0] == 1


def test_settings_of_the_environment_come_into_files(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "some.conf"
    file.write_text("# text\nclusterName=a\n#bindAddress=\nport = 1\n")
    program = home / "bin" / "apply-config-from-env.py"
    settings = environment(
        PULSAR_PREFIX_clusterName="b c=d", bindAddress="::1", other="x", PULSAR_PREFIX_new="n"
    )
    before = file.stat().st_mtime_ns
    subprocess.run([program, file], env=environment(), check=True)
    assert file.stat().st_mtime_ns == before
    subprocess.run([program, file], env=settings, check=True)
    assert file.read_text() == "# text\nclusterName=b c=d\nbindAddress=::1\nport = 1\nnew=n\n"
    found = subprocess.run([program], env=settings, capture_output=True, check=False)
    assert found.returncode == 2


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    unit = (ROOT / "packaging" / "pulsar-py.service").read_text()
    program = tmp_path / "pulsar-py"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    file = tmp_path / "pulsar-py.service"
    file.write_text(unit.replace("/opt/pulsar-py/bin/pulsar-py", str(program)))
    found = subprocess.run(
        ["systemd-analyze", "verify", file], capture_output=True, text=True, check=False
    )
    assert "pulsar-py.service" not in found.stderr, found.stderr
