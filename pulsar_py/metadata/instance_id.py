"""Checks at each start that metadata and ledgers belong together, by an id that both carry (edge).

The id is stored in the metadata store at `/ledgers/INSTANCEID` and in the file `COOKIE` on the
ledgers' disk. The file is written first: a crash in between leaves a file without a key and nothing
else. Without this check a broker would start with ledgers but not their metadata, and give new
ledgers ids that are taken; or with metadata but not its ledgers, and fail topic by topic.

Source: the cookies and `INSTANCEID` of Apache BookKeeper, reduced to the id.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import InstanceMismatchError
from pulsar_py.metadata.store import MetadataStore

PATH: Final = "/ledgers/INSTANCEID"
FILE: Final = "COOKIE"


async def check_instance_id(metadata: MetadataStore, disk: Disk, *, new_id: str) -> str:
    """The instance's id; a new instance gets `new_id`, stored at both places.

    Raises:
        InstanceMismatchError: Metadata and ledgers are not of the same instance, or one is missing.
    """
    stored = await metadata.get(PATH)
    known = None if stored is None else stored.value.decode()
    try:
        cookie = (await disk.read_whole(FILE)).decode().strip()
    except FileNotFoundError:
        cookie = None
    if known is None:
        if await _has_ledgers(disk):
            raise InstanceMismatchError(
                f"there are ledgers of instance {cookie}, but the metadata for them is missing; "
                "bring back the metadata store that belongs to them"
            )
        await disk.replace(FILE, f"{new_id}\n".encode())
        await metadata.put(PATH, new_id.encode())
        return new_id
    if cookie is None:
        raise InstanceMismatchError(
            f"the metadata is of instance {known}, but its ledgers are missing: no file {FILE}; "
            "bring back the ledgers' directory that belongs to it"
        )
    if cookie != known:
        raise InstanceMismatchError(
            f"the metadata is of instance {known}, the ledgers are of instance {cookie}; "
            "start with metadata and ledgers of the same instance"
        )
    return known


async def _has_ledgers(disk: Disk) -> bool:
    """Whether a storage engine has stored anything there: a manifest, or before that a journal."""
    names = set(await disk.list_directory(""))
    return "MANIFEST" in names or bool(await disk.list_directory("journal"))
