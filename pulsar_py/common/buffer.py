"""Buffer: bytes in any of the forms that sockets and files take."""

from __future__ import annotations

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
