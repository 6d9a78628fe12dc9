"""Reads numbers of JSON as values of Avro types, and ranks the branches of a union for them (pure).

JSON has one kind of number, and does not say which branch was written. Numbers are read as

    int, long        whole numbers; 2.0 is 2, as for Jackson, and a fraction, which Jackson would
                     truncate, is refused
    float, double    any number, rounded to the precision of the type; text of one, such as `NaN`
    decimal          any number, and text of one, with all its digits; refused if they do not fit

Of a union with several branches, the first one takes a value that accepts it, tried in this order:

    true, false      boolean
    a whole number   int, long, a date or time, double, float, others
    a fraction       double, float, others; 2.0 is one here
    text             others, then double and float; but `NaN` and infinities in the order declared
    anything else    the branches in the order declared

Source: the Avro 1.11 specification; JsonReadFeature and DeserializationFeature of Jackson.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import pyarrow as pa

__all__ = ["WrittenFloat", "branch_rank", "number_of", "whole_number", "whole_numbers"]

_NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_OF_WHOLE: Final = (pa.int32(), pa.int64(), None, pa.float64(), pa.float32())
"""Types of columns by rank for whole numbers; None stands for times."""
_OF_FRACTIONS: Final = (pa.float64(), pa.float32())


_new_float: Final = float.__new__


class WrittenFloat(float):
    """A float that keeps the text it was read from: decimals have more digits than floats."""

    __slots__ = ("_text",)
    _text: str

    def __new__(cls, text: str) -> Self:
        """Raises ValueError if the text is not a number."""
        # Hot path: each fraction of JSON whose schema has decimals.
        value = _new_float(cls, text)
        value._text = text  # noqa: SLF001 - its own
        return value

    def __str__(self) -> str:
        return self._text


def whole_number(value: Any) -> Any:
    """A whole float as an integer; values of other types unchanged, null too.

    Raises:
        ValueError: The value is a fraction, or not finite.
    """
    if not isinstance(value, float):
        return value
    if not value.is_integer():
        raise ValueError(f"{value!r} is not a whole number")
    return int(value)


def whole_numbers(values: Sequence[Any]) -> Sequence[Any]:
    """`whole_number` of each value."""
    # One look at the types of all is quicker than a call for each.
    has_floats = any(issubclass(each, float) for each in set(map(type, values)))
    return list(map(whole_number, values)) if has_floats else values


def number_of(value: Any) -> Any:
    """A number, or the text of one such as `NaN`, as a float; null stays null.

    Raises:
        ValueError: A text is not a number.
        TypeError: The value is neither a number nor text.
        OverflowError: The number is too large for 64 bits.
    """
    if isinstance(value, float) or value is None:
        return value
    if isinstance(value, int | str) and not isinstance(value, bool):
        return float(value)
    raise TypeError(f"{value!r:.100} is not a number")


def branch_rank(value: Any, kind: pa.DataType) -> int:
    """The rank of a union's branch with a column of that type; the least rank is tried first."""
    if isinstance(value, str):
        return int(pa.types.is_floating(kind) and value not in _NOT_FINITE)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    ranks: Sequence[pa.DataType | None] = _OF_WHOLE if isinstance(value, int) else _OF_FRACTIONS
    wanted = None if pa.types.is_temporal(kind) else kind
    return ranks.index(wanted) if wanted in ranks else len(ranks)
