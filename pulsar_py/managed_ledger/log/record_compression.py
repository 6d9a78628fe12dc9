"""Inflates records of topics and cursors that Apache Pulsar has compressed (pure).

    LZ4       one raw block
    ZLIB      a stream that may lack its final block: Pulsar ends it with a flush
    ZSTD      one frame
    SNAPPY    one raw block, which begins with its own length

Nothing is inflated beyond the size that the record names, and that has a limit. Codecs are loaded
when first used: hardly a broker needs one.

Source: MetaStoreImpl in Pulsar's managed-ledger, CompressionCodecProvider.
"""

from __future__ import annotations

import zlib
from typing import Final

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.proto.MLDataFormats_pb2 import CompressionType

MAX_INFLATED_BYTES: Final = 256 * 1024 * 1024
"""Far more than a metadata store takes: what claims to be larger is damaged."""


def inflate(compression: CompressionType.ValueType, data: bytes, size_bytes: int) -> bytes:
    """The plain record, of exactly `size_bytes`.

    Raises:
        CorruptDataError: It is damaged, of another size, or compressed in an unknown way.
    """
    if compression == CompressionType.NONE:
        return data
    name = _name(compression)
    if not 0 <= size_bytes <= MAX_INFLATED_BYTES:
        raise CorruptDataError(f"{name} record claims a size of {size_bytes} bytes")
    try:
        plain = _inflate(compression, data, size_bytes)
    except CorruptDataError:
        raise
    except Exception as error:  # each codec has errors of its own
        raise CorruptDataError(f"{name} record of {len(data)} bytes: {error}") from error
    if len(plain) != size_bytes:
        raise CorruptDataError(
            f"{name} record has {len(plain)} bytes inflated, expected {size_bytes}"
        )
    return plain


def _inflate(compression: CompressionType.ValueType, data: bytes, size_bytes: int) -> bytes:
    match compression:
        case CompressionType.ZLIB:
            return zlib.decompressobj().decompress(data, size_bytes + 1)
        case CompressionType.LZ4:
            import cramjam  # noqa: PLC0415 - loaded when first used

            room = bytearray(size_bytes)
            return bytes(room[: cramjam.lz4.decompress_block_into(data, room)])
        case CompressionType.SNAPPY:
            import cramjam  # noqa: PLC0415 - loaded when first used

            found_bytes = int(cramjam.snappy.decompress_raw_len(data))
            if found_bytes != size_bytes:
                raise CorruptDataError(
                    f"SNAPPY record of {found_bytes} bytes, expected {size_bytes}"
                )
            return bytes(cramjam.snappy.decompress_raw(data))
        case CompressionType.ZSTD:
            import zstandard  # noqa: PLC0415 - loaded when first used

            found_bytes = zstandard.frame_content_size(data)
            if found_bytes not in {-1, size_bytes}:  # -1: the frame does not say
                raise CorruptDataError(f"ZSTD record of {found_bytes} bytes, expected {size_bytes}")
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=size_bytes)
        case _:
            raise CorruptDataError(f"record is compressed with {_name(compression)}")


def _name(compression: int) -> str:
    known = CompressionType.DESCRIPTOR.values_by_number.get(compression)
    return f"compression {compression}" if known is None else known.name
