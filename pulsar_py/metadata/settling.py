"""Finds out whether a change took effect when its answer is missing (edge).

It is meant for keys that several writers change, each based on what it read. `OwnedRecord` in
`managed_ledger` does this for keys of a single owner, which remembers what it has written.

Source: the retries after a connection loss in BookKeeper's ZooKeeperClient.
"""

from __future__ import annotations

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataExistsError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
)
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore


async def put_settled(
    store: MetadataStore, path: str, value: bytes, *, expected_version: int
) -> int:
    """Compare-and-set, then read back if the answer is missing; returns the new version.

    Raises:
        MetadataExistsError, MetadataBadVersionError: The key has another writer's value.
        MetadataOutcomeUnknownError: The key still has its old version, and may yet change.
        MetadataError: As `MetadataStore.put`.
    """
    try:
        return await store.put(path, value, expected_version=expected_version)
    except MetadataOutcomeUnknownError:
        found = await store.get_newest(path)
        version = MUST_NOT_EXIST if found is None else found.version
        if version == expected_version:
            raise
        if found is not None and version == expected_version + 1 and found.value == value:
            return version
        text = f"{path}: expected version {expected_version}, it has {version}"
        if expected_version == MUST_NOT_EXIST:
            raise MetadataExistsError(text) from None
        raise MetadataBadVersionError(text) from None


async def delete_settled(
    store: MetadataStore, path: str, *, expected_version: int | None = None
) -> None:
    """Delete a key, and read it if the answer is missing, to learn whether it is gone.

    Raises:
        MetadataNotFoundError: The key did not exist.
        MetadataOutcomeUnknownError: It still exists, and may yet be deleted.
        MetadataError: As `MetadataStore.delete`.
    """
    try:
        await store.delete(path, expected_version=expected_version)
    except MetadataOutcomeUnknownError:
        if await store.get_newest(path) is not None:
            raise


async def delete_if_there(store: MetadataStore, path: str) -> bool:
    """Delete a key; False if there was none.

    Raises:
        MetadataError: It may still be there.
    """
    try:
        await delete_settled(store, path)
    except MetadataNotFoundError:
        return False
    return True
