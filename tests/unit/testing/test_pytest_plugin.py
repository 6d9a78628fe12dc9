"""The fixtures that come with the package."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from pulsar_py.standalone import Broker
from pulsar_py.testing.broker_thread import BrokerThread


def clusters(web_service_url: str) -> bytes:
    with urllib.request.urlopen(web_service_url + "/admin/v2/clusters") as answer:
        return bytes(answer.read())


def test_pulsar_broker_serves_blocking_tests(pulsar_broker: BrokerThread) -> None:
    assert clusters(pulsar_broker.web_service_url) == b'["standalone"]'


async def test_async_pulsar_broker_runs_in_the_loop_of_the_test(
    async_pulsar_broker: Broker,
) -> None:
    await async_pulsar_broker.service.check_health()


def test_without_pytest_asyncio_the_fixture_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "pytest_asyncio.py").write_text("raise ImportError")
    (tmp_path / "test_it.py").write_text("def test_it(async_pulsar_broker): pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "pulsar_py.testing.pytest_plugin",
        "test_it.py",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "async_pulsar_broker needs pytest-asyncio: pip install" in done.stdout


def test_the_plugin_loads_nothing_of_ours_before_it_is_used() -> None:
    code = (
        "import sys, pulsar_py.testing.pytest_plugin;"
        "print(sorted(m for m in sys.modules if m.startswith('pulsar_py.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['pulsar_py.testing', 'pulsar_py.testing.pytest_plugin']"


def run_tests(directory: Path, *, test: str, conftest: str = "") -> str:
    """Run a test module in a pytest of its own; what it printed."""
    (directory / "test_it.py").write_text(f"import logging, pytest\n{test}")
    (directory / "conftest.py").write_text(f"import pytest\n{conftest}")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers"]
    plugins = ["-p", "pulsar_py.testing.pytest_plugin", "-p", "pytest_asyncio.plugin"]
    done = subprocess.run(
        [*command, *plugins, "--asyncio-mode=auto", "test_it.py"],
        cwd=directory,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_options_come_from_the_run_the_marker_and_the_parameter(tmp_path: Path) -> None:
    output = run_tests(
        tmp_path,
        conftest=(
            "@pytest.fixture(scope='session')\n"
            "def pulsar_broker_options():\n"
            "    return {'config': {'clusterName': 'run', 'maxMessageSize': 4711}}\n"
        ),
        test="""
import asyncio, urllib.request
from pulsar_py.server.config import BrokerConfig
def message_size(broker):
    return broker._broker._config.maxMessageSize
def cluster(broker):
    with urllib.request.urlopen(broker.web_service_url + "/admin/v2/clusters") as answer:
        return answer.read()
def test_run(pulsar_broker, session_pulsar_broker):
    assert cluster(pulsar_broker) == cluster(session_pulsar_broker) == b'["run"]'
@pytest.mark.pulsar_broker(config={"clusterName": "marked"})
def test_marker(pulsar_broker):
    assert cluster(pulsar_broker) == b'["marked"]'
    assert message_size(pulsar_broker) == 4711, "a setting of the run that the marker leaves alone"
@pytest.mark.pulsar_broker(config=BrokerConfig(maxMessageSize=1024))
@pytest.mark.parametrize("pulsar_broker", [{"config": {"clusterName": "given"}}], indirect=True)
def test_parameter(pulsar_broker):
    assert cluster(pulsar_broker) == b'["given"]'
    assert message_size(pulsar_broker) == 1024
@pytest.mark.pulsar_broker(config=BrokerConfig())
def test_whole(pulsar_broker):
    assert cluster(pulsar_broker) == b'["standalone"]', "a whole configuration replaces"
@pytest.mark.parametrize(
    "session_pulsar_broker", [{"config": {"clusterName": "s"}}], indirect=True
)
def test_parameter_of_the_session(session_pulsar_broker):
    assert cluster(session_pulsar_broker) == b'["s"]'
