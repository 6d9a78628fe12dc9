"""`--print-submit`: the spark-submit line that runs the same command on a cluster (pure).

The main file is the module of the command itself, which `pulsar_py` installed on the driver's
machine has; executors need it installed, too, or get a packed environment by `--archives`. Secrets
are not in it: `secrets` has the forms that stand for them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings.secrets import (
    is_secret_name,
    masked_arguments,
    masked_settings,
    without_users,
)

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
    words = ["spark-submit", "--master", without_users(master)]
    for name, value in sorted(masked_settings(conf).items()):
        words += ["--conf", f"{name}={value}"]
    shown, _ = masked_arguments(without_own(arguments))
    return shlex.join([*words, main_file, *shown])


def submit_note(arguments: Sequence[str], conf: Mapping[str, str]) -> str | None:
    """What has to be given beside the line, because it is not shown; None if nothing."""
    _, variables = masked_arguments(without_own(arguments))
    hidden = [name for name in conf if is_secret_name(name)]
    notes = []
    if variables:
        notes.append(f"set {' and '.join(variables)} in the environment, or give file:PATH")
    if hidden:
        notes.append(f"put {' and '.join(sorted(hidden))} into a --properties-file")
    return f"secrets are left out of the line: {'; '.join(notes)}" if notes else None


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
