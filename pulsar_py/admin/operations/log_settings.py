"""REST resource of our own: the level and the form of the log of this process, while it runs.

    GET /admin/v2/brokers/logging     {"level": "INFO", "format": "text", "loggers": {}}
    PUT the same                      any of the three; a logger's level null is that of its parent

It lasts until the process ends: the next one begins with `--log-level` and `--log-format`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct, field

from pulsar_py.admin.declared import Body
from pulsar_py.admin.http_messages import HttpError, Request, Response, json_response
from pulsar_py.admin.router import Route, get, put
from pulsar_py.common.log_format import JsonFormatter, TextFormatter
from pulsar_py.server.security.actions import Action

__all__ = ["LogSettings"]

LOGGING: Final = "/admin/v2/brokers/logging"
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
FORMATS: Final = {"text": TextFormatter, "json": JsonFormatter}
MAX_LOGGERS: Final = 100
"""That may be named in one request."""


class LogSettingsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The level of all, the form of lines, and the levels of single loggers; null removes one."""

    level: str | None = None
    format: str | None = None
    loggers: dict[str, str | None] = field(default_factory=dict)


_SETTINGS: Final = Body(LogSettingsBody, "log settings")


class LogSettings:
    """Reads and changes how this process logs."""

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(LOGGING, self.read, Action.READ_BROKERS, answer=LogSettingsBody),
            put(LOGGING, self.change, Action.WRITE_BROKERS, _SETTINGS, answer=LogSettingsBody),
        )

    async def read(self, request: Request) -> Response:  # noqa: ARG002
        """Return level and form, and the loggers that have a level of their own."""
        return json_response(_now())

    async def change(self, request: Request) -> Response:
        """Change what the body names; all of it, or nothing."""
        given = _SETTINGS.of(request) or LogSettingsBody()
        level, form, loggers = given.level, given.format, given.loggers
        if level is not None and level not in LEVELS:
            raise _bad(f"level {level!r}: expected one of {', '.join(LEVELS)}")
        if form is not None and form not in FORMATS:
            raise _bad(f"format {form!r}: expected text or json")
        if len(loggers) > MAX_LOGGERS:
            raise _bad(f"{len(loggers)} loggers: at most {MAX_LOGGERS} in one request")
        for name, each in loggers.items():
            _check_logger(name, each)
        if level is not None:
            logging.getLogger().setLevel(level)
        if form is not None:
            _set_form(form)
        for name, each in loggers.items():
            logging.getLogger(name).setLevel(each or logging.NOTSET)
        return json_response(_now())


def _set_form(form: str) -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, TextFormatter | JsonFormatter):
            handler.setFormatter(FORMATS[form]())


def _check_logger(name: str, level: Any) -> None:  # Any: JSON
    """Only loggers of ours that there are: naming others would make them."""
    if name not in _ours():
        raise _bad(f"logger {name!r:.200}: expected one of this broker, such as pulsar_py.server")
    if level is not None and level not in LEVELS:
        raise _bad(f"logger {name}: level {level!r:.200}: expected null or one of {LEVELS}")


def _ours() -> set[str]:
    names = {name for name in logging.Logger.manager.loggerDict if name.startswith("pulsar_py")}
    return names | {"pulsar_py"}


def _now() -> dict[str, object]:
    root = logging.getLogger()
    forms = [each.formatter for each in root.handlers]
    is_json = any(isinstance(each, JsonFormatter) for each in forms)
    loggers = {name: logging.getLogger(name).level for name in sorted(_ours())}
    return {
        "level": logging.getLevelName(root.level),
        "format": "json" if is_json else "text",
        "loggers": {name: logging.getLevelName(level) for name, level in loggers.items() if level},
    }


def _bad(reason: str) -> HttpError:
    return HttpError(HTTPStatus.BAD_REQUEST, reason)
