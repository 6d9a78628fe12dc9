"""The spark-submit line that runs a command on a cluster, for `--print-submit` (pure).

The line's main file is the command's own module, so the driver's machine needs `pulsar_py`
installed. Executors need it too, or get a packed environment by `--archives`. The line has no
secrets, but the references to them that `settings.secrets` describes.
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
"""Options that become options of spark-submit."""


def submit_line(
    main_file: str, arguments: Sequence[str], *, master: str, conf: Mapping[str, str]
) -> str:
    """The spark-submit line, quoted for a shell.

    Args:
        main_file: Path of the module that spark-submit starts.
        arguments: The words after `pulsar-py pipeline` on the command line.
        master: Spark's master URL.
        conf: Spark's settings.
    """
    words = ["spark-submit", "--master", without_users(master)]
    for name, value in sorted(masked_settings(conf).items()):
        words += ["--conf", f"{name}={value}"]
    shown, _ = masked_arguments(without_own(arguments))
    return shlex.join([*words, main_file, *shown])


def submit_note(arguments: Sequence[str], conf: Mapping[str, str]) -> str | None:
    """How the user gives the secrets that the line leaves out; None if it leaves out none."""
    _, variables = masked_arguments(without_own(arguments))
    hidden = [name for name in conf if is_secret_name(name)]
    notes = []
    if variables:
        notes.append(f"set {' and '.join(variables)} in the environment, or give file:PATH")
    if hidden:
        notes.append(f"put {' and '.join(sorted(hidden))} into a --properties-file")
    return f"secrets are left out of the line: {'; '.join(notes)}" if notes else None


def without_own(arguments: Sequence[str]) -> list[str]:
    """The arguments without those that spark-submit gets, and without `--print-submit`.

    Raises:
        ConfigurationError: An option has no value.
    """
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
