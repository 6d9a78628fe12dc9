"""`Buffer`: the type of bytes in any of the forms that sockets and files take."""

from __future__ import annotations

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

EntryBytes: TypeAlias = bytes | memoryview
"""An entry: a large one may be a view of memory that nobody changes while there is a view of it.

A view keeps all of that memory, so who keeps a few bytes of an entry for long takes them as bytes.
"""
