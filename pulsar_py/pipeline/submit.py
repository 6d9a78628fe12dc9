"""`--print-submit`: the spark-submit line that runs the same command on a cluster (pure).

The main file is the module of the command itself, which `pulsar_py` installed on the driver's
machine has; executors need it installed, too, or get a packed environment by `--archives`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from pulsar_py.common.errors import ConfigurationError

OWN_FLAGS = frozenset({"--print-submit"})
OWN_OPTIONS = frozenset({"--master", "--conf"})
"""Those that spark-submit gets itself."""


def submit_line(
    main_file: str, arguments: Sequence[str], *, master: str, conf: Mapping[str, str]
) -> str:
    """The line, quoted for a shell.

    Args:
        main_file: Path of the module that spark-submit starts.
        arguments: What followed `pulsar-py pipeline` on the command line.
        master: Where it shall run.
        conf: Settings of Spark.
    """
    words = ["spark-submit", "--master", master]
    for name in sorted(conf):
        words += ["--conf", f"{name}={conf[name]}"]
    return shlex.join([*words, main_file, *without_own(arguments)])


def without_own(arguments: Sequence[str]) -> list[str]:
    """The arguments that are the pipeline's; those for the session are left out."""
    kept = []
    given = iter(arguments)
    for word in given:
        name, separator, _ = word.partition("=")
        if word in OWN_FLAGS or (name in OWN_OPTIONS and separator):
            continue
        if word in OWN_OPTIONS:
            if next(given, None) is None:
                raise ConfigurationError(f"{word} has no value")
            continue
        kept.append(word)
    return kept
