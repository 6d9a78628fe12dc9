"""`IoUring`: writes that the kernel does by itself and reports to the event loop (edge).

A loop that has a thread write for it waits twice for the interpreter's lock: until the thread runs,
and until its report is heard. A ring of Linux takes a write by one call that does not block: where
the file system would wait, a thread of the kernel does. The end of a write is a completion in
memory that the kernel shares with the process, and the ring's descriptor is readable then, like a
socket.

The ring's numbers are read and written as plain memory. That is in order on x86-64, where no
processor sees stores out of order, and elsewhere would need barriers that Python has no words for;
so there, and where a system or a sandbox has no rings, `IoUring.open` returns None. The kernel may
look at them at any moment, so each is read and stored at once: `Struct.pack_into` would store zeros
first, and a kernel that sees a zero there takes the ring for full.

Source: the manual pages io_uring(7), io_uring_setup(2) and io_uring_enter(2).
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

WRITES_COUNT: Final = 8
"""The most writes under way at once; a power of two."""

_MACHINE: Final = "x86_64"
_SETUP: Final = 425
_ENTER: Final = 426
"""Numbers of system calls, for which the C library has no functions."""

_PARAMETERS: Final = struct.Struct("=30I")
_RINGS_AT: Final = 0
_SUBMISSIONS_AT: Final = 0x10000000
_HAS_ONE_MAPPING: Final = 1
_WRITE: Final = 23
# Operation, flags, priority, descriptor, offset, address, length, flags of the write, number.
_SUBMISSION: Final = struct.Struct("=BBHiQQIIQ24x")
# Number, bytes written or an error's number below zero, flags.
_COMPLETION: Final = struct.Struct("=QiI")
_U32: Final = struct.Struct("=I")
_U32_MASK: Final = 0xFFFFFFFF

OnWritten = Callable[[int], None]
"""Called on the loop, once: with the bytes written, or an error's number (`errno`) below zero."""


class _Layout(NamedTuple):
    """Where a ring's numbers are in its memory."""

    size_bytes: int
    submissions_count: int
    submitted: int
    submission_slots: int
    seen: int
    completed: int
    completions: int
    completions_count: int

    @classmethod
    def of(cls, parameters: tuple[int, ...]) -> _Layout | None:
        """The layout that the kernel gave; None for kernels that map the rings one by one."""
        submissions_count, completions_count = parameters[:2]
        if not parameters[5] & _HAS_ONE_MAPPING:
            return None
        _, submitted, _, _, _, _, slots = parameters[10:17]
        seen, completed, _, _, _, completions = parameters[20:26]
        size_bytes = max(
            slots + _U32.size * submissions_count,
            completions + _COMPLETION.size * completions_count,
        )
        return cls(
            size_bytes,
            submissions_count,
            submitted,
            slots,
            seen,
            completed,
            completions,
            completions_count,
        )


