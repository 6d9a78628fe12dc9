"""JSON of commands: one object a line, with names in camelCase (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping

__all__ = ["in_camel_case", "json_line"]


def in_camel_case(row: Mapping[str, object]) -> dict[str, object]:
    """A row whose names are like `last_entry` with those that JSON has, like `lastEntry`."""
    return {_camel_case(name): value for name, value in row.items()}


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def json_line(value: object) -> str:
    """A value as JSON, without the end of the line."""
    return json.dumps(value, ensure_ascii=False)
