"""Writes buffers to files of the machine, through the page cache or past it (edge, blocks).

`DirectWriter` writes past the page cache (`O_DIRECT`): the system then neither copies the bytes
into pages of its own, nor has to find, clear and write out those pages. The device asks for whole
blocks at aligned places of file and memory. So buffers are gathered in a `DirectMemory`, and what
is behind the last whole block is kept and goes through the page cache when the file is synced,
until the next write has the rest of that block.

Gathering is a write to a file that exists in memory only: one system call that copies a thousand
buffers without the interpreter's lock, where slices would hold up the event loop. A few kilobytes
are copied with the lock held: waiting for it after a system call may take longer than the copy. For
the same reason a group is written and made durable by one call (`RWF_DSYNC`) where the system can.

A file system may have no such writes, or refuse one: then the writer goes on through the page
cache.
"""

# ruff: noqa: TID251 - this is one of the two places that write and sync files.

from __future__ import annotations

import errno
import fcntl
import logging
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from pulsar_py.common.buffer import Buffer

logger = logging.getLogger(__name__)

BUFFERS_PER_CALL = 1024
"""IOV_MAX on Linux: how many buffers one call writes at most."""

CACHED_PIECE_BYTES: Final = 1024 * 1024
"""The most bytes of one write to the page cache.

For 2 MB and more Linux may take pages of 2 MB, and lets nothing else run on a processor while it
fills one: 7 to 9 ms on a virtual machine whose host has to find that memory first."""

DIRECT_BLOCK_BYTES: Final = 4096
"""Places and lengths of direct writes are multiples of this: no device known asks for more."""

DIRECT_PIECE_BYTES: Final = 5 * 1024 * 1024
"""The most bytes of one direct write: a usual group of the journal goes in one."""

COPIED_BYTES: Final = 64 * 1024
"""So much is gathered with the interpreter's lock held, which takes some microseconds."""

HAS_DIRECT: Final = hasattr(os, "O_DIRECT") and hasattr(os, "memfd_create")


def write_all(descriptor: int, offset: int, buffers: Sequence[Buffer]) -> int:
    """Write all buffers in order from `offset` on; returns the offset behind them.

    Raises:
        OSError: Not all could be written.
    """
    for start in range(0, len(buffers), BUFFERS_PER_CALL):
        offset = _write_some(descriptor, offset, buffers[start : start + BUFFERS_PER_CALL])
    return offset


def write_cached(descriptor: int, offset: int, buffers: Sequence[Buffer]) -> int:
    """As `write_all`, through the page cache, at most `CACHED_PIECE_BYTES` at a time."""
    for piece in _pieces(buffers, CACHED_PIECE_BYTES):
        offset = write_all(descriptor, offset, piece)
    return offset


def _write_some(descriptor: int, offset: int, buffers: Sequence[Buffer]) -> int:
    rest = list(buffers)
    end = offset + sum(map(len, rest))
    while offset < end:
        written = os.pwritev(descriptor, rest, offset)
        offset += written
        if offset == end:
            break
        while rest and written >= len(rest[0]):
            written -= len(rest.pop(0))
        if rest and written:
            rest[0] = memoryview(rest[0])[written:]
    return offset


class DirectMemory:
    """Aligned memory that is used again for one direct write after another."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("pulsar-direct-writes", os.MFD_CLOEXEC)
        try:
            # Pages get memory when they are first written: an idle journal needs one or two.
            os.ftruncate(self._descriptor, DIRECT_PIECE_BYTES)
            self._mapped = mmap.mmap(self._descriptor, DIRECT_PIECE_BYTES)
            self._address = 0  # unknown
        except OSError:
            os.close(self._descriptor)
            raise

    def gather(self, buffers: Sequence[Buffer]) -> memoryview:
        """The bytes of all buffers, at most `DIRECT_PIECE_BYTES`, until the next call."""
        size_bytes = sum(map(len, buffers))
        if size_bytes > COPIED_BYTES:
            write_all(self._descriptor, 0, buffers)
        else:
            self._mapped[:size_bytes] = b"".join(buffers)
        return memoryview(self._mapped)[:size_bytes]

    def fill(self, buffers: Sequence[Buffer]) -> tuple[int, int]:
        """As `gather`, with the interpreter's lock held; returns address and length."""
        # Hot path: publish-1k.
        mapped, end = self._mapped, 0
        for buffer in buffers:
            start, end = end, end + len(buffer)
            mapped[start:end] = buffer
        return self._address or self._find_address(), end

    def _find_address(self) -> int:
        import ctypes  # noqa: PLC0415 - the start does without

        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapped))
        return self._address

    def close(self) -> None:
        """Give the memory back; what the traceback of a kept error still has, when that is gone."""
        with suppress(BufferError):
            self._mapped.close()
        os.close(self._descriptor)


class DirectWrites:
    """What the direct writers of one disk share. Safe for threads."""

    def __init__(self) -> None:
        # Memory that no write uses now: in all, as many as there were writes at once.
        self._free: list[DirectMemory] = []
        self.is_refused = not HAS_DIRECT
        """Whether it is known that there are no direct writes here."""
        self.sync_flag: int = getattr(os, "RWF_DSYNC", 0)
        """The flag of a write that is durable when it returns; 0 where there is none."""

    def take(self) -> DirectMemory:
        """Memory that nobody else uses until it is given back."""
        try:
            return self._free.pop()
        except IndexError:
            return DirectMemory()

    def give_back(self, memory: DirectMemory) -> None:
        """Let others use it."""
        self._free.append(memory)

    def refuse(self) -> None:
        """Note that there are no direct writes here, and say so once."""
        if not self.is_refused:
            self.is_refused = True
            logger.info("no direct writes here, the page cache is used")

    def close(self) -> None:
        """Free the memory; more may be taken later."""
        while self._free:
            self._free.pop().close()


