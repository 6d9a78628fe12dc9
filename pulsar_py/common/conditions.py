"""Conditions on decoded values: `amount>10`, `customer.country=SE`, `note~refund` (pure).

    FIELD=VALUE  FIELD==VALUE    equal              FIELD!=VALUE    not equal, or no such field
    FIELD<VALUE  FIELD<=VALUE    less, or equal     FIELD>VALUE  FIELD>=VALUE
    FIELD~PATTERN                a regular expression is found in the text; who reads a condition
                                 of others brings a compiler whose patterns take no long time

FIELD is a path of names and indexes, with dots; `.` is the value itself. VALUE is a number, `true`,
`false` or `null`, or text, which may stand in double quotes. Numbers are compared with numbers, and
text with text, so ISO times compare as times; values of unlike kinds are not equal and in no order.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.foreign_json import parse_json

__all__ = ["Condition"]

_FORM: Final = re.compile(r"\s*([^=<>!~]+?)\s*(==|!=|<=|>=|=|<|>|~)\s*(.*?)\s*", re.DOTALL)
_MISSING: Final = object()
_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {  # Any: two of one kind
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Pattern(Protocol):
    """What a compiler of regular expressions makes."""

    def search(self, text: str, /) -> object | None:
        """The first place where it is found."""

    def fullmatch(self, text: str, /) -> object | None:
        """What it found, if all of the text is that."""


Compiler = Callable[[str], Pattern]
"""Compiles a regular expression; raises `re.error`, or a ValueError."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on a value in the terms of JSON."""

    path: tuple[str, ...]
    relation: str
    operand: Any  # Any: JSON
    text: str  # the operand as it was written

    @classmethod
    def parse(
        cls, text: str, *, compiler: Compiler = re.compile, what: str = "--where"
    ) -> Condition:
        """Read a condition; `what` names it in errors.

        Raises:
            ConfigurationError: It has no relation, or its pattern is not one.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ConfigurationError(
                f"{what} {text!r}: expected FIELD, one of = != < <= > >= ~, and a value, such as "
                "'amount>10'"
            )
        field, relation, operand = found.groups()
        path = () if field == "." else tuple(field.split("."))
        value: Any = _pattern(operand, compiler, what) if relation == "~" else _literal(operand)
        return cls(path, "=" if relation == "==" else relation, value, operand)

    def holds(self, value: Any) -> bool:  # Any: JSON
        """Whether it holds for a decoded value."""
        found = _at(value, self.path)
        if self.relation == "~":
            return isinstance(found, str) and self.operand.search(found) is not None
        operand = (
            self.text if isinstance(found, str) and not _is_quoted(self.text) else self.operand
        )
        if self.relation in {"=", "!="}:
            return (_is_same_kind(found, operand) and found == operand) == (self.relation == "=")
        if not _is_same_kind(found, operand) or isinstance(found, bool) or found is None:
            return False
        return _ORDERS[self.relation](found, operand)


def _is_quoted(text: str) -> bool:
    return text.startswith('"')


def _pattern(text: str, compiler: Compiler, what: str) -> Pattern:
    try:
        return compiler(text)
    except (re.error, ValueError) as error:
        raise ConfigurationError(f"{what}: the pattern {text!r}: {error}") from None


def _literal(text: str) -> Any:  # Any: JSON
    try:
        value = parse_json(text)
    except ValueError:
        return text
    return text if isinstance(value, list | dict) else value


def _is_same_kind(one: Any, other: Any) -> bool:  # Any: JSON
    for kind in (bool, int | float, str):
        if isinstance(one, kind):
            return isinstance(other, kind) and isinstance(one, bool) == isinstance(other, bool)
    return one is other


def _at(value: Any, path: tuple[str, ...]) -> Any:  # Any: JSON, or _MISSING
    for step in path:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return _MISSING if isinstance(value, Mapping | list) else value