class IoUring:
    """A ring for writes. Belongs to one event loop."""

    def __init__(self, descriptor: int, layout: _Layout, submit: Callable[[], int]) -> None:
        """Use `open`."""
        self._descriptor = descriptor
        self._layout = layout
        # Submits one write; returns 1 if it was taken, else an error's number below zero, or 0.
        self._submit = submit
        self._ring = mmap.mmap(descriptor, layout.size_bytes, offset=_RINGS_AT)
        self._submissions = mmap.mmap(
            descriptor, _SUBMISSION.size * layout.submissions_count, offset=_SUBMISSIONS_AT
        )
        for slot in range(layout.submissions_count):
            _U32.pack_into(self._ring, layout.submission_slots + _U32.size * slot, slot)
        self._submitted = self._number_at(layout.submitted)
        self._seen = self._number_at(layout.seen)
        self._completed = self._number_at(layout.completed)
        self._is_closing = False
        self._submitted_count = 0
        self._seen_count = 0
        self._under_way: dict[int, OnWritten] = {}
        self._idle: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def _number_at(self, offset: int) -> memoryview:
        return memoryview(self._ring)[offset : offset + _U32.size].cast("I")

    @classmethod
    def open(cls) -> IoUring | None:
        """A new ring, or None where there are none; imports `ctypes`, so call it in a thread."""
        if sys.platform != "linux" or os.uname().machine != _MACHINE:
            return None
        try:
            import ctypes  # noqa: PLC0415 - the start does without

            # Neither call waits, so neither gives the interpreter's lock away.
            system_call = ctypes.PyDLL(None, use_errno=True).syscall
        except (ImportError, OSError, AttributeError):  # a Python without it, or linked statically
            return None
        system_call.restype = ctypes.c_long
        given = ctypes.create_string_buffer(_PARAMETERS.size)
        descriptor = system_call(ctypes.c_long(_SETUP), ctypes.c_long(WRITES_COUNT), given)
        if descriptor < 0:
            return None
        layout = _Layout.of(_PARAMETERS.unpack(given.raw))
        if layout is None:
            os.close(descriptor)
            return None
        submits_one = [ctypes.c_long(number) for number in (_ENTER, descriptor, 1, 0, 0, 0, 0)]

        def submit() -> int:
            taken: int = system_call(*submits_one)
            return taken if taken >= 0 else -ctypes.get_errno()

        try:
            return cls(descriptor, layout, submit)
        except OSError:
            os.close(descriptor)
            return None

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Report to this loop from now on.

        Raises:
            NotImplementedError: The loop can't wait for descriptors.
            OSError: It can't wait for one more.
        """
        loop.add_reader(self._descriptor, self._take_completions)
        self._loop = loop

    @property
    def has_room(self) -> bool:
        """Whether one more write may begin; never again once `close` was called."""
        return len(self._under_way) < WRITES_COUNT and not self._is_closing

    def write(
        self,
        descriptor: int,
        offset: int,
        memory: tuple[int, int],
        flags: int,
        on_written: OnWritten,
    ) -> None:
        """Begin to write to a file at `offset`; reports once.

        Args:
            descriptor: The file's. It may be closed meanwhile: the kernel keeps the file.
            offset: Where in the file, in bytes.
            memory: Address and length of the bytes, which stay there unchanged until the report.
            flags: Those of `os.pwritev`.
            on_written: Told how it ended.

        Raises:
            OSError: The kernel did not take it.
        """
        # Hot path: publish-1k.
        assert self.has_room
        address, size_bytes = memory
        number, layout = self._submitted_count, self._layout
        slot = number % layout.submissions_count
        _SUBMISSION.pack_into(
            self._submissions,
            _SUBMISSION.size * slot,
            _WRITE, 0, 0, descriptor, offset, address, size_bytes, flags, number,
        )  # fmt: skip
        self._submitted[0] = (number + 1) & _U32_MASK
        taken = self._submit()
        if taken != 1:
            self._submitted[0] = number & _U32_MASK
            raise OSError(-taken, os.strerror(-taken))
        self._submitted_count = number + 1
        self._under_way[number] = on_written

    async def close(self) -> None:
        """Wait for the writes under way, and give the ring back."""
        self._is_closing = True
        if self._under_way:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        if self._loop is not None:
            self._loop.remove_reader(self._descriptor)
        for number in (self._submitted, self._seen, self._completed):
            number.release()
        self._ring.close()
        self._submissions.close()
        os.close(self._descriptor)

    def _take_completions(self) -> None:
        # If a report raises, the rest follows in the next turn: the descriptor stays readable.
        ring, layout = self._ring, self._layout
        while self._completed[0] != self._seen_count & _U32_MASK:
            place = self._seen_count % layout.completions_count
            number, result, _ = _COMPLETION.unpack_from(
                ring, layout.completions + _COMPLETION.size * place
            )
            self._seen_count += 1
            self._seen[0] = self._seen_count & _U32_MASK
            on_written = self._under_way.pop(number)
            if self._idle is not None and not self._under_way:
                with suppress(asyncio.InvalidStateError):  # cancelled
                    self._idle.set_result(None)
            on_written(result)
