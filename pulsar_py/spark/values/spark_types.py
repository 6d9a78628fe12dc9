"""Names Arrow types in Spark's DDL (pure).

Source: Spark's SQL data types.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pulsar_py.common.errors import ConfigurationError

_SIMPLE: Final = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    # `TIMESTAMP` alone is either of these, as `spark.sql.timestampType` of the session says.
    pa.timestamp("us", "UTC"): "TIMESTAMP_LTZ",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
}


def ddl_of(arrow_type: pa.DataType) -> str:
    """The DDL of an Arrow type.

    Raises:
        ConfigurationError: Spark has no such type.
    """
    if arrow_type in _SIMPLE:
        return _SIMPLE[arrow_type]
    if pa.types.is_decimal128(arrow_type):
        return f"DECIMAL({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_list(arrow_type):
        return f"ARRAY<{ddl_of(arrow_type.value_type)}>"
    if pa.types.is_map(arrow_type):
        return f"MAP<{ddl_of(arrow_type.key_type)}, {ddl_of(arrow_type.item_type)}>"
    if pa.types.is_struct(arrow_type):
        fields = (f"`{each.name}`: {ddl_of(each.type)}" for each in arrow_type)
        return f"STRUCT<{', '.join(fields)}>"
    raise ConfigurationError(f"Spark has no type for {arrow_type} of Arrow")
