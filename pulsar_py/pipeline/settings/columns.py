"""Columns in SQL, and those that a table is partitioned by (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pulsar_py.common.errors import ConfigurationError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_CALL: Final = re.compile(r"([a-z_]+)\(\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\)")


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column that a lake table is partitioned by, and the SQL that makes it."""

    name: str
    expression: str

    @property
    def is_plain(self) -> bool:
        """Whether it is a column that is there, and none that is made."""
        return self.expression in (self.name, quoted(self.name))

    @classmethod
    def parse(cls, text: str) -> PartitionColumn:
        """Read `column`, `function(column)` or `name=SQL`.

        A name made of a function is `publishTime_date` for `date(__publishTime)`: names that begin
        with `_` are taken for hidden directories by many readers.

        Raises:
            ConfigurationError: It is none of these.
        """
        name, is_named, expression = text.partition("=")
        if is_named and _NAME.fullmatch(name.strip()) and expression.strip():
            return cls(name.strip(), expression.strip())
        if call := _CALL.fullmatch(text.strip()):
            return cls(f"{call[2].lstrip('_').replace('.', '_')}_{call[1]}", text.strip())
        if _NAME.fullmatch(text.strip()):
            return cls(text.strip(), quoted(text.strip()))
        raise ConfigurationError(
            f"partition-by: {text!r} is neither a column, nor function(column), nor name=SQL"
        )


def quoted(column: str) -> str:
    """A column's name in SQL."""
    return "`" + column.replace("`", "``") + "`"
