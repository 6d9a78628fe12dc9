"""Partition columns of tables, and quoting of column names in SQL (pure)."""

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
        """Whether this is a column of the rows, not one that an expression makes."""
        return self.expression in (self.name, quoted(self.name))

    @classmethod
    def parse(cls, text: str) -> PartitionColumn:
        """Parse `column`, `function(column)` or `name=SQL`.

        The column of `date(__publishTime)` is called `publishTime_date`, without the leading
        underscores: many readers take directories whose names begin with `_` for hidden ones.

        Raises:
            ConfigurationError: The text has none of these forms.
        """
        name, is_named, expression = text.partition("=")
        if is_named and _NAME.fullmatch(name.strip()) and expression.strip():
            return cls(name.strip(), expression.strip())
        if call := _CALL.fullmatch(text.strip()):
            return cls(f"{call[2].lstrip('_').replace('.', '_')}_{call[1]}", text.strip())
        if _NAME.fullmatch(text.strip()):
            return cls(text.strip(), quoted(text.strip()))
        raise ConfigurationError(
            f"--partition-by: {text!r} is not of the form column, function(column) or name=SQL"
        )


def quoted(column: str) -> str:
    """A column's name as SQL takes it, in backquotes."""
    return "`" + column.replace("`", "``") + "`"
