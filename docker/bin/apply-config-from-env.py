#!/usr/bin/env python3
"""Write settings of the environment into files of settings: `apply-config-from-env.py FILE…`.

A variable PULSAR_PREFIX_<name> sets <name>, a variable <name> only where a line of the file has
that name, commented out or not. What a file does not have yet comes at its end. A file whose
settings are those of the environment already is not written.

Where a file can't be written, as on a read-only root file system, it is left as it is: the broker
reads PULSAR_PREFIX_<name> by itself, and such a variable overrides the file. Variables without the
prefix would be lost, so they end it with 1.

Source: the program of that name in Apache Pulsar's image; tools such as Testcontainers call it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

PREFIX = "PULSAR_PREFIX_"
LINE = re.compile(r"#?\s*([A-Za-z_][\w.\-]*)\s*=")


def applied(text: str, environment: Mapping[str, str]) -> str:
    """The text of a file with the settings of the environment."""
    wanted = {
        name.removeprefix(PREFIX): value
        for name, value in environment.items()
        if name.startswith(PREFIX)
    }
    lines, done = [], set()
    for line in text.splitlines():
        found = LINE.match(line)
        name = found[1] if found else ""
        value = wanted.get(name, environment.get(name))
        if not name or value is None:
            lines.append(line)
        elif name not in done:
            lines.append(f"{name}={value}")
            done.add(name)
    lines += [f"{name}={value}" for name, value in sorted(wanted.items()) if name not in done]
    return "".join(f"{line}\n" for line in lines)


def unprefixed(text: str, environment: Mapping[str, str]) -> list[str]:
    """Variables named like settings of the file that would change it; the broker reads none."""
    lines = text.splitlines()
    names = {found[1] for line in lines if (found := LINE.match(line))}
    return sorted(
        name
        for name in names & environment.keys()
        if f"{PREFIX}{name}" not in environment and f"{name}={environment[name]}" not in lines
    )


def write(path: Path, text: str, changed: str) -> int:
    """Write a file's new text; what becomes of the settings where that is impossible."""
    try:
        path.write_text(changed, "utf-8")
    except OSError as error:
        lost = unprefixed(text, os.environ)
        if lost:
            sys.stderr.write(
                f"apply-config-from-env.py: {path} can't be written ({error.strerror}), and "
                f"variables without the prefix have no other way to the broker: set "
                f"{', '.join(PREFIX + name for name in lost)} instead\n"
            )
            return 1
        sys.stderr.write(
            f"apply-config-from-env.py: {path} can't be written ({error.strerror}) and is left as "
            f"it is: the broker reads {PREFIX}<name> by itself\n"
        )
    return 0


def main() -> int:
    """Apply the environment to each file; 2 without files, 1 if settings would be lost."""
    if not sys.argv[1:]:
        sys.stderr.write("usage: apply-config-from-env.py FILE…\n")
        return 2
    for path in map(Path, sys.argv[1:]):
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            sys.stderr.write(f"apply-config-from-env.py: {path}: {error.strerror}\n")
            return 1
        changed = applied(text, os.environ)
        if changed != text and (code := write(path, text, changed)):
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
