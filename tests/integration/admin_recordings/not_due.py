"""Which recorded calls are not answered as recorded yet: one `group/call` a line."""

from __future__ import annotations

from pathlib import Path

NOT_DUE = Path(__file__).with_name("not_due.txt")


def read_not_due() -> set[tuple[str, str]]:
    """Group and call of each line."""
    if not NOT_DUE.exists():
        return set()
    lines = NOT_DUE.read_text("utf-8").splitlines()
    return {
        (group, call)
        for line in lines
        if line and not line.startswith("#")
        for group, _, call in [line.partition("/")]
    }
