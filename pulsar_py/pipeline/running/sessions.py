"""Opens, checks and closes Spark sessions, also when Java has died (edge).

Unless spark-submit has started Java, this module does, in a process session of its own: so the
terminal's Ctrl-C does not reach it. `SessionSettings.on_java_line` gets the lines that Java prints.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.common.errors import ConfigurationError, PulsarError
from pulsar_py.pipeline.running.java_output import lines_handed_on
from pulsar_py.pipeline.settings.secrets import SENSITIVE_NAMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"
_REAPING_SECONDS: Final = 0.5
"""How long to wait for the system to report that Java has ended, once it does not answer."""
_SECRETS: Final = f"(?i)url|{SENSITIVE_NAMES}"
DEFAULT_CONF: Final[Mapping[str, str]] = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Spark masks options and settings whose names match, in plans and on the pages of its UI.
    "spark.sql.redaction.options.regex": _SECRETS,
    "spark.redaction.regex": _SECRETS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The name, master and settings of a session."""

    app_name: str
    # None: the master that spark-submit has set, otherwise `local[*]`.
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    # Called from a thread with the lines that Java writes to standard error; None: Java inherits
    # the standard error of this process.
    on_java_line: Callable[[str], None] | None = None


def open_session(settings: SessionSettings) -> SparkSession:
    """Open a session with the connector registered; starting Java takes some seconds.

    A thread of its own opens it, because in the main thread PySpark installs its own SIGINT
    handler, which raises KeyboardInterrupt in the middle of a call to Java.

    Raises:
        ConfigurationError: Java is not installed where Spark looks for it.
    """
    prepare_environment(os.environ, resolves=_own_name_resolves())
    opened: Future[SparkSession] = Future()

    def run() -> None:
        try:
            opened.set_result(_start_session(settings))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            opened.set_exception(error)

    threading.Thread(target=run, name="pulsar-py session", daemon=True).start()
    session = opened.result()
    activate(session)
    return session


def _start_session(settings: SessionSettings) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - loads pyspark

    from pulsar_py.spark.source import PulsarDataSource  # noqa: PLC0415 - needs pyspark

    conf = {**DEFAULT_CONF, "spark.app.name": settings.app_name}
    if settings.master is not None or "PYSPARK_GATEWAY_PORT" not in os.environ:
        conf["spark.master"] = settings.master or DEFAULT_MASTER
    conf |= settings.conf
    _start_java(conf, settings.on_java_line)
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.dataSource.register(PulsarDataSource)
    return session


def _start_java(conf: Mapping[str, str], on_line: Callable[[str], None] | None) -> None:
    """Start Java where the terminal's Ctrl-C does not reach it; this process handles that.

    PySpark makes Java ignore SIGINT, but not the Python workers that Java starts. Java ends when
    its standard input is closed, so it does not outlive this process.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - loads pyspark
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - loads pyspark

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001
        return  # Java runs already, started by PySpark or by spark-submit
    prepared = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    start: Any = launch_gateway  # Any: the function has no annotations
    with nullcontext() if on_line is None else lines_handed_on(on_line) as stderr:
        try:
            gateway = start(prepared, {"start_new_session": True, "stderr": stderr})
        except Exception as error:  # whatever the gateway raises: a missing Java is told apart
            if (missing := missing_java(os.environ)) is not None:
                raise ConfigurationError(
                    f"Java, which runs Spark, can't be started: {missing}. Install a Java runtime,"
                    " or set JAVA_HOME to one"
                ) from error
            raise
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - no public call takes one


def missing_java(environ: Mapping[str, str]) -> str | None:
    """Why Spark finds no Java; None if it finds one.

    Source: bin/spark-class in Spark, which looks in JAVA_HOME, then in PATH.
    """
    if not (home := environ.get("JAVA_HOME")):
        is_there = shutil.which("java", path=environ.get("PATH")) is not None
        return None if is_there else "JAVA_HOME is not set, and there is no java in PATH"
    java = Path(home, "bin", "java")
    return None if java.exists() else f"JAVA_HOME is {home}, and there is no {java}"


def use_session(session: SparkSession) -> None:
    """Check a user's session, and make it this thread's active one, which streams use.

    Without the check Spark's own error would name something else than the session.

    Raises:
        ConfigurationError: The session was stopped, or belongs to Spark Connect.
    """
    context = getattr(session, "_sc", None)  # Connect has none, and raises for the public name
    if context is None:
        raise ConfigurationError(
            "session: this is a session of Spark Connect; pipelines need a classic one, made in the"
            " process that runs Spark's driver"
        )
    if context._jsc is None:  # noqa: SLF001 - no public name
        raise ConfigurationError("session: it was stopped; give the pipeline a session that runs")
    activate(session)


class JavaEndedError(PulsarError):
    """The Java process that runs Spark has ended; only a new session can go on."""


def check_java(session: SparkSession) -> None:
    """Check that the Java process that this process started still runs.

    A Java that spark-submit started is not checked: this process ends with it.

    Raises:
        JavaEndedError: Java has ended.
    """
    process = getattr(session.sparkContext._gateway, "proc", None)  # noqa: SLF001 - no public name
    if process is None:
        return
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(_REAPING_SECONDS)
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        raise JavaEndedError(
            f"Java, which runs Spark, has ended {how}; if the system killed it for want of memory,"
            " set --conf spark.driver.memory to less than the machine has free"
        )


def close_session(session: SparkSession) -> None:
    """Stop a session; if Java has ended, make PySpark forget it, so that another can be opened."""
    from pyspark import SparkContext  # noqa: PLC0415 - loads pyspark
    from pyspark.sql import SparkSession  # noqa: PLC0415 - loads pyspark

    try:
        check_java(session)
    except JavaEndedError:
        with suppress(Exception):  # Java does not answer any more
            session.stop()
        # PySpark keeps the dead session in these attributes, and has no public call to clear them.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    else:
        session.stop()


def prepare_environment(environ: MutableMapping[str, str], *, resolves: bool) -> None:
    """Set the workers' interpreter, and an address for Spark if the host's name has none.

    Args:
        environ: The environment that Java inherits; variables that are set stay.
        resolves: Whether the host's own name has an address.
    """
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not resolves:
        environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _own_name_resolves() -> bool:
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return False
    return True


def activate(session: SparkSession) -> None:
    """Make a session this thread's active one; Java keeps it by thread, and finds sinks through it.

    PySpark has no public call for this; its `createDataFrame` uses the same ones.
    """
    java: Any = session._jvm  # noqa: SLF001 - as above; Any: Java's names
    kind = session._get_j_spark_session_class(java)  # noqa: SLF001
    kind.setActiveSession(session._jsparkSession)  # noqa: SLF001
