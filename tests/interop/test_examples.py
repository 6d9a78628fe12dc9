"""Every example runs as its first lines say, against a real broker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.interop.conftest import Address

EXAMPLES = Path(__file__).parents[2] / "examples"

RUN_ELSEWHERE = {
    "fastapi_service.py": "integration/client/test_service_example",
    "file_through_a_killed_broker.py": "interop/test_main_job",
}


def run(*command: str) -> str:
    result = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_first_program_receives_what_it_sent(address: Address) -> None:
    assert "hello" in run(str(EXAMPLES / "first_program.py"), address.service_url)


def test_the_embedded_broker_serves_a_client_in_a_thread() -> None:
    assert "one coffee" in run(str(EXAMPLES / "embedded_broker.py"))


def test_the_fixtures_serve_tests_of_a_user() -> None:
    path = str(EXAMPLES / "test_with_a_broker.py")
    output = run("-m", "pytest", "-q", "-p", "no:cacheprovider", path)
    assert "3 passed" in output


def test_each_example_is_run_by_a_test() -> None:
    here = Path(__file__).read_text()
    missing = [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in here]
    assert not missing
    for module in RUN_ELSEWHERE.values():
        assert (Path(__file__).parents[1] / f"{module}.py").exists()
