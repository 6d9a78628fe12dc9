from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.shared.worker_python import choose_worker_python, naming_the_interpreter

MINE = "/opt/env/bin/python"


def test_workers_run_the_interpreter_of_the_program() -> None:
    environ: dict[str, str] = {}
    assert choose_worker_python(environ, MINE, is_java_running=False) is None
    assert environ == {"PYSPARK_PYTHON": MINE}


@pytest.mark.parametrize(
    "name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT"]
)
@pytest.mark.parametrize("is_java_running", [False, True])
def test_what_somebody_chose_stays(name: str, *, is_java_running: bool) -> None:
    environ = {name: "other"}
    assert choose_worker_python(environ, MINE, is_java_running=is_java_running) is None
    assert environ == {name: "other"}


def test_it_is_told_when_spark_began_before(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.touch(mode=0o755)
    environ = {"PATH": str(tmp_path)}
    warning = choose_worker_python(environ, MINE, is_java_running=True)
    assert warning is not None
    assert str(python) in warning
    assert f"set PYSPARK_PYTHON={MINE}" in warning
    assert "PYSPARK_PYTHON" not in environ
    own = str(tmp_path / "python")
    assert choose_worker_python(environ, own, is_java_running=True) is None


@pytest.mark.parametrize(
    "text",
    [
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: pulsar.",
        "java.lang.ClassNotFoundException: pulsar.DefaultSource",
    ],
)
def test_a_source_that_spark_does_not_find_is_told_with_what_to_do(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"set PYSPARK_PYTHON="), naming_the_interpreter():
        raise RuntimeError(text)


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(RuntimeError, match=r"^else$"), naming_the_interpreter():
        raise RuntimeError("else")
