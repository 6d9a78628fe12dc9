"""Findings of an inspection of stored files: values that tools print."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

_PLACE = re.compile(r"(?P<path>\S+): offset (?P<offset>\d+): (?P<problem>.*)", re.DOTALL)
_PATH = re.compile(r"(?P<path>[\w./-]+): (?P<problem>.*)", re.DOTALL)


class Severity(Enum):
    """The severity of a finding."""

    DAMAGE = "damage"
    """Something that counts is broken or missing."""
    NOTE = "note"
    """Nothing is lost: a leftover of a crash, or bytes that were never confirmed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found, and where."""

    path: str
    offset: int | None
    problem: str
    severity: Severity = Severity.DAMAGE

    def __str__(self) -> str:
        place = self.path if self.offset is None else f"{self.path}: offset {self.offset}"
        return f"{place}: {self.problem}"

    @classmethod
    def of(cls, error: Exception, path: str) -> Finding:
        """The finding that an error's message describes; `path` is used if the message has none."""
        text = str(error)
        if found := _PLACE.fullmatch(text):
            return cls(found["path"], int(found["offset"]), found["problem"])
        if found := _PATH.fullmatch(text):
            return cls(found["path"], None, found["problem"])
        return cls(path, None, text)


OnProgress = Callable[[str, int], None]
"""Called during long work: the path that is read, and the bytes of it done since the last call."""


def no_progress(path: str, size_bytes: int) -> None:
    """An `OnProgress` that does nothing."""
