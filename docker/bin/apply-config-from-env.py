#!/usr/bin/env python3
"""Write settings of the environment into files of settings: `apply-config-from-env.py FILE…`.

A variable PULSAR_PREFIX_<name> sets <name>, a variable <name> only where a line of the file has
that name, commented out or not. What a file does not have yet comes at its end. A file whose
settings are those of the environment already is not written.

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


def main() -> int:
    """Apply the environment to each file; 2 without files."""
    if not sys.argv[1:]:
        sys.stderr.write("usage: apply-config-from-env.py FILE…\n")
        return 2
    for path in map(Path, sys.argv[1:]):
        text = path.read_text("utf-8")
        changed = applied(text, os.environ)
        if changed != text:
            path.write_text(changed, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
