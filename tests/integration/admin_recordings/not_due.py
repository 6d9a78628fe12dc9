"""Which recorded calls are not answered as recorded: what is not due yet, and what is on purpose."""

from __future__ import annotations

from pathlib import Path

NOT_DUE = Path(__file__).with_name("not_due.txt")
DEVIATIONS = Path(__file__).with_name("deviations.txt")


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and line[0] != "#"]


def read_deviations() -> dict[tuple[str, str], str]:
    """Reasons by group and call."""
    deviations = {}
    for line in _lines(DEVIATIONS):
        name, _, reason = line.partition(": ")
        group, _, call = name.partition("/")
        deviations[group, call] = reason
    return deviations


def read_not_due() -> set[tuple[str, str]]:
    """Group and call of what is not due, and of what deviates."""
    not_due = set()
    for line in _lines(NOT_DUE):
        group, _, call = line.partition("/")
        not_due.add((group, call))
    return not_due | read_deviations().keys()
