"""The options of `pulsar-py admin` itself, as values (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

OUTPUTS: Final = ("auto", "json", "text", "table")
"""Forms of answers; `auto` is a table on a terminal, otherwise text."""


@dataclass(frozen=True, slots=True)
class AdminOptions:
    """The options before the group, and those that may stand behind the word too."""

    connection: Mapping[str, str | None]
    """By the keys of `client.conf`."""
    request_timeout_seconds: int = 300
    output: str = "auto"
    is_confirmed: bool = False
    is_dry_run: bool = False
