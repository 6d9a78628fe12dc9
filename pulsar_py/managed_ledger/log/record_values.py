"""Compresses and decompresses records of the metadata store, and keeps fields that are unknown.

A value may be compressed, a setting of Apache Pulsar's brokers: 0x47 0x78, the size of a header in
four bytes (big endian), `ManagedLedgerInfoMetadata` or `ManagedCursorInfoMetadata`, and
the message, compressed by NONE, LZ4 (one raw block), ZLIB, ZSTD or SNAPPY (one raw block). All are
read; plain ones are written, unless `RecordCompression` says otherwise.

A newer version may have fields that are unknown here. They are kept, and written again.

Third-party packages it may import: cramjam, msgspec, protobuf, zstandard.

Source: MetaStoreImpl in Pulsar's managed-ledger, CompressionCodecProvider.
"""

from __future__ import annotations

import zlib
from enum import Enum
from typing import Final

from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.proto.MLDataFormats_pb2 import CompressionType, ManagedLedgerInfoMetadata

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of one message; no metadata store holds a larger one."""

_COMPRESSED_MAGIC: Final = b"\x47\x78"
_HEADER_BYTES: Final = 6


class RecordCodec(Enum):
    """How records are compressed, by the names of Pulsar's settings."""

    NONE = "NONE"
    LZ4 = "LZ4"
    ZLIB = "ZLIB"
    ZSTD = "ZSTD"
    SNAPPY = "SNAPPY"


class RecordCompression(Struct, frozen=True):
    """How one kind of records is written.

    Whether it grew is not looked at: Apache Pulsar's brokers read it either way.
    """

    codec: RecordCodec = RecordCodec.NONE
    threshold_bytes: int = 16 * 1024
    """Records of up to so many bytes are written plain."""

    def written(self, plain: bytes) -> bytes:
        """The value to store for a message."""
        if self.codec is RecordCodec.NONE or len(plain) <= self.threshold_bytes:
            return plain
        header = ManagedLedgerInfoMetadata(
            compressionType=CompressionType.Value(self.codec.value), uncompressedSize=len(plain)
        ).SerializeToString()
        size = len(header).to_bytes(_HEADER_BYTES - len(_COMPRESSED_MAGIC), "big")
        return b"".join((_COMPRESSED_MAGIC, size, header, _deflate(self.codec, plain)))


def _deflate(codec: RecordCodec, plain: bytes) -> bytes:
    match codec:
        case RecordCodec.ZLIB:
            return zlib.compress(plain)
        case RecordCodec.LZ4:
            import cramjam  # noqa: PLC0415 - at first use

            return bytes(cramjam.lz4.compress_block(plain, store_size=False))
        case RecordCodec.SNAPPY:
            import cramjam  # noqa: PLC0415 - at first use

            return bytes(cramjam.snappy.compress_raw(plain))
        case RecordCodec.ZSTD:
            import zstandard  # noqa: PLC0415 - at first use

            return zstandard.ZstdCompressor().compress(plain)
        case _:
            return plain


def decompressed(value: bytes) -> bytes:
    """The plain message of a value that may be compressed.

    Raises:
        CorruptDataError: It is cut short, damaged, or compressed in a way that is not known.
    """
    if value[:2] != _COMPRESSED_MAGIC:
        return value
    end = _HEADER_BYTES + int.from_bytes(value[2:_HEADER_BYTES], "big")
    header = ManagedLedgerInfoMetadata()  # the cursor's has the same fields
    try:
        header.ParseFromString(value[_HEADER_BYTES:end])
    except DecodeError as error:
        raise CorruptDataError(f"compressed record's header can't be read: {error}") from error
    size = header.uncompressedSize
    if not 0 <= size <= MAX_BYTES:
        raise CorruptDataError(f"compressed record: {size} bytes, at most {MAX_BYTES} are possible")
    try:
        plain = _inflate(header.compressionType, value[end:], size)
    except CorruptDataError:
        raise
    except Exception as error:  # each codec has errors of its own
        name = CompressionType.Name(header.compressionType)
        raise CorruptDataError(f"record compressed with {name} can't be read: {error}") from error
    if len(plain) != size:
        raise CorruptDataError(f"compressed record has {len(plain)} bytes, its header says {size}")
    return plain


def _inflate(compression: CompressionType.ValueType, data: bytes, size: int) -> bytes:
    match compression:
        case CompressionType.NONE:
            return data
        case CompressionType.ZLIB:
            return zlib.decompressobj().decompress(data, size + 1)
        case CompressionType.LZ4:
            import cramjam  # noqa: PLC0415 - at first use

            result = bytearray(size)
            return bytes(result[: cramjam.lz4.decompress_block_into(data, result)])
        case CompressionType.SNAPPY:
            import cramjam  # noqa: PLC0415 - at first use

            if int(cramjam.snappy.decompress_raw_len(data)) != size:
                raise CorruptDataError("compressed record: SNAPPY has another size than its header")
            return bytes(cramjam.snappy.decompress_raw(data))
        case CompressionType.ZSTD:
            import zstandard  # noqa: PLC0415 - at first use

            if zstandard.frame_content_size(data) not in (-1, size):
                raise CorruptDataError("compressed record: ZSTD has another size than its header")
            if not size:
                return b""
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
        case _:
            raise CorruptDataError(f"compressed record: unknown compression {compression}")


def unknown_fields(plain: bytes, *known: Message) -> bytes:
    """The fields of a serialized message that none of these kinds of messages knows, as they were.

    `known` are empty messages, which are filled.
    """
    left = plain
    for message in known:
        message.ParseFromString(left)
        for field, _ in message.ListFields():
            message.ClearField(field.name)
        left = message.SerializePartialToString()
    return left
