"""`BrokerLog`: keeps a broker's log lines, for the report of a test that fails.

What a broker says at INFO tells most about a failed test, and a test run shows none of it: loggers
stand at WARNING by default. While a `BrokerLog` is open, the package's loggers let INFO through to
a filter of theirs, which keeps it, and holds back what nobody would have got without it.
"""

from __future__ import annotations

import logging
from collections import deque
from types import TracebackType
from typing import Final, Self

from pulsar_py.common.log_format import TextFormatter

__all__ = ["BrokerLog"]

MAX_LINES: Final = 2000
"""Lines that are kept; the oldest go first."""
_PACKAGE: Final = "pulsar_py."
_CLIENT: Final = "pulsar_py.client"
"""What clients log stays with them: it is the test's own."""


class BrokerLog(logging.Handler):
    """The last lines of a broker; use it with `with`. Several may be open at once."""

    def __init__(self, thread_name: str | None = None) -> None:
        """`thread_name`: of the broker's thread; None keeps what no client logs, of all threads."""
        super().__init__(logging.INFO)
        self.setFormatter(TextFormatter())
        self._thread_name = thread_name
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._lines_count = 0

    def text(self) -> str:
        """What was kept, a line each."""
        lost = self._lines_count - len(self._lines)
        head = [f"... {lost} earlier lines"] if lost else []
        return "\n".join([*head, *self._lines])

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record of the broker."""
        if self._thread_name is None:
            is_broker_s = not record.name.startswith(_CLIENT)
        else:
            is_broker_s = record.threadName == self._thread_name
        if is_broker_s:
            self._lines.append(self.format(record))
            self._lines_count += 1

    def __enter__(self) -> Self:
        _TAP.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _TAP.remove(self)

    @staticmethod
    def refresh() -> None:
        """Listen to loggers, too, that came since it was opened: modules are loaded late."""
        _TAP.refresh()


class _Tap(logging.Filter):
    """Hands what the package's loggers say to the logs that are open; one for the process."""

    def __init__(self) -> None:
        super().__init__()
        self._logs: list[BrokerLog] = []
        # The loggers that were changed, with their own levels and those that they were given.
        self._levels: dict[logging.Logger, tuple[int, int]] = {}

    def add(self, log: BrokerLog) -> None:
        self._logs.append(log)
        self.refresh()

    def refresh(self) -> None:
        for name, logger in list(logging.root.manager.loggerDict.items()):
            is_ours = name.startswith(_PACKAGE) and not name.startswith(_CLIENT)
            if is_ours and isinstance(logger, logging.Logger) and logger not in self._levels:
                # One below, which nobody else sets: so a level that a test sets is told from it.
                given = max(min(logging.INFO, logger.getEffectiveLevel()) - 1, 1)
                self._levels[logger] = (logger.level, given)
                logger.setLevel(given)
                logger.addFilter(self)

    def remove(self, log: BrokerLog) -> None:
        self._logs.remove(log)
        if not self._logs:
            for logger, (level, given) in self._levels.items():
                logger.removeFilter(self)
                if logger.level == given:
                    logger.setLevel(level)
            self._levels.clear()

    def filter(self, record: logging.LogRecord) -> bool:
        for log in self._logs:
            if record.levelno >= log.level:
                log.emit(record)
        return record.levelno >= self._level_without(logging.getLogger(record.name))

    def _level_without(self, logger: logging.Logger) -> int:
        """What would be the logger's level if nothing were changed."""
        at: logging.Logger | None = logger
        while at is not None:
            own, given = self._levels.get(at, (at.level, at.level))
            level = own if at.level == given else at.level
            if level:
                return level
            at = at.parent
        return logging.NOTSET


_TAP: Final = _Tap()
