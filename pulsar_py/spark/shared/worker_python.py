"""Has Spark's Python workers run the interpreter of the program, where nobody chose another (edge).

Spark starts `python3` of the PATH to look for data sources, and as its workers. A program that is
run as `.venv/bin/python program.py`, with an environment that is not activated, has another one
there, which knows nothing of this package: Spark answers `Failed to find the data source: pulsar`
or `ClassNotFoundException: pulsar.DefaultSource`. Importing this module, as `pulsar_py.spark` does,
puts things right as long as Java does not run yet: it inherits the environment of its start.

Source: PYSPARK_PYTHON in Spark's configuration; PythonUtils.defaultPythonExec in Spark.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pulsar_py.common.errors import ConfigurationError

__all__ = ["choose_worker_python", "naming_the_interpreter"]

logger = logging.getLogger(__name__)

_CHOSEN: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT")
"""Variables that say which interpreter it is to be; the last is there under spark-submit, whose
Java runs already and has been told."""
_NOT_FOUND: Final = ("DATA_SOURCE_NOT_FOUND", "pulsar.DefaultSource")
"""What Spark's errors have in them that found no data source."""


def choose_worker_python(
    environ: MutableMapping[str, str], executable: str, *, is_java_running: bool
) -> str | None:
    """Set `PYSPARK_PYTHON` unless somebody has; returns a warning where it is too late.

    Args:
        environ: The environment that Java will inherit.
        executable: The interpreter of this program.
        is_java_running: Whether Java has inherited the environment already.
    """
    if not executable or any(name in environ for name in _CHOSEN):
        return None
    if not is_java_running:
        environ["PYSPARK_PYTHON"] = executable
        return None
    found = shutil.which("python3", path=environ.get("PATH"))
    if found is not None and Path(found).parent == Path(executable).parent:
        return None
    return (
        f"Spark began before pulsar_py.spark was imported, and its Python workers run {found}, "
        f"not this program's {executable}: {_advice(executable)}"
    )


def _choose() -> None:
    warning = choose_worker_python(os.environ, sys.executable, is_java_running=_is_java_running())
    if warning is not None:
        logger.warning("%s", warning)


def _is_java_running() -> bool:
    module = sys.modules.get("pyspark.core.context")
    context = getattr(module, "SparkContext", None)
    return getattr(context, "_gateway", None) is not None


def _advice(executable: str) -> str:
    return (
        "import pulsar_py.spark before the session is made, activate the environment, or set "
        f"PYSPARK_PYTHON={executable}"
    )


@contextmanager
def naming_the_interpreter() -> Iterator[None]:
    """Say what to do where Spark does not find `format("pulsar")`.

    Raises:
        ConfigurationError: It did not.
    """
    try:
        yield
    except Exception as error:  # Spark's errors have no class of their own for it
        text = str(error)
        if not any(each in text for each in _NOT_FOUND):
            raise
        raise ConfigurationError(
            'Spark does not find format("pulsar"): the Python that it starts, '
            f"{os.environ.get('PYSPARK_PYTHON', 'python3')}, does not have this package; "
            f"{_advice(sys.executable)}; with --py-files call pulsar_py.spark.register(spark)"
        ) from error


_choose()
