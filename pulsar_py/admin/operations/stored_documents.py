"""Reads and changes JSON documents of the metadata store that only the administration knows.

They are few and seldom read, so nothing is cached or watched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from pulsar_py.common.errors import MetadataBadVersionError, MetadataError, MetadataExistsError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.metadata.settling import delete_if_there, put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore

Document = dict[str, Any]  # Any: JSON of many shapes

MAX_ATTEMPTS: Final = 20
"""How often a change begins anew because another writer was faster."""


def _decoded(path: str, data: bytes) -> Document:
    """The JSON object that is stored.

    Raises:
        MetadataError: The bytes are something else.
    """
    try:
        value = parse_json(data) if data else {}
    except ValueError as error:
        raise MetadataError(f"{path}: the stored document is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise MetadataError(f"{path}: the stored document is {value!r:.60}, not a JSON object")
    return value


async def read_document(store: MetadataStore, path: str) -> Document | None:
    """The document at a path, None if there is none."""
    found = await store.get(path)
    return None if found is None else _decoded(path, found.value)


async def change_document(
    store: MetadataStore, path: str, change: Callable[[Document], Document]
) -> None:
    """Store what `change` makes of a document, or of an empty one; it may be called again.

    Raises:
        MetadataError: It could not be stored.
    """
    for _ in range(MAX_ATTEMPTS):
        found = await store.get(path)
        known = {} if found is None else _decoded(path, found.value)
        data = json.dumps(change(known), separators=(",", ":"), ensure_ascii=False).encode()
        version = MUST_NOT_EXIST if found is None else found.version
        try:
            await put_settled(store, path, data, expected_version=version)
        except (MetadataBadVersionError, MetadataExistsError):
            await store.sync(path)
            continue
        return
    raise MetadataError(f"{path}: others changed it at each attempt: try again")


async def delete_document(store: MetadataStore, path: str) -> bool:
    """Delete a document; returns whether there was one."""
    return await delete_if_there(store, path)
