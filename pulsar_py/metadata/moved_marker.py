"""The file in a data directory that says that its broker has moved elsewhere (edge).

`MIGRATED`, beside `metadata.sqlite`: a JSON object with format, the cluster, the address of its
metadata and the time at which the move was begun. It is there before the first ledger is copied, so
that nothing is published here that the copy lacks. A broker does not start in such a directory.
Nothing else in it is changed, so without the file it is what it was.

Third-party packages it may import: none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from pulsar_py.common.disks.tool_files import put_in_place, write_file
from pulsar_py.common.errors import MigrationError
from pulsar_py.common.foreign_json import parse_json

FILE: Final = "MIGRATED"
FORMAT: Final = 1


def write_marker(data_dir: Path, *, cluster: str, address: str, time: str) -> None:
    """Say where the directory's content goes; an earlier file stays. Durable when this returns."""
    path = data_dir / FILE
    if path.exists():
        return
    document = {"format": FORMAT, "cluster": cluster, "metadata": address, "begun": time}
    with put_in_place(path) as partial:
        write_file(partial, [f"{json.dumps(document)}\n".encode()])


def remove_marker(data_dir: Path) -> bool:
    """Let brokers start here again; False if nothing kept them from it."""
    try:
        (data_dir / FILE).unlink()
    except FileNotFoundError:
        return False
    return True


def check_not_moved(data_dir: Path) -> None:
    """Return if the directory's content was not moved away.

    Raises:
        MigrationError: It was, or that has begun.
    """
    try:
        text = (data_dir / FILE).read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        document = parse_json(text.encode())
        where = f"cluster {document['cluster']} at {document['metadata']}"
    except (ValueError, KeyError, TypeError):
        where = "a cluster"
    raise MigrationError(
        f"{data_dir}: its content was moved into {where} (file {FILE}): messages published here "
        f"would be missing there. `pulsar-py migrate --release {data_dir}` lets a broker start "
        "here all the same"
    )
