"""Formats answers: as pulsar-admin does, as tables on a terminal, or as JSON (pure).

Pulsar-admin prints lists one item a line, maps as `key    value` with what Java's `toString` makes
of the value, and objects as JSON in the form of Jackson's printer: `"name" : value`, and lists in
one line as far as their items are plain.

Source: CliCommand.print, and DefaultPrettyPrinter of Jackson.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Json = Any  # Any: JSON of many shapes
_GAP: Final = "    "
_PLAIN_FROM: Final = 1e-3
_PLAIN_UNTIL: Final = 1e7


def pretty(value: Json) -> str:
    """JSON as Jackson's pretty printer writes it."""
    return _pretty(value, "")


def _pretty(value: Json, indent: str) -> str:
    if isinstance(value, Mapping):
        if not value:
            return "{ }"
        inner = f"{indent}  "
        parts = [
            f"{inner}{_plain(str(name))} : {_pretty(each, inner)}" for name, each in value.items()
        ]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            return "[ ]"
        return "[ " + ", ".join(_pretty(each, indent) for each in value) + " ]"
    return _plain(value)


def _plain(value: Json) -> str:
    if isinstance(value, float):
        return java_double(value)
    return json.dumps(value, ensure_ascii=False)


def java_double(value: float) -> str:
    """A number as Java's `Double.toString` writes it."""
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN
        return {"inf": '"Infinity"', "-inf": '"-Infinity"'}.get(str(value), '"NaN"')
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_UNTIL:
        return repr(value)
    plain, _, power = repr(abs(value)).partition("e")
    before, _, after = plain.partition(".")
    exponent = int(power or 0) + len(before) - 1
    if before == "0":
        exponent = -(len(after) - len(after.lstrip("0")) + 1)
    digits = (before + after).strip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def java_text(value: Json) -> str:
    """What Java's `toString` makes of texts, numbers, lists and maps."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}={java_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(java_text, value)) + "]"
    return str(value)


def lines(value: Json) -> str:
    """A list, an item a line; objects among them as JSON."""
    return "".join(f"{each if isinstance(each, str) else pretty(each)}\n" for each in value or ())


def mapping(value: Json) -> str:
    """A map, an entry a line."""
    return "".join(f"{name}{_GAP}{java_text(each)}\n" for name, each in (value or {}).items())


def mapping_of(name: str, fields: Mapping[str, str]) -> Callable[[Json], str]:
    """For maps of objects that Java prints as `Name(field=value, ...)`.

    Args:
        name: The name of Java's class.
        fields: Java's fields, with the JSON's name of each.
    """

    def show(value: Json) -> str:
        return mapping({key: _object(name, fields, each) for key, each in (value or {}).items()})

    return show


def _object(name: str, fields: Mapping[str, str], value: Json) -> str:
    parts = (f"{field}={java_text(value.get(key))}" for field, key in fields.items())
    return f"{name}({', '.join(parts)})"


def text(value: Json) -> str:
    """A text as it is, all else as JSON; in one line of its own."""
    return f"{value if isinstance(value, str) else pretty(value)}\n"


def json_lines(value: Json) -> str:
    """Anything as JSON."""
    return f"{pretty(value)}\n"


def compact(value: Json) -> str:
    """JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def gson(value: Json) -> str:
    """JSON as Gson's pretty printer writes it."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def by_itself(value: Json) -> str:
    """A list as lines, a text as it is, all else as JSON."""
    return lines(value) if isinstance(value, list) else text(value)


def by_policy(value: Json) -> str:
    """A policy: a text as it is, all else, lists too, as JSON."""
    return text(value)


def machine(value: Json) -> str:
    """`-o json`: one JSON document."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def table(value: Json, title: str = "") -> str:
    """For people at a terminal: columns for lists of objects, two for one object."""
    if isinstance(value, Mapping):
        return _columns([[str(name), _cell(each)] for name, each in _flat(value)]) or "(none)\n"
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        names = list(dict.fromkeys(name for each in value for name in each))
        head = [name.upper() for name in names]
        return _columns([head, *([_cell(each.get(name)) for name in names] for each in value)])
    if isinstance(value, list):
        head = [title.upper()] if title else []
        return "".join(f"{each}\n" for each in [*head, *map(_cell, value)]) if value else "(none)\n"
    return f"{_cell(value)}\n"


def _flat(value: Mapping[str, Json], prefix: str = "") -> list[tuple[str, Json]]:
    """The members of an object, with those of objects in it indented below their names."""
    found: list[tuple[str, Json]] = []
    for name, each in value.items():
        if isinstance(each, Mapping) and each:
            found.append((f"{prefix}{name}", ""))
            found += _flat(each, f"{prefix}  ")
        else:
            found.append((f"{prefix}{name}", each))
    return found


def _columns(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "".join(f"{each}\n" for each in texts)


def _cell(value: Json) -> str:
    """One value in one line; characters that a terminal would act on are escaped."""
    if value is None:
        shown = "-"
    elif isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, Mapping):
        shown = " ".join(f"{name}={_cell(each)}" for name, each in value.items()) or "-"
    elif isinstance(value, list | tuple):
        shown = ", ".join(map(_cell, value)) or "-"
    else:
        shown = str(value)
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in shown)
