"""Arrow types by the names of Spark's DDL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.values.metadata_columns import COLUMNS
from pulsar_py.spark.values.spark_types import ddl_of


def test_metadata_columns_say_the_same_in_both_languages() -> None:
    for column in COLUMNS.values():
        assert ddl_of(column.arrow_type) == column.ddl, column.name


def test_nested_types_are_spelt_out() -> None:
    nested = pa.struct(
        [
            pa.field("a b", pa.list_(pa.decimal128(10, 2))),
            pa.field("m", pa.map_(pa.string(), pa.date32())),
        ]
    )
    assert ddl_of(nested) == "STRUCT<`a b`: ARRAY<DECIMAL(10,2)>, `m`: MAP<STRING, DATE>>"


def test_instants_do_not_depend_on_what_a_session_takes_timestamps_for() -> None:
    assert ddl_of(pa.timestamp("us", "UTC")) == "TIMESTAMP_LTZ"


def test_what_spark_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Spark has no type for uint64"):
        ddl_of(pa.uint64())
