"""`StandaloneOptions`: how `pulsar-py standalone` is to run, and the usual ways to say so.

`plain_options` reads words that click would take as they stand. It refuses nothing: of anything
else, such as `--help`, a mistake or a path that is not there, it makes None, and click (`commands`)
reads the words again and says what is wrong. So the options are declared and explained there alone;
a test reads lines of all kinds in both ways.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

__all__ = ["StandaloneOptions", "plain_options"]

DATA_DIR: Final = "data"
FORMATS: Final = ("text", "json")
"""Of the log, and of the line of readiness."""
MAX_PORT: Final = 65535


class StandaloneOptions(Struct, frozen=True, kw_only=True):
    """The options of the command line.

    Without `data_dir` all data is in memory. For the other options None means the broker's setting.
    """

    data_dir: Path | None = None
    host: str | None = None
    port: int | None = None
    web_port: int | None = None
    config_file: Path | None = None
    overrides: tuple[str, ...] = ()
    log_format: str = "text"
    log_level: str = "INFO"
    is_ready_json: bool = False
    ready_too: str = ""


def plain_options(words: Sequence[str]) -> StandaloneOptions | None:
    """The options that words name, each at most once but `--set`; None: click has to read them."""
    found: dict[str, Any] = {}  # Any: what fields take
    overrides: list[str] = []
    is_in_memory = False
    rest = iter(words)
    for word in rest:
        if word == "--in-memory":
            is_in_memory = True
            continue
        name, equals, value = word.partition("=")
        value = value if equals else next(rest, "")
        if not value or value.startswith("-"):
            return None
        if name == "--set":
            overrides.append(value)
            continue
        field, read = _OPTIONS.get(name, ("", _nothing))
        if field in found or (read_value := read(value)) is None:
            return None
        found[field] = read_value
    if is_in_memory == ("data_dir" in found):  # both, or neither
        data_dir = None if is_in_memory else _directory(DATA_DIR)
        if data_dir is None:
            return None
        found["data_dir"] = data_dir
    return StandaloneOptions(overrides=tuple(overrides), **found)


def _nothing(_: str) -> None:
    """What an unknown option may be."""


def _directory(value: str) -> Path | None:
    path = Path(value)
    is_good = path.is_dir() and os.access(path, os.R_OK)
    return path if is_good or not path.exists() else None


def _file(value: str) -> Path | None:
    path = Path(value)
    return path if path.is_file() and os.access(path, os.R_OK) else None


def _port(value: str) -> int | None:
    is_number = value.isascii() and value.isdecimal() and len(value) <= len(str(MAX_PORT))
    return int(value) if is_number and int(value) <= MAX_PORT else None


def _format(value: str) -> str | None:
    return value if value in FORMATS else None


def _is_json(value: str) -> bool | None:
    return value == "json" if value in FORMATS else None


_OPTIONS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "--data-dir": ("data_dir", _directory),
    "--host": ("host", str),
    "--port": ("port", _port),
    "--web-port": ("web_port", _port),
    "--config": ("config_file", _file),
    "--log-format": ("log_format", _format),
    "--ready": ("is_ready_json", _is_json),
    "--ready-too": ("ready_too", str),
}
"""The fields by option, and what makes their values; None is no value that is certain to be one."""
