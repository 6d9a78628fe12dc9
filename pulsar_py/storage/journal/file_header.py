"""`FileHeader`: the first bytes of a journal file; they name the blocks that count in it (a value).

A file `journal/<id>` is used again and again, each time under a new id: each use is a *life*, with
a *generation*, a number drawn anew that nobody can foresee. Blocks carry it, and their checksums
begin with it; so neither what an earlier life left behind nor an image of a block inside an entry
is ever taken for a block of this one. All numbers are big-endian; 64 bytes:

    8s   magic b"PLSRJRNL"
    u32  version, 3
    u32  CRC32C of the 48 bytes that follow
    u64  this file's id; ids grow
    u64  generation
    u64  id of the file before it: files between the two hold nothing that was confirmed
    u64  end of that file: blocks beyond were never confirmed. 0 if there is no file before,
         or only files that the checkpoint replaces
    u32  block bytes: blocks but the first begin at multiples of it
    u32  the most bytes that a block of this file has
    u32  flags: 1 begun, 2 used again
    u32  zero

A file that is used again gets a header that is not begun before it gets its name, so what an
earlier life wrote there is never looked at. A file that was reserved for the first time has none.
The header that is begun is written together with the first block, in one sector.

In version 2 no section of a block refers to an entry log; the header is the same.

Version 1 has 40 bytes: magic, version, checksum, id, and the two numbers of the file before. Its
files were written once, its blocks have no generation and follow one another without padding.
"""

from __future__ import annotations

import struct
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pulsar_py.common.errors import FormatVersionError
from pulsar_py.common.hashing import crc32c

FILE_MAGIC: Final = b"PLSRJRNL"
VERSION: Final = 3
FORMER_VERSION: Final = 1
"""A version that is read as well; so is 2, whose bytes mean the same."""

_START = struct.Struct(">8sII")
_REST = struct.Struct(">QQQQIIII")
_FORMER_REST = struct.Struct(">QQQ")
FILE_HEADER_BYTES: Final = _START.size + _REST.size
_FORMER_BYTES: Final = _START.size + _FORMER_REST.size

_BEGUN = 1
_USED_AGAIN = 2


class FileHeader(Struct, frozen=True):
    """Whose blocks count in a journal file."""

    file_id: int
    previous_id: int = 0
    previous_end: int = 0
    generation: int | None = 0
    """None where the header is lost: blocks of any generation count, if id and offset are right."""
    block_bytes: int = 1
    """What the places of blocks but the first are multiples of."""
    largest_block_bytes: int = 0
    """The most bytes of one block, 0 where that is not known."""
    is_begun: bool = True
    """Whether there may be a confirmed block."""
    is_used_again: bool = False
    """Whether each byte of the file was written in an earlier life."""
    version: int = VERSION

    @property
    def first_offset(self) -> int:
        """Where the first block is."""
        return _FORMER_BYTES if self.version == FORMER_VERSION else FILE_HEADER_BYTES

    def after(self, end: int) -> int:
        """Where the block after one that ends at `end` begins."""
        return end + -end % self.block_bytes

    def begun(self, previous: tuple[int, int]) -> FileHeader:
        """The header once the first block is written, after the end of another file."""
        return replace(self, previous_id=previous[0], previous_end=previous[1], is_begun=True)

    def encode(self) -> bytes:
        """The stored form.

        It is always of the present version: nothing is written in another.
        """
        assert self.version == VERSION, self
        assert self.generation is not None, self
        rest = _REST.pack(
            self.file_id,
            self.generation,
            self.previous_id,
            self.previous_end,
            self.block_bytes,
            self.largest_block_bytes,
            _BEGUN * self.is_begun | _USED_AGAIN * self.is_used_again,
            0,
        )
        return _START.pack(FILE_MAGIC, VERSION, crc32c(rest)) + rest


def lost_headers(file_id: int) -> tuple[FileHeader, FileHeader]:
    """What to look for blocks with where a file's header is damaged: one for each version."""
    return (
        FileHeader(file_id, generation=None),
        FileHeader(file_id, generation=None, version=FORMER_VERSION),
    )


def decode_file_header(data: bytes, path: str) -> FileHeader | None:
    """The header at the start of `data`; None if there is none (a torn or unused file).

    Raises:
        FormatVersionError: It is of another version.
    """
    if len(data) < _FORMER_BYTES:
        return None
    magic, version, checksum = _START.unpack_from(data)
    if magic != FILE_MAGIC:
        return None
    rest_bytes = _FORMER_REST.size if version == FORMER_VERSION else _REST.size
    rest = data[_START.size : _START.size + rest_bytes]
    if version == FORMER_VERSION and checksum == crc32c(rest):
        file_id, *previous = _FORMER_REST.unpack(rest)
        return FileHeader(file_id, previous[0], previous[1], version=FORMER_VERSION)
    is_known = FORMER_VERSION < version <= VERSION
    if is_known and len(rest) == rest_bytes and checksum == crc32c(rest):
        file_id, generation, *previous, block_bytes, largest, flags, _ = _REST.unpack(rest)
        return FileHeader(
            file_id,
            previous[0],
            previous[1],
            generation=generation,
            block_bytes=block_bytes,
            largest_block_bytes=largest,
            is_begun=bool(flags & _BEGUN),
            is_used_again=bool(flags & _USED_AGAIN),
        )
    if version == FORMER_VERSION or is_known or not _is_whole(data, checksum):
        return None
    raise FormatVersionError(path, "journal", version, VERSION)


def _is_whole(data: bytes, checksum: int) -> bool:
    """Whether the checksum fits a header of another version: of one of the sizes there are."""
    sizes = (_FORMER_REST.size, _REST.size)
    return any(crc32c(data[_START.size : _START.size + size]) == checksum for size in sizes)
