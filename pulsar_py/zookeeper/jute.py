"""Jute, the encoding of ZooKeeper's records: big-endian numbers; buffers, texts with a length.

Pure. A length of -1 stands for nothing at all; here it is read as empty.

Source: BinaryOutputArchive, BinaryInputArchive in ZooKeeper's jute.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class JuteError(ValueError):
    """The bytes are no record of the expected form."""


def int32(value: int) -> bytes:
    """A signed number of 4 bytes."""
    return _INT.pack(value)


def int64(value: int) -> bytes:
    """A signed number of 8 bytes."""
    return _LONG.pack(value)


def boolean(value: bool) -> bytes:  # noqa: FBT001  # as its neighbours take theirs
    """One byte."""
    return b"\x01" if value else b"\x00"


def buffer(value: bytes) -> bytes:
    """Bytes behind their length."""
    return _INT.pack(len(value)) + value


def text(value: str) -> bytes:
    """UTF-8 behind its length."""
    return buffer(value.encode())


def vector(items: Iterable[bytes]) -> bytes:
    """Encoded items behind their number."""
    encoded = list(items)
    return _INT.pack(len(encoded)) + b"".join(encoded)


class RecordReader:
    """Takes values off the front of a record, one after the other.

    Every method raises JuteError where the record ends too soon or a length can't be.
    """

    __slots__ = ("_data", "_offset")

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self._data = data
        self._offset = offset

    @property
    def remaining_count(self) -> int:
        """Bytes not taken so far."""
        return len(self._data) - self._offset

    def fork(self) -> RecordReader:
        """Another reader of the same record, which begins where this one is."""
        return RecordReader(self._data, self._offset)

    def _skip(self, size_bytes: int) -> int:
        start = self._offset
        if size_bytes < 0 or start + size_bytes > len(self._data):
            raise JuteError(
                f"a record of {len(self._data)} bytes ends before the {size_bytes} bytes "
                f"at offset {start}"
            )
        self._offset = start + size_bytes
        return start

    def int32(self) -> int:
        """A signed number of 4 bytes."""
        value: int
        (value,) = _INT.unpack_from(self._data, self._skip(4))
        return value

    def int64(self) -> int:
        """A signed number of 8 bytes."""
        value: int
        (value,) = _LONG.unpack_from(self._data, self._skip(8))
        return value

    def boolean(self) -> bool:
        """One byte."""
        return self._data[self._skip(1)] != 0

    def buffer(self) -> bytes:
        """Bytes behind their length."""
        size_bytes = self.int32()
        if size_bytes == -1:
            return b""
        start = self._skip(size_bytes)
        return self._data[start : start + size_bytes]

    def text(self) -> str:
        """UTF-8 behind its length."""
        encoded = self.buffer()
        try:
            return encoded.decode()
        except UnicodeDecodeError as error:
            raise JuteError(f"{encoded!r} is not UTF-8") from error

    def texts(self) -> list[str]:
        """Texts behind their number."""
        count = self.int32()
        if count > self.remaining_count // 4:
            raise JuteError(f"{count} texts in {self.remaining_count} bytes")
        return [self.text() for _ in range(count)]
