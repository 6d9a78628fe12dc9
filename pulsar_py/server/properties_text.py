r"""Parses Java's properties format (pure).

Each line has one setting, `name=value`, `name: value` or `name value`; white space around the
separator does not count, that at the end of a value does. A line that starts with `#` or `!` is a
comment. A backslash at the end of a line joins the next one to it (without its indentation);
elsewhere it escapes: `\t \n \r \f \uXXXX`, and any other character stands for itself. The last of
several lines with one name counts.

Source: java.util.Properties.load.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from pulsar_py.common.errors import ConfigurationError

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS: Final = " \t\f"
_COMMENTED = r"\s*#\s*([\w.]+)\s*="
_HEX_DIGITS: Final = 4


class PropertyLine(Struct, frozen=True):
    """One setting and its place in the text."""

    number: int
    """The number of its first line, from 1."""
    text: str
    """The line without indentation, with continued lines joined."""
    name: str
    value: str
    has_separator: bool
    """Whether `=` or `:` is between name and value, not just white space."""


def parse_properties(text: str) -> dict[str, str]:
    r"""Names and values of a properties text.

    Raises:
        ConfigurationError: A `\u` is not followed by four hexadecimal digits.
    """
    return {line.name: line.value for line in property_lines(text)}


def property_lines(text: str) -> Iterator[PropertyLine]:
    r"""All settings of a properties text in their order.

    Raises:
        ConfigurationError: A `\u` is not followed by four hexadecimal digits; names the line.
    """
    for number, line in _logical_lines(text):
        name, value, has_separator = _split(line)
        try:
            name, value = _unescape(name), _unescape(value)
        except ConfigurationError as error:
            raise ConfigurationError(f"line {number}: {error}") from None
        yield PropertyLine(number, line, name, value, has_separator)


def commented_names(text: str) -> set[str]:
    """Names in lines of the form `#name=…`, which an environment variable may set, too."""
    return {match[1] for line in text.splitlines() if (match := re.match(_COMMENTED, line))}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending = ""
    first = 0
    is_continued = False
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.lstrip(_BLANKS)
        if not is_continued and (not line or line[0] in "#!"):
            continue
        if not is_continued:
            first = number
        pending += line
        trailing_backslashes = len(pending) - len(pending.rstrip("\\"))
        is_continued = trailing_backslashes % 2 == 1
        if is_continued:
            pending = pending[:-1]
            continue
        yield first, pending
        pending = ""
    if pending:
        yield first, pending


def _split(line: str) -> tuple[str, str, bool]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    name, rest = line[:end], line[end:].lstrip(_BLANKS)
    has_separator = rest[:1] in {"=", ":"}
    if has_separator:
        rest = rest[1:].lstrip(_BLANKS)
    return name, rest, has_separator


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    pieces = []
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character == "\\" and index < len(text):
            character = text[index]
            index += 1
            if character == "u":
                digits = text[index : index + _HEX_DIGITS]
                index += _HEX_DIGITS
                character = _unicode(digits)
            else:
                character = _ESCAPES.get(character, character)
        pieces.append(character)
    return "".join(pieces)


def _unicode(digits: str) -> str:
    if len(digits) != _HEX_DIGITS or not set(digits) <= set(string.hexdigits):
        raise ConfigurationError(f"\\u{digits}: expected four hexadecimal digits")
    return chr(int(digits, 16))
