"""The headers and the body of an entry that is read over HTTP."""

from __future__ import annotations

import pytest

from pulsar_py.admin.http_messages import HttpError
from pulsar_py.admin.messages.message_headers import iso_date, message_headers, plain_payload
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    CompressionType,
    EncryptionKeys,
    MessageMetadata,
)
from pulsar_py.wire.compression import compress
from pulsar_py.wire.payload import EntryParts
from tests.unit.admin.messages.conftest import metadata_of, property_of


def headers_of(
    metadata: MessageMetadata, stamp: BrokerEntryMetadata | None = None
) -> dict[str, str]:
    parts = EntryParts(stamp, None, metadata, b"")
    found = message_headers(Position(3, 4), parts, size_bytes=500, is_uncommitted=False)
    return dict(found)


def test_a_plain_message_has_few_headers() -> None:
    assert headers_of(metadata_of(7)) == {
        "X-Pulsar-Message-ID": "3:4",
        "X-Pulsar-publish-time": "2023-11-14T22:13:20.007Z",
        "X-Pulsar-producer-name": "p",
        "X-Pulsar-sequence-id": "7",
        "X-Pulsar-Is-Encrypted": "false",
        "X-Pulsar-PROPERTY": "{}",
        "X-Pulsar-txn-uncommitted": "false",
    }


def test_what_is_set_has_a_header() -> None:
    metadata = metadata_of(
        event_time=1000,
        partition_key="k",
        ordering_key=b"\x00\xff",
        schema_version=b"\x00\x01",
        null_value=True,
        num_messages_in_batch=3,
        replicate_to=["b", "c"],
        chunk_id=1,
        num_chunks_from_msg=2,
        encryption_keys=[EncryptionKeys(key="e", value=b"\x01")],
        properties=[property_of("a", "ä\n")],
    )
    found = headers_of(metadata, BrokerEntryMetadata(broker_timestamp=5, index=9))
    assert found["X-Pulsar-event-time"] == "1970-01-01T00:00:01.000Z"
    assert found["X-Pulsar-Base64-ordering-key"] == "AP8="
    assert found["X-Pulsar-Base64-schema-version"] == "AAE="
    assert found["X-Pulsar-null-value"] == "true"
    assert found["X-Pulsar-num-batch-message"] == "3"
    assert found["X-Pulsar-batch-size"] == str(500 - metadata.ByteSize())
    assert found["X-Pulsar-replicated-to"] == "b,c"
    assert found["X-Pulsar-PROPERTY-TOTAL-CHUNKS"] == "2"
    assert found["X-Pulsar-Is-Encrypted"] == "true"
    assert found["X-Pulsar-Base64-encryption-keys"] == '{"e":"AQ=="}'
    assert found["X-Pulsar-PROPERTY"] == '{"a":"ä\\n"}'
    assert found["X-Pulsar-Broker-Entry-METADATA-index"] == "9"


def test_no_name_breaks_out_of_its_header() -> None:
    metadata = metadata_of(partition_key=" a\r\nSet-Cookie: b")
    assert headers_of(metadata)["X-Pulsar-partition-key"] == "a  Set-Cookie: b"


def test_a_time_beyond_all_calendars_is_a_number() -> None:
    assert iso_date(2**63) == str(2**63)
    assert iso_date(-(2**63)) == str(-(2**63))
    assert iso_date(-62_135_596_800_001) == "-62135596800001"
    assert iso_date(-62_135_596_800_000) == "0001-01-01T00:00:00.000Z"
    assert iso_date(253_402_300_799_999) == "9999-12-31T23:59:59.999Z"


def test_a_payload_is_decompressed_and_not_decrypted() -> None:
    lz4 = CompressionType.LZ4
    data = compress(lz4, b"text" * 100)
    metadata = metadata_of(compression=lz4, uncompressed_size=400)
    assert plain_payload(metadata, data, max_bytes=400) == b"text" * 100
    with pytest.raises(HttpError, match="allowed are 399"):
        plain_payload(metadata, data, max_bytes=399)
    with pytest.raises(HttpError):
        plain_payload(metadata, b"\x00" + data, max_bytes=400)
    metadata.encryption_keys.add(key="e", value=b"")
    assert plain_payload(metadata, data, max_bytes=1) == data