@pytest.mark.pulsar_broker(config={"clusterName": "marked"})
async def test_async(async_pulsar_broker):
    assert await asyncio.to_thread(cluster, async_pulsar_broker) == b'["marked"]'
""",
    )
    assert "6 passed" in output, output


def test_wrong_options_are_told_where_they_are_given(tmp_path: Path) -> None:
    output = run_tests(
        tmp_path,
        test="""
@pytest.mark.pulsar_broker(prt=1)
def test_name(pulsar_broker): ...
@pytest.mark.pulsar_broker(config={"maxMesageSize": 1})
async def test_setting(async_pulsar_broker): ...
@pytest.mark.pulsar_broker({"clusterName": "c"})
def test_position(pulsar_broker): ...
@pytest.mark.parametrize("pulsar_broker", [7], indirect=True)
def test_parameter(pulsar_broker): ...
@pytest.mark.pulsar_broker(config={"clusterName": "c"})
def test_of_the_session(session_pulsar_broker): ...
@pytest.mark.pulsar_broker(config={"clusterName": "c"})
def test_of_both(session_pulsar_broker, pulsar_broker): ...
""",
    )
    assert "1 passed" in output, output
    assert "5 errors" in output, output
    assert "no effect on session_pulsar_broker, which is one for the whole run" in output
    assert "@pytest.mark.pulsar_broker has no option prt, did you mean port?" in output
    wrong = "@pytest.mark.pulsar_broker: config: unknown setting maxMesageSize"
    assert wrong in output
    assert "exception occurred" not in output
    assert "takes options by name" in output
    assert "the parameter of pulsar_broker: expected a dict of options, got 7" in output


def test_a_test_without_a_loop_is_refused_before_it_begins(tmp_path: Path) -> None:
    output = run_tests(
        tmp_path,
        test="""
import pytest_asyncio

def test_without(async_pulsar_broker):
    assert False, "it has begun"
@pytest_asyncio.fixture
async def status(async_pulsar_broker):
    await async_pulsar_broker.service.check_health()
    return "healthy"
def test_of_what_came_out(status):
    assert status == "healthy"
@pytest.mark.usefixtures("async_pulsar_broker")
def test_beside(): ...
""",
    )
    assert "2 passed" in output, output
    assert "1 error" in output, output
    assert "test_without is no `async def`, so no loop would run for async_pulsar_broker" in output
    assert "take pulsar_broker, which runs in a thread" in output
    assert "it has begun" not in output


def test_a_failed_test_reports_what_its_broker_logged_and_other_logs_stay_as_they_are(
    tmp_path: Path,
) -> None:
    output = run_tests(
        tmp_path,
        test="""
def test_fails(pulsar_broker, caplog):
    assert not caplog.records, "INFO goes to the broker's log alone"
    assert False
async def test_fails_too(async_pulsar_broker):
    assert False
def test_all_is_as_before():
    logger = logging.getLogger("pulsar_py.standalone")
    assert (logger.level, logger.filters) == (0, [])
def test_passes(session_pulsar_broker, pulsar_broker):
    pulsar_broker.restart()
def test_fails_with_the_sessions(session_pulsar_broker):
    assert False
""",
    )
    assert "3 failed, 2 passed" in output, output
    for name in ("pulsar_broker", "async_pulsar_broker", "session_pulsar_broker"):
        log = output.partition(f"- Log of {name} -")[2].partition("\n---")[0]
        assert "INFO pulsar_py.standalone: broker started service_url=pulsar://127.0.0.1:" in log
    assert "INFO  " not in output, "no broker's INFO among the logs that pytest captures"


def test_a_restart_within_a_test_keeps_the_data(pulsar_broker: BrokerThread) -> None:
    url = f"{pulsar_broker.web_service_url}/admin/v2/persistent/public/default/kept"
    with urllib.request.urlopen(urllib.request.Request(url, method="PUT")):
        pass
    pulsar_broker.restart()
    with urllib.request.urlopen(f"{url}/stats") as answer:
        assert answer.status == 200
