"""Names the columns of KEY_VALUE pairs, and remembers in a comment where keys were (pure).

Columns `key` and `value` may come from any source. Where they were read from a topic of pairs, the
comment of `key` says so. Spark keeps the comment with the column, through selections and in Parquet
files, so a frame that was read can be written into a new topic with the same encoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from pulsar_py.common.foreign_json import parse_json
from pulsar_py.schema import KeyValueEncodingType

KEY: Final = "key"
VALUE: Final = "value"

COMMENT: Final = b"comment"
"""The metadata key of our Arrow fields for the comment that their column gets."""

_ARROW_METADATA: Final = b"SPARK::metadata::json"
"""The metadata key of Spark's Arrow fields for its own metadata of the column."""
_COMMENT: Final = "KEY_VALUE "


def pair_comment(encoding: KeyValueEncodingType) -> str:
    """The comment of the column `key` of rows that are read as pairs."""
    return f"{_COMMENT}{encoding.value}"


def encoding_of_comment(comment: str) -> KeyValueEncodingType | None:
    """The key-value encoding that a comment names; None if it is another comment."""
    name = comment.removeprefix(_COMMENT)
    is_ours = comment.startswith(_COMMENT) and name in KeyValueEncodingType.__members__
    return KeyValueEncodingType[name] if is_ours else None


def says_separate_keys(comment: str) -> bool:
    """Whether a comment names the encoding SEPARATED: keys were the messages' keys."""
    return encoding_of_comment(comment) is KeyValueEncodingType.SEPARATED


def comment_encoding(field: pa.Field) -> KeyValueEncodingType | None:
    """The encoding of the topic that a column was read from; None if it has no pairs."""
    try:
        known = parse_json((field.metadata or {}).get(_ARROW_METADATA, b"{}"))
    except ValueError:
        return None
    comment = known.get("comment") if isinstance(known, Mapping) else None
    return encoding_of_comment(str(comment or ""))
