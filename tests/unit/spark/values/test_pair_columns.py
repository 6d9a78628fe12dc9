"""Comments of columns tell the encoding of key-value pairs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pulsar_py.schema import KeyValueEncodingType
from pulsar_py.spark.values.pair_columns import (
    comment_encoding,
    encoding_of_comment,
    pair_comment,
    says_separate_keys,
)


@pytest.mark.parametrize("encoding", list(KeyValueEncodingType))
def test_a_comment_tells_what_it_was_made_of(encoding: KeyValueEncodingType) -> None:
    comment = pair_comment(encoding)
    assert encoding_of_comment(comment) is encoding
    assert says_separate_keys(comment) is (encoding is KeyValueEncodingType.SEPARATED)
    metadata = {"SPARK::metadata::json": f'{{"comment": "{comment}"}}'}
    assert comment_encoding(pa.field("key", pa.string(), metadata=metadata)) is encoding


@pytest.mark.parametrize(
    "metadata", ["{}", '{"comment": null}', '{"comment": "KEY_VALUE OTHER"}', "[]", "{", '{"a": 1}']
)
def test_other_comments_tell_nothing(metadata: str) -> None:
    field = pa.field("key", pa.string(), metadata={"SPARK::metadata::json": metadata})
    assert comment_encoding(field) is None
    assert comment_encoding(pa.field("key", pa.string())) is None
