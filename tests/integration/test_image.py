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
from collections.abc import Callable, Iterator
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


WAITED_FOR = "Successfully updated the policies on namespace public/default\n"
"""What the module of Testcontainers for Go waits for in the log, beside the list of clusters."""


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
            assert process.stdout.readline() == WAITED_FOR
            for path, body in (("clusters", b'["tests"]'), ("brokers/ready", b"ok")):
                with urllib.request.urlopen(f"{words[3]}/admin/v2/{path}", timeout=30) as answer:
                    assert answer.read() == body
        finally:
            process.terminate()
        assert process.wait(60) == 0
    assert "clusterName=tests\n" in (home / "conf" / "standalone.conf").read_text()
    assert (home / "data").is_dir()


Health = Callable[..., bool]


@pytest.fixture
def is_healthy(home: Path) -> Health:
    """What the image's health check says of a broker with these settings in the environment."""
    text = (ROOT / "docker" / "Dockerfile").read_text()
    found = re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", text, re.MULTILINE)
    assert found is not None
    (program,) = json.loads(found[1])

    def ask(port: int, name: str = "webServicePort", **more: str) -> bool:
        settings = {"webServicePort": "", name: str(port), **more}
        given = {f"PULSAR_PREFIX_{setting}": value for setting, value in settings.items()}
        done = subprocess.run(
            [home / program],
            env=environment(**given),
            capture_output=True,
            text=True,
            check=False,
        )
        assert bool(done.returncode) == done.stderr.startswith("health-check: "), done.stderr
        return done.returncode == 0

    return ask


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


def test_its_health_check_needs_no_rights(is_healthy: Health) -> None:
    key = "data:;base64," + base64.b64encode(bytes(range(32))).decode()
    secured = {
        "authenticationEnabled": True,
        "authenticationProviders": ("token",),
        "tokenSecretKey": key,
    }
    for config in ({}, secured):
        with BrokerThread(config=config) as broker:
            port = port_of(broker.web_service_url)
            assert is_healthy(port)
        assert not is_healthy(port), "it has stopped"


def over_tls(place: Path, *, needs_certificates: bool) -> dict[str, object]:
    """Settings of a broker with HTTPS, which may ask callers for a certificate."""
    authority = Authority(place)
    certificate, key = authority.issue("broker")
    return {
        "webServicePortTls": 0,
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        "tlsTrustCertsFilePath": authority.path,
        "tlsRequireTrustedClientCertOnConnect": needs_certificates,
    }


def test_whoever_answers_nothing_is_not_alive(home: Path) -> None:
    """As a broker that hangs: its port takes connections, and nobody reads them."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        settings = environment(PULSAR_PREFIX_webServicePort=str(hanging.getsockname()[1]))
        begun = time.monotonic()
        done = subprocess.run([home / "bin" / "health-check", "--alive"], env=settings, check=False)
        assert done.returncode == 1
        assert time.monotonic() - begun < 5, "the probe itself waits no longer"


def test_a_broker_with_tls_alone_is_alive(home: Path, tmp_path: Path) -> None:
    """Also to a probe without the certificate that it asks of callers."""
    for is_required in (False, True):
        config = over_tls(tmp_path, needs_certificates=is_required)
        with BrokerThread(config=config) as broker:
            assert broker.web_service_url_tls is not None
            settings = environment(
                PULSAR_PREFIX_webServicePort="",
                PULSAR_PREFIX_webServicePortTls=str(urlsplit(broker.web_service_url_tls).port),
            )
            assert (
                subprocess.run(
                    [home / "bin" / "health-check", "--alive"], env=settings, check=False
                ).returncode
                == 0
            )


@pytest.mark.parametrize("needs_certificates", [False, True])
def test_its_health_check_asks_a_broker_with_tls_alone(
    is_healthy: Health, tmp_path: Path, needs_certificates: bool
) -> None:
    config = over_tls(tmp_path, needs_certificates=needs_certificates)
    with BrokerThread(config=config) as broker:
        assert broker.web_service_url_tls is not None
        port = port_of(broker.web_service_url_tls)
        assert is_healthy(port, "webServicePortTls")
        assert not is_healthy(port), "HTTP in clear text is not what it answers"
    assert not is_healthy(port, "webServicePortTls")


def test_its_health_check_reads_the_file_of_settings(home: Path, is_healthy: Health) -> None:
    with BrokerThread() as broker:
        port = port_of(broker.web_service_url)
        file = home / "conf" / "standalone.conf"
        text = file.read_text().replace("webServicePort=8080", f"webServicePort={port}")
        file.write_text(text)
        program = home / "bin" / "health-check"
        assert subprocess.run([program], env=environment(), check=False).returncode == 0


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
    begin = f"standalone --data-dir {data} --ready-too {WAITED_FOR.strip()}"
    usual = f"{begin} --config {home}/conf/standalone.conf"
    assert called("-nfw", "-nss") == (0, f"{usual} at=")
    assert called("--num-bookies", "3", "--bookkeeper-port=3181") == (0, f"{usual} at=")
    assert called("-a", "here", "--port", "7") == (0, f"{usual} --port 7 at=here")
    given = f"{begin} --config {own}"
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


@pytest.mark.parametrize("name", ["pulsar-daemon", "pulsar-shell"])
def test_programs_that_have_no_place_here_say_so(home: Path, name: str) -> None:
    done = subprocess.run(
        [home / "bin" / name, "start", "standalone"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"{name}: ")


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


@pytest.fixture
def unwritable(tmp_path: Path) -> Iterator[Path]:
    """A file that nobody can write, not even root."""
    file = tmp_path / "some.conf"
    file.write_text("clusterName=a\n#bindAddress=\n")
    if subprocess.run(["chattr", "+i", file], capture_output=True, check=False).returncode:
        pytest.skip("there are no immutable files here")
    yield file
    subprocess.run(["chattr", "-i", file], check=True)


def test_a_file_that_cant_be_written_is_left_to_the_broker(home: Path, unwritable: Path) -> None:
    def run(**given: str) -> tuple[int, str]:
        found = subprocess.run(
            [home / "bin" / "apply-config-from-env.py", unwritable],
            env=environment(**given),
            capture_output=True,
            text=True,
            check=False,
        )
        return found.returncode, found.stderr

    assert run() == (0, "")
    code, text = run(PULSAR_PREFIX_clusterName="b")
    assert code == 0
    assert f"{unwritable} can't be written" in text
    assert "the broker reads PULSAR_PREFIX_<name> by itself" in text
    code, text = run(PULSAR_PREFIX_clusterName="b", clusterName="c", bindAddress="::1")
    assert code == 1
    assert text.endswith("set PULSAR_PREFIX_bindAddress instead\n")


def test_a_file_that_is_not_there_is_named(home: Path) -> None:
    program = home / "bin" / "apply-config-from-env.py"
    found = subprocess.run([program, "/nowhere.conf"], capture_output=True, text=True, check=False)
    reason = "apply-config-from-env.py: /nowhere.conf: No such file or directory\n"
    assert (found.returncode, found.stderr) == (1, reason)


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


def test_the_unit_has_few_rights() -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze")
    unit = ROOT / "packaging" / "pulsar-py.service"
    found = subprocess.run(
        [analyze, "security", "--offline=yes", "--threshold=14", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unrecognized option" in found.stderr:
        pytest.skip("this systemd-analyze looks at no files")
    assert found.returncode == 0, found.stdout
