"""The headers and the body of an entry that is read over HTTP."""

from __future__ import annotations

import json
from base64 import b64encode

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
    assert found["X-Pulsar-event-time"] == "1970-01-01T00:00:01Z"
    assert found["X-Pulsar-Base64-ordering-key"] == "AP8="
    assert found["X-Pulsar-Base64-schema-version"] == "AAE="
    assert found["X-Pulsar-null-value"] == "true"
    assert found["X-Pulsar-num-batch-message"] == "3"
    assert found["X-Pulsar-batch-size"] == str(500 - metadata.ByteSize())
    assert found["X-Pulsar-replicated-to"] == "b,c"
    assert found["X-Pulsar-PROPERTY-TOTAL-CHUNKS"] == "2"
    assert found["X-Pulsar-Is-Encrypted"] == "true"
    assert found["X-Pulsar-Base64-encryption-keys"] == "CgFlEgEB"
    assert found["X-Pulsar-PROPERTY"] == '{"a":"ä\\n"}'
    assert found["X-Pulsar-Broker-Entry-METADATA-index"] == "9"


def test_each_key_of_an_encrypted_message_has_a_header() -> None:
    keys = [EncryptionKeys(key=name, value=b"\x01") for name in ("e", "f")]
    parts = EntryParts(None, None, metadata_of(encryption_keys=keys), b"")
    found = message_headers(Position(3, 4), parts, size_bytes=500, is_uncommitted=False)
    values = [text for name, text in found if name == "X-Pulsar-Base64-encryption-keys"]
    assert values == [b64encode(each.SerializeToString()).decode() for each in keys]


@pytest.mark.parametrize(
    ("millis", "text"),
    [
        (1234567890000, "2009-02-13T23:31:30Z"),
        (1234567890100, "2009-02-13T23:31:30.1Z"),
        (1234567890120, "2009-02-13T23:31:30.12Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (2**63, str(2**63)),
    ],
)
def test_fractions_of_seconds_are_as_short_as_apache_pulsars(millis: int, text: str) -> None:
    assert headers_of(metadata_of(event_time=millis))["X-Pulsar-event-time"] == text


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("k\u00e9 \u20ac \u4e2dx", "k\u00e9    x"),
        ("a\x01\x7fb\tc\r\nd\x80\xa0\U0001f600e", "a \x7fb\tc  d\x80\xa0  e"),
    ],
)
def test_texts_are_latin_1_as_recorded_from_apache_pulsar(key: str, text: str) -> None:
    assert headers_of(metadata_of(partition_key=key))["X-Pulsar-partition-key"] == text


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("z y x abc B", "B abc x y z"),
        ("k \u00e4", "\u00e4 k"),
        (
            "p 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29",
            "22 23 24 25 26 27 28 29 10 11 12 13 14 15 16 17 18 19 0 p 1 2 3 4 5 6 7 8 9 20 21",
        ),
    ],
)
def test_properties_stand_in_the_order_recorded_from_apache_pulsar(names: str, found: str) -> None:
    properties = [property_of(each, "") for each in names.split()]
    text = headers_of(metadata_of(properties=properties))["X-Pulsar-PROPERTY"]
    assert list(json.loads(text)) == found.split()


def test_properties_are_escaped_as_gson_escapes() -> None:
    properties = [property_of("p", "it's <b>&=\u2028 \\ \x01\x7f\t")]
    assert headers_of(metadata_of(properties=properties))["X-Pulsar-PROPERTY"] == (
        '{"p":"it\\u0027s \\u003cb\\u003e\\u0026\\u003d\\u2028 \\\\ \\u0001\x7f\\t"}'
    )


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
