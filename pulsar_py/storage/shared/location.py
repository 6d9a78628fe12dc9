"""`Location`: the place of a run of entries in an entry log (a value).

The index has one as the value of each run's key, and the journal refers with it to runs that were
written to an entry log straight away (`entry_logs.run_log`). All numbers are big-endian; 20 bytes:

    u32  entry log id       u64  offset in it
    u32  bytes of the run   u32  count of entries
"""

from __future__ import annotations

import struct
from typing import Final

from msgspec import Struct

_LOCATION = struct.Struct(">IQII")
LOCATION_BYTES: Final = _LOCATION.size


class Location(Struct, frozen=True):
    """The place of a run of entries."""

    log_id: int
    offset: int
    length: int
    count: int

    def encode(self) -> bytes:
        """The stored form."""
        return _LOCATION.pack(self.log_id, self.offset, self.length, self.count)

    @classmethod
    def decode(cls, data: bytes) -> Location:
        """Read the stored form."""
        return cls(*_LOCATION.unpack(data))