class DirectWriter:
    """Writes one file from its start, past the page cache; one call at a time."""

    def __init__(self, descriptor: int, shared: DirectWrites) -> None:
        self._descriptor = descriptor
        self._shared = shared
        # Bytes behind the last whole block: not written yet, or through the page cache.
        self._tail = b""
        self._is_synced = True  # all that was written is durable
        # Once a write has failed or was refused, the rest of the file goes through the page cache.
        self._is_direct = not shared.is_refused and self._set_direct(is_direct=True)

    def takes_blocks(self, size_bytes: int) -> bool:
        """Whether so many bytes may now be written past it, directly and durably at once."""
        return (
            self._is_direct
            and self._is_synced
            and not self._tail
            and not size_bytes % DIRECT_BLOCK_BYTES
            and bool(self._shared.sync_flag)
        )

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Write buffers at `offset`, where the write before ended; not durable before `sync`.

        Raises:
            OSError: Not all could be written.
        """
        self._is_synced = False
        self._write(offset, buffers, 0)

    def write_and_sync(self, offset: int, buffers: Sequence[Buffer]) -> None:
        """Write buffers at `offset`; they and all before them are durable when it returns.

        Raises:
            OSError: Not all could be written, or be made durable.
        """
        size_bytes = sum(map(len, buffers))
        end = offset + size_bytes
        is_one_call = (
            self._is_synced and size_bytes < DIRECT_PIECE_BYTES and not end % DIRECT_BLOCK_BYTES
        )
        flag = self._shared.sync_flag if is_one_call else 0
        self._is_synced = False
        self._write(offset, buffers, flag)
        if flag and self._is_direct and self._shared.sync_flag:
            self._is_synced = True
        else:
            self.sync(end)

    def _write(self, offset: int, buffers: Sequence[Buffer], flag: int) -> None:
        if not self._is_direct:
            write_cached(self._descriptor, offset, buffers)
            return
        assert offset % DIRECT_BLOCK_BYTES == len(self._tail), (offset, len(self._tail))
        offset -= len(self._tail)
        memory = self._memory()
        if memory is None:
            write_cached(self._descriptor, offset, [self._tail, *buffers])
            return
        try:
            for piece in _pieces([self._tail, *buffers], DIRECT_PIECE_BYTES):
                with memory.gather(piece) as data:
                    end = len(data) - len(data) % DIRECT_BLOCK_BYTES
                    self._write_blocks(data[:end], offset, flag)
                    offset += end
                    self._tail = bytes(data[end:])
        except OSError:
            self._give_up()
            raise
        finally:
            self._shared.give_back(memory)
        if not self._is_direct:
            write_cached(self._descriptor, offset, [self._tail])

    def sync(self, end: int) -> None:
        """Make everything durable that was written, up to `end`.

        Raises:
            OSError: It can't be made durable.
        """
        if self._tail and self._is_direct:
            self._set_direct(is_direct=False)
            write_cached(self._descriptor, end - len(self._tail), [self._tail])
            self._set_direct(is_direct=True)
        os.fdatasync(self._descriptor)
        self._is_synced = True

    def close(self) -> None:
        """Let a late call fail: the system may soon give the descriptor to another file."""
        self._descriptor = -1
        self._is_direct = False

    def _memory(self) -> DirectMemory | None:
        """Memory to gather in; None where the system gives none, as some sandboxes do."""
        try:
            return self._shared.take()
        except OSError:
            self._shared.refuse()
            self._give_up()
            return None

    def _write_blocks(self, blocks: memoryview, offset: int, flag: int) -> None:
        with blocks:
            written = 0
            while written < len(blocks) and self._is_direct:
                written += self._write_directly(blocks[written:], offset + written, flag)
            if written < len(blocks):
                write_cached(self._descriptor, offset + written, [blocks[written:]])

    def _write_directly(self, blocks: memoryview, offset: int, flag: int) -> int:
        try:
            if flag:
                written = os.pwritev(self._descriptor, [blocks], offset, flag)
            else:
                written = os.pwrite(self._descriptor, blocks, offset)
        except OSError as error:
            if flag and error.errno in {errno.EOPNOTSUPP, errno.ENOSYS}:
                self._shared.sync_flag = 0
                return self._write_directly(blocks, offset, 0)
            if error.errno != errno.EINVAL:
                raise
            self._shared.refuse()
            written = 0
        if written % DIRECT_BLOCK_BYTES or not written:
            self._give_up()
        return written

    def _give_up(self) -> None:
        self._is_direct = False
        self._set_direct(is_direct=False)

    def _set_direct(self, *, is_direct: bool) -> bool:
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        flags = flags | os.O_DIRECT if is_direct else flags & ~os.O_DIRECT
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._shared.refuse()
            return False
        return True


def _pieces(buffers: Sequence[Buffer], piece_bytes: int) -> Iterator[list[Buffer]]:
    """The buffers in order, in lists of `piece_bytes` in all, the last one shorter."""
    piece: list[Buffer] = []
    room = piece_bytes
    for buffer in buffers:
        rest = buffer
        while len(rest) >= room:
            view = memoryview(rest)
            yield [*piece, view[:room]]
            rest, piece, room = view[room:], [], piece_bytes
        piece.append(rest)
        room -= len(rest)
    yield piece
