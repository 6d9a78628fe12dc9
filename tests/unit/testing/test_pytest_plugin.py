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
