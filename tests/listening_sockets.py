"""Which ports a process listens on, by what Linux says of its sockets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_LISTENING: Final = "0A"


def listening_ports(process: int | str = "self") -> set[int]:
    """The TCP ports of all listening sockets of a process; of this one those of other tests, too."""
    inodes = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink()))
        except OSError:
            continue
        if found:
            inodes.add(found[1])
    ports = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/{process}/net/{table}")
        if not path.exists():
            continue  # without IPv6
        for line in path.read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports
