"""`Buffer`: the type of bytes in any of the forms that sockets and files take."""

from __future__ import annotations

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

EntryBytes: TypeAlias = bytes | memoryview
"""The bytes of an entry. A large entry may be a view of the buffer that it was read into, which is
not written to again while a view of it exists.

A view keeps the whole buffer in memory: code that keeps a few bytes of an entry copies them.
"""
