"""Compresses and decompresses payloads (pure).

    NONE 0     as is
    LZ4 1      one raw LZ4 block; its size comes from `uncompressed_size`
    ZLIB 2     a zlib stream (RFC 1950)
    ZSTD 3     one Zstandard frame
    SNAPPY 4   one raw Snappy block, which begins with its own length

The whole payload is compressed, a batch's body as one. Nothing is inflated beyond the size in the
message's metadata, which the caller checks first. Codecs are loaded when first used, because
a broker hardly ever needs one. Callers handle large payloads in a thread.

LZ4 and Snappy inflate into the final buffer: another copy, in fresh memory, costs twice as much as
inflating (measured: 0.75 against 0.25 ms for a megabyte of log).

Source: CompressionCodecProvider in Pulsar; CompressionType in PulsarApi.proto.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from pulsar_py.common.buffer import Buffer, EntryBytes
from pulsar_py.common.errors import PayloadError
from pulsar_py.proto.PulsarApi_pb2 import CompressionType

_ZSTD_LEVEL: Final = 3
_MAX_LZ4_RATIO: Final = 255
"""The most bytes that one byte of an LZ4 block can inflate to."""
_MAX_SNAPPY_RATIO: Final = 22
"""The most bytes that one byte of a Snappy block can inflate to: a copy of 64 bytes takes three."""
_LARGE_BYTES: Final = 64 * 1024
"""Results below this size are returned as `bytes`, whose slices cost less than those of a view."""


def compress(compression: CompressionType.ValueType, data: bytes) -> bytes:
    """`data` compressed; unchanged for NONE.

    Raises:
        ValueError: There is no such codec.
    """
    match compression:
        case CompressionType.NONE:
            return data
        case CompressionType.LZ4:
            import cramjam  # noqa: PLC0415 - at first use

            return bytes(cramjam.lz4.compress_block(data, store_size=False))
        case CompressionType.ZLIB:
            return zlib.compress(data)
        case CompressionType.ZSTD:
            import zstandard  # noqa: PLC0415 - at first use

            return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(data)
        case CompressionType.SNAPPY:
            import cramjam  # noqa: PLC0415 - at first use

            return bytes(cramjam.snappy.compress_raw(data))
        case _:
            raise ValueError(f"unknown compression {compression}")


def decompress(
    compression: CompressionType.ValueType, data: EntryBytes, uncompressed_size: int
) -> EntryBytes:
    """The decompressed payload, of exactly `uncompressed_size` bytes.

    The caller has checked that size against its limit. A large result may be a view of a buffer of
    its own.

    Raises:
        PayloadError: The data are damaged or inflate to another size, or the codec is unknown.
    """
    if compression == CompressionType.NONE:
        return data
    try:
        result = _inflate(compression, data, uncompressed_size)
    except PayloadError:
        raise
    except Exception as error:  # each codec has errors of its own
        name = CompressionType.Name(compression)
        raise PayloadError(f"{name} payload of {len(data)} bytes: {error}") from error
    if len(result) != uncompressed_size:
        raise _wrong_size(len(result), uncompressed_size)
    return result


def _inflate(
    compression: CompressionType.ValueType, data: EntryBytes, uncompressed_size: int
) -> EntryBytes:
    match compression:
        case CompressionType.LZ4:
            import cramjam  # noqa: PLC0415 - at first use

            return _inflate_into(
                cramjam.lz4.decompress_block_into, data, uncompressed_size, _MAX_LZ4_RATIO
            )
        case CompressionType.ZLIB:
            return zlib.decompressobj().decompress(data, uncompressed_size + 1)
        case CompressionType.ZSTD:
            return _inflate_zstd(data, uncompressed_size)
        case CompressionType.SNAPPY:
            import cramjam  # noqa: PLC0415 - at first use

            size = int(cramjam.snappy.decompress_raw_len(data))
            if size != uncompressed_size:
                raise _wrong_size(size, uncompressed_size)
            return _inflate_into(
                cramjam.snappy.decompress_raw_into, data, uncompressed_size, _MAX_SNAPPY_RATIO
            )
        case _:
            raise PayloadError(f"unknown compression {compression}")


def _inflate_into(
    inflate: Callable[[EntryBytes, Buffer], int],
    data: EntryBytes,
    uncompressed_size: int,
    max_ratio: int,
) -> EntryBytes:
    """Inflate into a buffer of that size, unless so few bytes can't inflate to it.

    The size comes from the producer: a small message could otherwise make us allocate any size.
    """
    # Hot path: batch read in `make bench-spark`, rows of a log.
    if uncompressed_size > max_ratio * len(data):
        raise PayloadError(
            f"payload of {len(data)} bytes can't inflate to {uncompressed_size}, as its metadata "
            f"says, but to {max_ratio * len(data)} at most"
        )
    result = bytearray(uncompressed_size)
    size = inflate(data, result)
    if size != uncompressed_size:
        raise _wrong_size(size, uncompressed_size)
    return bytes(result) if size < _LARGE_BYTES else memoryview(result)


def _inflate_zstd(data: EntryBytes, uncompressed_size: int) -> bytes:
    import zstandard  # noqa: PLC0415 - at first use

    # A frame that names its size is inflated to it, whatever maximum is given.
    size = zstandard.frame_content_size(data)
    if size not in (-1, uncompressed_size):
        raise _wrong_size(size, uncompressed_size)
    if not uncompressed_size:
        return b""
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=uncompressed_size)


def _wrong_size(size: int, uncompressed_size: int) -> PayloadError:
    return PayloadError(f"payload inflates to {size} bytes, its metadata says {uncompressed_size}")
