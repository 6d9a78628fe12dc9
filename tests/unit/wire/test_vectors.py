"""Every recorded byte vector decodes to what it should, and encodes to the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf import json_format, text_format
from google.protobuf.message import Message

from pulsar_py.common.hashing import crc32c
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.BookkeeperProtocol_pb2 import Request, Response
from pulsar_py.proto.DataFormats_pb2 import CookieFormat, LedgerMetadataFormat
from pulsar_py.proto.MLDataFormats_pb2 import ManagedCursorInfo, ManagedLedgerInfo
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    BrokerEntryMetadata,
    MessageIdData,
    MessageMetadata,
    SingleMessageMetadata,
)
from pulsar_py.wire.batch import join_batch, split_batch
from pulsar_py.wire.commands import FIELD_NAMES, encode, read_command, serialize
from pulsar_py.wire.compression import decompress
from pulsar_py.wire.entry_summary import summarize_entry
from pulsar_py.wire.framing import FrameDecoder, encode_message_header
from pulsar_py.wire.payload import (
    ChecksumStatus,
    add_broker_entry_metadata,
    encode_entry,
    parse_broker_entry_metadata,
    split_entry,
    strip_broker_entry_metadata,
    verify_checksum,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
FILE: dict[str, Any] = json.loads((RECORDINGS / "vectors.json").read_text())
VECTORS: list[dict[str, Any]] = FILE["vectors"]
TABLES: dict[str, Any] = FILE["tables"]


def of_kind(*kinds: str) -> list[Any]:
    return [
        pytest.param(vector, id=vector["name"]) for vector in VECTORS if vector["kind"] in kinds
    ]


def named(name: str) -> dict[str, Any]:
    return next(vector for vector in VECTORS if vector["name"] == name)


def from_json(fields: dict[str, Any], message: Any) -> Any:
    return json_format.ParseDict(fields, message)


@pytest.mark.parametrize("vector", of_kind("pulsar frame"))
def test_a_frame_decodes_and_encodes(vector: dict[str, Any]) -> None:
    decoded = vector["decoded"]
    data = bytes.fromhex(vector["hex"])

    (frame,) = FrameDecoder(len(data)).decode(data)
    command = read_command(frame.command)

    assert decoded.get("total_size", len(data) - 4) == len(data) - 4
    assert decoded.get("command_size", len(frame.command)) == len(frame.command)
    assert command == from_json(decoded["command"], BaseCommand())
    message = getattr(command, FIELD_NAMES[command.type])
    if frame.headers_and_payload is None:
        assert "metadata" not in decoded
        assert encode(message) == data
        return
    entry = check_entry(frame.headers_and_payload, decoded)
    assert encode_message_header(serialize(message), len(entry)) + entry == data


def check_entry(data: bytes, decoded: dict[str, Any]) -> bytes:
    """Compare an entry with what it should be; returns it encoded again from its parts."""
    parts = split_entry(data)
    fields = dict(decoded["metadata"])
    if fields.pop("encryption_keys", None) is not None:  # given as "see hex"
        assert [key.key for key in parts.metadata.encryption_keys] == ["mykey"]
        fields["encryption_keys"] = json_format.MessageToDict(parts.metadata)["encryptionKeys"]
    metadata = from_json(fields, MessageMetadata())
    assert parts.metadata == metadata
    if "payload_hex" in decoded:  # long ones give their length in words
        assert decoded["payload_hex"] in (parts.payload.hex(), f"{len(parts.payload)} bytes")
    assert verify_checksum(data) is ChecksumStatus.VALID
    assert parts.checksum is not None
    assert f"{parts.checksum:08x}" == decoded["checksum_hex"]
    summary = summarize_entry(data)
    assert summary.is_readable
    assert summary.messages_count == metadata.num_messages_in_batch
    assert summary.payload_size == len(parts.payload)
    if "batch" in decoded and not metadata.encryption_keys:
        check_batch(parts.payload, metadata, decoded["batch"])
    again = encode_entry(parts.metadata, parts.payload)
    assert strip_broker_entry_metadata(data) == again
    if "broker_entry_metadata" in decoded:
        block = from_json(decoded["broker_entry_metadata"], BrokerEntryMetadata())
        assert parts.broker_entry_metadata == block
        again = add_broker_entry_metadata(again, block)
    return again


def check_batch(body: bytes, metadata: MessageMetadata, expected: list[dict[str, Any]]) -> None:
    if metadata.compression:
        body = decompress(metadata.compression, body, metadata.uncompressed_size)
    messages = split_batch(body, metadata.num_messages_in_batch)
    assert [message.payload.hex() for message in messages] == [
        row["payload_hex"] for row in expected
    ]
    for message, row in zip(messages, expected, strict=True):
        assert message.metadata == from_json(row["metadata"], SingleMessageMetadata())
    assert join_batch((message.metadata, message.payload) for message in messages) == body


@pytest.mark.parametrize("codec", ["lz4", "zlib", "zstd", "snappy"])
def test_compressed_payloads_inflate(codec: str) -> None:
    data = bytes.fromhex(named(f"send_{codec}")["hex"])
    (frame,) = FrameDecoder(len(data)).decode(data)
    assert frame.headers_and_payload is not None
    parts = split_entry(frame.headers_and_payload)

    assert parts.metadata.uncompressed_size == 112
    inflated = decompress(parts.metadata.compression, parts.payload, 112)
    assert inflated == b"pulsar-pulsar-" * 8


def test_a_stream_of_all_frames_decodes() -> None:
    frames = [bytes.fromhex(v["hex"]) for v in VECTORS if v["kind"] == "pulsar frame"]

    assert len(FrameDecoder(100_000).decode(b"".join(frames))) == len(frames) == 78


@pytest.mark.parametrize("vector", of_kind("serialized message id"))
def test_message_ids_read_back(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    expected = from_json(vector["decoded"]["fields"], MessageIdData())

    assert MessageIdData.FromString(data) == expected
    assert MessageId.parse(data) == MessageId.from_data(expected)
    assert MessageId.parse(data).serialize() == data


def test_a_stored_marker_decodes_and_encodes() -> None:
    vector = named("entry_txn_commit_marker")
    data = bytes.fromhex(vector["hex"])

    assert check_entry(data, vector["decoded"]) == data
    summary = summarize_entry(data)
    assert summary.is_marker
    assert summary.txn_id == (3, 12)


def test_a_broker_entry_metadata_block_decodes_and_encodes() -> None:
    vector = named("entry_broker_metadata_prefix")
    data = bytes.fromhex(vector["hex"])
    expected = from_json(vector["decoded"]["broker_entry_metadata"], BrokerEntryMetadata())

    assert parse_broker_entry_metadata(data) == expected
    assert add_broker_entry_metadata(b"", expected) == data


def encrypted_vectors() -> list[Any]:
    return [
        pytest.param(vector, id=vector["name"])
        for vector in VECTORS
        if vector["kind"] == "pulsar frame"
        and "encryption_keys" in vector["decoded"].get("metadata", {})
    ]


def private_key() -> rsa.RSAPrivateKey:
    row = {name: int(value, 16) for name, value in TABLES["rsa_test_key"].items() if name in "ndpq"}
    public = rsa.RSAPublicNumbers(TABLES["rsa_test_key"]["e"], row["n"])
    return rsa.RSAPrivateNumbers(
        p=row["p"],
        q=row["q"],
        d=row["d"],
        dmp1=rsa.rsa_crt_dmp1(row["d"], row["p"]),
        dmq1=rsa.rsa_crt_dmq1(row["d"], row["q"]),
        iqmp=rsa.rsa_crt_iqmp(row["p"], row["q"]),
        public_numbers=public,
    ).private_key()


@pytest.mark.parametrize("vector", encrypted_vectors())
def test_encrypted_payloads_decrypt(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    (frame,) = FrameDecoder(len(data)).decode(data)
    assert frame.headers_and_payload is not None
    parts = split_entry(frame.headers_and_payload)
    (wrapped,) = parts.metadata.encryption_keys
    oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), label=None)
    data_key = private_key().decrypt(wrapped.value, oaep)

    plain = AESGCM(data_key).decrypt(parts.metadata.encryption_param, parts.payload, None)

    decoded = vector["decoded"]
    assert data_key.hex() == decoded["data_key_hex"]
    assert parts.metadata.encryption_param.hex() == decoded["iv_hex"]
    assert plain.hex() == decoded["decrypted_hex"]
    if "batch" in decoded:
        check_batch(plain, parts.metadata, decoded["batch"])
    assert summarize_entry(frame.headers_and_payload).has_encryption_keys


def test_there_are_encrypted_vectors() -> None:
    assert encrypted_vectors()


@pytest.mark.parametrize("vector", of_kind("bookkeeper v3 frame"))
def test_bookkeeper_requests_and_responses(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    kind = Response if vector["name"].endswith("response") else Request
    expected = from_json(vector["decoded"]["message"], kind())

    assert kind.FromString(data[4:]) == expected
    assert data[:4] == (len(data) - 4).to_bytes(4, "big")
    assert expected.SerializeToString() == data[4:]


def test_bookkeeper_ledger_metadata() -> None:
    vector = named("bk_ledger_metadata_v3")
    data = bytes.fromhex(vector["hex"])
    header = b"BookieMetadataFormatVersion\t3\n"
    assert data.startswith(header)
    body = data[len(header) :]
    expected = from_json(vector["decoded"]["message"], LedgerMetadataFormat())

    assert body[0] == len(body) - 1
    assert LedgerMetadataFormat.FromString(body[1:]) == expected
    assert expected.SerializeToString() == body[1:]


def test_a_bookkeeper_cookie() -> None:
    vector = named("bk_cookie_v5")
    version, text = bytes.fromhex(vector["hex"]).decode().split("\n", 1)
    expected = from_json(vector["decoded"]["message"], CookieFormat())

    assert version == "5"
    assert text_format.Parse(text, CookieFormat()) == expected


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ml_managed_ledger_info", ManagedLedgerInfo), ("ml_managed_cursor_info", ManagedCursorInfo)],
)
def test_managed_ledger_metadata(name: str, kind: type[Message]) -> None:
    vector = named(name)
    data = bytes.fromhex(vector["hex"])
    expected = from_json(vector["decoded"]["message"], kind())

    assert kind.FromString(data) == expected
    assert expected.SerializeToString() == data


def test_the_digest_of_bookkeeper_entries_is_our_crc32c() -> None:
    data = bytes.fromhex(named("bk_entry_crc32c")["hex"])

    assert crc32c(data[36:], crc32c(data[:32])).to_bytes(4, "big") == data[32:36]
