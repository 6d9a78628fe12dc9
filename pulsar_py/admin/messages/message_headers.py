"""Makes the HTTP headers and the body of an entry that is read over HTTP (pure).

The body is the payload, decompressed but neither decrypted nor split: of a batch, clients get all
messages, each behind its size and its own metadata, and split them because of the header
`X-Pulsar-num-batch-message`. Dates are ISO-8601, bytes Base64. All is, byte for byte, what Apache
Pulsar sends, also where that loses something (the readable messages of `readable_messages` don't):
texts are Latin-1, what has no place there or in a header is a blank; fractions of seconds have no
zeros at their end; properties stand in the order of Java's `HashMap`, as JSON of Gson's.

Source: PersistentTopicsBase.generateResponseWithEntry in Pulsar's broker; HttpGenerator of Jetty;
recorded from Apache Pulsar 4.2.4.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.admin.http_messages import HttpError
from pulsar_py.admin.resources.topic_stats_json import iso_time
from pulsar_py.common.errors import PayloadError
from pulsar_py.common.hashing import java_string_hash
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata, CompressionType, MessageMetadata
from pulsar_py.wire.compression import decompress
from pulsar_py.wire.payload import EntryParts

Headers = tuple[tuple[str, str], ...]

_NOT_IN_HEADERS: Final = re.compile(r"[^\t\x20-\xff]")
_ESCAPED: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&='\u2028\u2029"}
"""What Gson writes as escapes beside what JSON has to, because a page of HTML may quote it."""
_TABLE_SIZE: Final = 16
_YEAR_1_MILLIS: Final = -62_135_596_800_000
_YEAR_10000_MILLIS: Final = 253_402_300_800_000


def iso_date(millis: int) -> str:
    """Milliseconds since 1970 as ISO-8601; the number itself outside the years 1 to 9999."""
    return iso_time(millis) if _YEAR_1_MILLIS <= millis < _YEAR_10000_MILLIS else str(millis)


def _date(millis: int) -> str:
    """As `iso_date`, with as many digits of the fraction as it needs."""
    whole, point, fraction = iso_date(millis).partition(".")
    digits = fraction.removesuffix("Z").rstrip("0")
    return f"{whole}{point and '.' * bool(digits)}{digits}{'Z' * bool(point)}"


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _flag(value: bool) -> str:  # noqa: FBT001 - called with a field's value
    return "true" if value else "false"


_FIELDS: Final[tuple[tuple[str, str, Callable[[Any], str]], ...]] = (  # Any: fields of many types
    ("publish_time", "publish-time", _date),
    ("event_time", "event-time", _date),
    ("deliver_at_time", "deliver-at-time", _date),
    ("producer_name", "producer-name", str),
    ("sequence_id", "sequence-id", str),
    ("highest_sequence_id", "highest-sequence-id", str),
    ("uuid", "uuid", str),
    ("partition_key", "partition-key", str),
    ("partition_key_b64_encoded", "partition-key-b64-encoded", _flag),
    ("null_partition_key", "null-partition-key", _flag),
    ("null_value", "null-value", _flag),
    ("ordering_key", "Base64-ordering-key", _base64),
    ("schema_version", "Base64-schema-version", _base64),
    ("compression", "compression", CompressionType.Name),
    ("uncompressed_size", "uncompressed-size", str),
    ("encryption_algo", "encryption-algo", str),
    ("encryption_param", "Base64-encryption-param", _base64),
    ("num_chunks_from_msg", "num-chunks-from-msg", str),
    ("total_chunk_msg_size", "total-chunk-msg-size", str),
    ("chunk_id", "chunk-id", str),
    ("replicated_from", "replicated-from", str),
    ("marker_type", "marker-type", str),
    ("txnid_least_bits", "txnid-least-bits", str),
    ("txnid_most_bits", "txnid-most-bits", str),
)
"""Fields that are headers if they are set: field, name behind `X-Pulsar-`, its text."""


def message_headers(
    position: Position, parts: EntryParts, *, size_bytes: int, is_uncommitted: bool
) -> Headers:
    """The headers of an entry of `size_bytes`, its headers included.

    `is_uncommitted` tells that it may not be dispatched yet because of a transaction.
    """
    found = list(_headers(position, parts, size_bytes))
    found.append(("X-Pulsar-txn-uncommitted", _flag(is_uncommitted)))
    return tuple((name, _in_header(text)) for name, text in found)


def _in_header(text: str) -> str:
    """The text as a header may have it; a character of two UTF-16 units is two blanks."""
    found = _NOT_IN_HEADERS.sub(lambda each: " " * (2 if each[0] > "\uffff" else 1), text)
    return found.strip(" \t")


def _headers(position: Position, parts: EntryParts, size_bytes: int) -> Iterator[tuple[str, str]]:
    metadata = parts.metadata
    yield "X-Pulsar-Message-ID", f"{position.ledger_id}:{position.entry_id}"
    yield from _broker_headers(parts.broker_entry_metadata)
    for field, name, text in _FIELDS:
        if metadata.HasField(field):  # type: ignore[arg-type] # a name of a field, from the table
            yield f"X-Pulsar-{name}", text(getattr(metadata, field))
    if metadata.HasField("num_messages_in_batch"):
        yield "X-Pulsar-num-batch-message", str(metadata.num_messages_in_batch)
        # Apache Pulsar counts checksum and size of the metadata as part of the batch.
        yield "X-Pulsar-batch-size", str(size_bytes - metadata.ByteSize())
    if metadata.replicate_to:
        yield "X-Pulsar-replicated-to", ",".join(metadata.replicate_to)
    yield "X-Pulsar-Is-Encrypted", _flag(bool(metadata.encryption_keys))
    for key in metadata.encryption_keys:
        yield "X-Pulsar-Base64-encryption-keys", _base64(key.SerializeToString())
    properties = {each.key: each.value for each in metadata.properties}
    yield "X-Pulsar-PROPERTY", _json(properties)
    if metadata.HasField("chunk_id"):
        yield "X-Pulsar-PROPERTY-TOTAL-CHUNKS", str(metadata.num_chunks_from_msg)
        yield "X-Pulsar-PROPERTY-CHUNK-ID", str(metadata.chunk_id)


def _broker_headers(stamp: BrokerEntryMetadata | None) -> Iterator[tuple[str, str]]:
    if stamp is None:
        return
    if stamp.HasField("broker_timestamp"):
        yield "X-Pulsar-Broker-Entry-METADATA-timestamp", _date(stamp.broker_timestamp)
    if stamp.HasField("index"):
        yield "X-Pulsar-Broker-Entry-METADATA-index", str(stamp.index)


def _json(value: dict[str, str]) -> str:
    ordered = {name: value[name] for name in _as_hash_map(value)}
    return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPED)


def _as_hash_map(names: Iterable[str]) -> list[str]:
    """Names in the order of a `HashMap` of Java's that they were put into, the last one first."""
    found = list(reversed([*names]))
    size = _TABLE_SIZE
    while len(found) > size * 3 // 4:
        size *= 2
    return sorted(found, key=lambda name: _spread(java_string_hash(name)) & (size - 1))


def _spread(code: int) -> int:
    return code ^ (code >> 16)


def plain_payload(metadata: MessageMetadata, payload: bytes, *, max_bytes: int) -> bytes:
    """The payload, decompressed unless it is encrypted.

    Raises:
        HttpError: 422 if it is damaged, or larger than `max_bytes`.
    """
    if metadata.encryption_keys or metadata.compression == CompressionType.NONE:
        return payload
    size = metadata.uncompressed_size
    if size > max_bytes:
        raise HttpError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"the payload says that it has {size} bytes when decompressed, allowed are {max_bytes}",
        )
    try:
        return bytes(decompress(metadata.compression, payload, size))
    except PayloadError as error:
        raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
