"""Sessions of Spark, with others in Java's place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.running.sessions import (
    JavaEndedError,
    check_java,
    close_session,
    missing_java,
    prepare_environment,
    use_session,
)


def test_the_environment_of_a_session() -> None:
    environ = {"PYSPARK_PYTHON": "mine"}
    prepare_environment(environ, resolves=True)
    assert environ == {"PYSPARK_PYTHON": "mine"}
    environ = {}
    prepare_environment(environ, resolves=False)
    assert environ == {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


class Session:
    """What is asked of a session, with a process in Java's place."""

    def __init__(self, program: str | None) -> None:
        started = None if program is None else subprocess.Popen([sys.executable, "-c", program])
        self.sparkContext = SimpleNamespace(_gateway=SimpleNamespace(proc=started))
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True
        if self.sparkContext._gateway.proc.poll() is not None:
            raise ConnectionRefusedError


def test_a_session_whose_java_has_ended_makes_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pyspark = pytest.importorskip("pyspark")
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        monkeypatch.setattr(pyspark.SparkContext, name, name)
    session: Any = Session("import os; os.kill(os.getpid(), 9)")
    session.sparkContext._gateway.proc.wait()
    with pytest.raises(JavaEndedError, match="Java, which runs Spark, has ended by signal 9"):
        check_java(session)
    close_session(session)
    assert session.is_stopped
    assert pyspark.SparkContext._gateway is None
    assert pyspark.SparkContext._active_spark_context is None


def test_a_session_whose_java_runs_is_stopped() -> None:
    pytest.importorskip("pyspark")
    session: Any = Session("import time; time.sleep(60)")
    close_session(session)
    assert session.is_stopped
    session.sparkContext._gateway.proc.kill()
    session.sparkContext._gateway.proc.wait()
    check_java(cast("Any", Session(None)))


@pytest.mark.parametrize(
    ("session", "told"),
    [
        (SimpleNamespace(_sc=SimpleNamespace(_jsc=None)), "it was stopped"),
        (SimpleNamespace(), "Spark Connect"),
    ],
)
def test_sessions_that_cannot_run_pipelines_are_refused(session: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        use_session(session)


def test_where_java_is_looked_for(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    environ = {"JAVA_HOME": str(tmp_path), "PATH": str(java.parent)}
    in_path = {"PATH": str(java.parent)}
    assert missing_java(environ) == f"JAVA_HOME is {tmp_path}, and there is no {java}"
    assert missing_java(in_path) == "JAVA_HOME is not set, and there is no java in PATH"
    java.parent.mkdir()
    java.touch(mode=0o755)
    assert missing_java(environ) is None
    assert missing_java(in_path) is None
