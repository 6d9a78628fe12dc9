"""Compression."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import lz4.block
import pytest

from pulsar_py.common.errors import PayloadError
from pulsar_py.proto.PulsarApi_pb2 import CompressionType
from pulsar_py.wire.compression import compress, decompress

CODECS = [
    CompressionType.NONE,
    CompressionType.LZ4,
    CompressionType.ZLIB,
    CompressionType.ZSTD,
    CompressionType.SNAPPY,
]
DATA = b"pulsar-pulsar-" * 1000


@pytest.mark.parametrize("data", [DATA, b"x", b"", bytes(range(256))], ids=len)
@pytest.mark.parametrize("codec", CODECS, ids=CompressionType.Name)
def test_what_was_compressed_reads_back(codec: CompressionType.ValueType, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data


@pytest.mark.parametrize("codec", CODECS, ids=CompressionType.Name)
def test_a_large_one_reads_back_from_any_memory(codec: CompressionType.ValueType) -> None:
    data = DATA * 20
    compressed = b"before" + compress(codec, data)

    assert decompress(codec, memoryview(compressed)[6:], len(data)) == data


@pytest.mark.parametrize("data", [DATA, b"x", b"", DATA * 20], ids=len)
def test_blocks_are_those_of_the_reference_implementation(data: bytes) -> None:
    theirs = lz4.block.compress(data, store_size=False)
    ours = compress(CompressionType.LZ4, data)

    assert decompress(CompressionType.LZ4, theirs, len(data)) == data
    assert lz4.block.decompress(ours, uncompressed_size=len(data)) == data


@pytest.mark.parametrize("codec", CODECS[1:], ids=CompressionType.Name)
def test_repetition_shrinks(codec: CompressionType.ValueType) -> None:
    assert len(compress(codec, DATA)) < len(DATA) / 10


@pytest.mark.parametrize("size", [0, 1, len(DATA) - 1, len(DATA) + 1, 2 * len(DATA)])
@pytest.mark.parametrize("codec", CODECS[1:], ids=CompressionType.Name)
def test_another_size_than_the_metadata_says_is_refused(
    codec: CompressionType.ValueType, size: int
) -> None:
    with pytest.raises(PayloadError):
        decompress(codec, compress(codec, DATA), size)


@pytest.mark.parametrize("codec", CODECS[1:], ids=CompressionType.Name)
@pytest.mark.parametrize("data", [b"", b"\xff" * 20, b"not compressed at all"], ids=bytes.hex)
def test_damaged_data_are_refused(codec: CompressionType.ValueType, data: bytes) -> None:
    with pytest.raises(PayloadError):
        decompress(codec, data, 1000)


def test_a_cut_stream_is_refused() -> None:
    for codec in CODECS[1:]:
        with pytest.raises(PayloadError):
            decompress(codec, compress(codec, DATA)[:-5], len(DATA))


def test_an_unknown_codec_is_refused() -> None:
    unknown: CompressionType.ValueType = 9  # type: ignore[assignment]
    with pytest.raises(PayloadError, match="9"):
        decompress(unknown, b"", 0)
    with pytest.raises(ValueError, match="9"):
        compress(unknown, b"")


def test_codecs_are_loaded_when_needed() -> None:
    code = (
        "import sys, pulsar_py.wire.compression as c; c.compress(2, b'x')\n"
        "print([m for m in ('zstandard', 'cramjam') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("codec", [CompressionType.LZ4, CompressionType.SNAPPY])
def test_no_memory_is_taken_for_what_can_not_be(codec: CompressionType.ValueType) -> None:
    claimed = 3 << 30
    header = b"\x80\x80\x80\x80\x0c"  # 3 GiB, as Snappy begins
    tracemalloc.start()
    try:
        with pytest.raises(PayloadError, match=f"11 bytes can't inflate to {claimed}"):
            decompress(codec, header + b"abcdef", claimed)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS, ids=CompressionType.Name)
def test_what_can_not_be_compressed_better_is_possible(codec: CompressionType.ValueType) -> None:
    data = bytes(1 << 20)

    assert decompress(codec, compress(codec, data), len(data)) == data
