"""Chooses where log records go: standard error, with their priority if systemd's journal reads it.

The journal takes what a service writes line by line, and believes that each is of priority `info`
unless it begins with `<4>` or another one, so that `journalctl -p warning` would show nothing of a
broker. It says by JOURNAL_STREAM, device and inode, that it is the one who reads: whoever has
standard error sent to a file gets lines without.

Source: the manuals of systemd, systemd.exec(5) on JOURNAL_STREAM, and sd-daemon(3).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final, TextIO

__all__ = ["log_handler"]

_PRIORITIES: Final = (
    (logging.CRITICAL, 2),
    (logging.ERROR, 3),
    (logging.WARNING, 4),
    (logging.INFO, 6),
)
_DEBUG: Final = 7


def log_handler(stream: TextIO, environment: Mapping[str, str]) -> logging.Handler:
    """A handler that writes to this stream, which is standard error but in tests."""
    if _is_journal(stream, environment.get("JOURNAL_STREAM", "")):
        return _JournalHandler(stream)
    return logging.StreamHandler(stream)


class _JournalHandler(logging.StreamHandler[TextIO]):
    """Begins each line of a record with its priority, those of a traceback too."""

    def format(self, record: logging.LogRecord) -> str:
        """The lines of the formatter, whichever it is now."""
        mark = f"<{_priority(record.levelno)}>"
        return "\n".join(f"{mark}{line}" for line in super().format(record).split("\n"))


def _priority(level: int) -> int:
    return next((priority for least, priority in _PRIORITIES if level >= least), _DEBUG)


def _is_journal(stream: TextIO, named: str) -> bool:
    if not named:
        return False
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or no file
        return False
    return named == f"{status.st_dev}:{status.st_ino}"
