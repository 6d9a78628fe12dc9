"""Sessions of Spark: opened, checked, and closed, also where Java has ended (edge).

Java is started here unless spark-submit did so, out of the reach of the terminal's signals; what it
prints goes to whoever wants its lines.
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
from pulsar_py.pipeline.java_output import lines_handed_on
from pulsar_py.pipeline.secrets import SENSITIVE_NAMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER: Final = "local[*]"
_REAPING_SECONDS: Final = 0.5
"""From when nobody answers until the system says that Java has ended."""
_SECRETS: Final = f"(?i)url|{SENSITIVE_NAMES}"
DEFAULT_CONF: Final[Mapping[str, str]] = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # What Spark shows of options and settings, in plans and on its pages.
    "spark.sql.redaction.options.regex": _SECRETS,
    "spark.redaction.regex": _SECRETS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """What a session is made of."""

    app_name: str
    # None: spark-submit's, or `local[*]`.
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    # Takes the lines that Java writes to standard error, from a thread; None: they go to ours.
    on_java_line: Callable[[str], None] | None = None


def open_session(settings: SessionSettings) -> SparkSession:
    """A session with the connector registered; starting Java takes some seconds.

    It is made in a thread of its own, because PySpark takes SIGINT for itself when it starts in the
    main one: its handler raises KeyboardInterrupt in the middle of a call to Java.

    Raises:
        ConfigurationError: There is no Java.
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
    from pyspark.sql import SparkSession  # noqa: PLC0415 - late on purpose

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
    """Start Java out of the reach of the terminal's Ctrl-C, which is ours to obey.

    PySpark has Java ignore it, but not the Python workers that Java starts. Java ends when its
    standard input does, so it does not outlive this process.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - late on purpose
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - the same

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001
        return  # it runs
    prepared = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    start: Any = launch_gateway  # has no types
    with nullcontext() if on_line is None else lines_handed_on(on_line) as stderr:
        try:
            gateway = start(prepared, {"start_new_session": True, "stderr": stderr})
        except Exception as error:  # whatever the gateway raises: a missing Java is told apart
            if (missing := missing_java(os.environ)) is not None:
                raise ConfigurationError(
                    f"Java can't be started, which runs Spark: {missing}"
                ) from error
            raise
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - no public call takes one


def missing_java(environ: Mapping[str, str]) -> str | None:
    """Why there is no Java where Spark looks for it; None if there is one.

    Source: Spark's bin/spark-class.
    """
    if not (home := environ.get("JAVA_HOME")):
        is_there = shutil.which("java", path=environ.get("PATH")) is not None
        return None if is_there else "JAVA_HOME is not set, and there is no java in PATH"
    java = Path(home, "bin", "java")
    return None if java.exists() else f"JAVA_HOME is {home}, and there is no {java}"


def use_session(session: SparkSession) -> None:
    """Make a user's session that of this thread, where streams look for their sink.

    Sessions that can't run pipelines are refused: what Spark says of them is about something else.

    Raises:
        ConfigurationError: It was stopped, or is one of Spark Connect.
    """
    context = getattr(session, "_sc", None)  # Connect has none, and raises for the public name
    if context is None:
        raise ConfigurationError(
            "session: this one is of Spark Connect; pipelines need one of the process that runs"
            " Spark's driver"
        )
    if context._jsc is None:  # noqa: SLF001 - no public name
        raise ConfigurationError("session: it was stopped; pipelines need one that runs")
    activate(session)


class JavaEndedError(PulsarError):
    """Java, which runs Spark, was killed or ran out of memory; it takes a new session to go on."""


def check_java(session: SparkSession) -> None:
    """Whether Java runs; spark-submit's is not ours to look at, and ends with this process.

    Raises:
        JavaEndedError: It does not.
    """
    process = getattr(session.sparkContext._gateway, "proc", None)  # noqa: SLF001 - no public name
    if process is None:
        return
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(_REAPING_SECONDS)
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        raise JavaEndedError(
            f"Java, which runs Spark, has ended {how}; it may have been killed for its memory, see"
            " --conf spark.driver.memory"
        )


def close_session(session: SparkSession) -> None:
    """Stop a session; where Java has ended it is forgotten, so that another can be opened."""
    from pyspark import SparkContext  # noqa: PLC0415 - late on purpose
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the same

    try:
        check_java(session)
    except JavaEndedError:
        with suppress(Exception):  # nobody answers
            session.stop()
        # No public call does it.
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    else:
        session.stop()


def prepare_environment(environ: MutableMapping[str, str], *, resolves: bool) -> None:
    """Name this interpreter for the workers, and an address where the host's name has none."""
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
    """Make the session that of this thread: Java keeps it by thread, and sinks are looked up there.

    No public call does it; `createDataFrame` does the same.
    """
    java: Any = session._jvm  # noqa: SLF001 - as above; Any: Java's names
    kind = session._get_j_spark_session_class(java)  # noqa: SLF001
    kind.setActiveSession(session._jsparkSession)  # noqa: SLF001
