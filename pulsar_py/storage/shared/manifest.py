"""`Manifest`: names the storage's files, and the mark up to which they replace the journal.

The file `MANIFEST` is replaced as a whole at each checkpoint and after each merge and compaction.
It has a line of 33 characters, then JSON (small: it grows with files, not with ledgers):

    "PULSAR-PY-STORAGE 1 " (version 1), 8 hexadecimal digits CRC32C of all that follows, 4 spaces
    and a line feed, then an object:
    {"journal": [file id, offset],          entries before it are in the logs
     "logs": {"id": [bytes, live bytes]},   entry logs; live: in ledgers not deleted
     "tables": [newest id, ...],            index tables, newest first
     "next_log": id, "next_table": id}      ids above all ever used

Entry logs and tables that it does not name are left over from a crash. Where it is missing, nothing
was checkpointed yet, and the journal begins with file 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Struct, field

from pulsar_py.common.errors import CorruptDataError, FormatVersionError
from pulsar_py.common.hashing import crc32c

PATH = "MANIFEST"
_MAGIC = "PULSAR-PY-STORAGE"
VERSION = 1
_HEAD_LENGTH = 33
_HEAD_WORDS_COUNT = 3


class LogState(Struct, frozen=True):
    """Bytes of an entry log's runs, and how many of them belong to living ledgers."""

    size_bytes: int
    live_bytes: int


class Manifest(Struct, frozen=True):
    """Everything that is part of the storage.

    Invariant: all ids are below `next_log_id` and `next_table_id`, so that no file name is used
    twice; a log has at most as many live bytes as bytes; a table is named once.
    """

    mark: tuple[int, int] = (1, 0)
    logs: Mapping[int, LogState] = field(default_factory=dict)
    tables: tuple[int, ...] = ()
    next_log_id: int = 1
    next_table_id: int = 1

    def check(self) -> None:
        """Assert the class's invariant."""
        assert max(self.logs, default=0) < self.next_log_id
        assert max(self.tables, default=0) < self.next_table_id
        assert len(set(self.tables)) == len(self.tables)
        assert all(0 <= log.live_bytes <= log.size_bytes for log in self.logs.values())

    def encode(self) -> bytes:
        """The stored form."""
        self.check()
        body = json.dumps(
            {
                "journal": self.mark,
                "logs": {
                    str(log_id): [log.size_bytes, log.live_bytes]
                    for log_id, log in self.logs.items()
                },
                "tables": self.tables,
                "next_log": self.next_log_id,
                "next_table": self.next_table_id,
            }
        ).encode()
        head = f"{_MAGIC} {VERSION} {crc32c(body):08x}".ljust(_HEAD_LENGTH - 1) + "\n"
        return head.encode() + body

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """Read the stored form.

        Raises:
            CorruptDataError: It is damaged; of another version it is a `FormatVersionError`.
        """
        head = data[:_HEAD_LENGTH].decode(errors="replace").split()
        body = data[_HEAD_LENGTH:]
        if len(head) != _HEAD_WORDS_COUNT or head[0] != _MAGIC:
            raise CorruptDataError(f"{PATH}: offset 0: not a manifest")
        if head[1] != str(VERSION):
            raise FormatVersionError(PATH, "manifest", head[1], VERSION)
        if head[2] != f"{crc32c(body):08x}":
            raise CorruptDataError(f"{PATH}: offset 0: the checksum does not match")
        content = json.loads(body)
        file_id, offset = content["journal"]
        manifest = cls(
            mark=(file_id, offset),
            logs={int(log_id): LogState(*state) for log_id, state in content["logs"].items()},
            tables=tuple(content["tables"]),
            next_log_id=content["next_log"],
            next_table_id=content["next_table"],
        )
        manifest.check()  # An assertion is enough: the checksum matches, so we wrote these bytes.
        return manifest
