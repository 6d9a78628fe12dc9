"""Parses JSON that others wrote, within limits (pure).

Bodies of requests, answers of servers, definitions of schemas and documents that other brokers
stored may hold anything. `json.loads` alone raises `RecursionError` if lists and objects are nested
too deeply, accepts `NaN` and numbers that become infinite, and returns texts that can't be encoded
as UTF-8; code that walks through such a value, or writes it, fails later and elsewhere. So
everything outside the limits is a `ValueError` here.

It accepts JSON by RFC 8259, in UTF-8, UTF-16 or UTF-32 as its first bytes say. Of two
equal keys the last one counts, as in Apache Pulsar. Whole numbers have at most as many digits as
Python converts (4300), or 64 bits where that is asked for.

Source: StreamReadConstraints of Jackson, which reads JSON in Apache Pulsar.
"""

from __future__ import annotations

import json
import math
import re
from itertools import accumulate
from typing import Any, Final

MAX_JSON_DEPTH: Final = 200
"""How deep lists and objects may be in each other. Code may walk through what it got by recursion,
two calls a level: Python allows 1000 calls."""

MAX_DEFINITION_DEPTH: Final = 600
"""As `MAX_JSON_DEPTH`, for definitions of schemas: each record in a record is three levels."""


def parse_json(
    text: str | bytes | bytearray, *, max_depth: int = MAX_JSON_DEPTH, is_java: bool = False
) -> Any:  # Any: JSON
    """The value of a JSON text.

    Args:
        text: Bytes are decoded as JSON says.
        max_depth: How many lists and objects may be in each other.
        is_java: Whether whole numbers are those of Java's fields, so have at most 64 bits.

    Raises:
        ValueError: It is no JSON, nested too deeply, or has a number or a text that can't be
            written again, or is beyond 64 bits.
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text))
    try:
        value = (_JAVA_DECODER if is_java else _DECODER).decode(text)
    except RecursionError:
        raise _too_deep(max_depth) from None
    may_be_deep = text.count("[") + text.count("{") > max_depth
    if may_be_deep and _depth(text) > max_depth:
        raise _too_deep(max_depth)
    if "\\u" in text:  # half of a surrogate pair has no encoding
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _depth(text: str) -> int:
    """How deep a text that is JSON is nested; from the text, which costs less than its values."""
    brackets = _NO_BRACKETS.sub("", text)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _too_deep(max_depth: int) -> ValueError:
    return ValueError(f"JSON nested deeper than {max_depth}")


_NO_BRACKETS = re.compile(r'[^][{}"]+|"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text:.40} is too large")
    return number


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _long(text: str) -> int:
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"the number {text:.40} has more than 64 bits")
    return number


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
_JAVA_DECODER: Final = json.JSONDecoder(
    parse_int=_long, parse_float=_finite, parse_constant=_no_constant
)
