"""Documents that only the administration knows."""

from __future__ import annotations

import pytest

from pulsar_py.admin.operations.stored_documents import (
    Document,
    change_document,
    delete_document,
    read_document,
)
from pulsar_py.common.errors import MetadataError
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock

PATH = "/a/b"


async def test_a_document_is_made_changed_and_deleted() -> None:
    store = MemoryMetadataStore(VirtualClock())
    assert await read_document(store, PATH) is None
    await change_document(store, PATH, lambda known: {**known, "a": 1})
    await change_document(store, PATH, lambda known: {**known, "b": [2]})
    assert await read_document(store, PATH) == {"a": 1, "b": [2]}
    assert await delete_document(store, PATH)
    assert not await delete_document(store, PATH)
    await store.close()


async def test_a_change_begins_anew_if_another_was_faster() -> None:
    """The other one writes between our reading and writing, the first time."""
    store = MemoryMetadataStore(VirtualClock())
    await change_document(store, PATH, lambda _: {"count": 1})
    seen = []

    def change(known: Document) -> Document:
        seen.append(known["count"])
        if len(seen) == 1:
            store._shared.tree.put(PATH, b'{"count": 7}', expected_version=0, now_millis=0)
        return {"count": known["count"] + 1}

    await change_document(store, PATH, change)
    assert seen == [1, 7]
    assert await read_document(store, PATH) == {"count": 8}
    await store.close()


@pytest.mark.parametrize("data", [b"[1]", b"{"])
async def test_what_is_no_object_is_an_error(data: bytes) -> None:
    store = MemoryMetadataStore(VirtualClock())
    await store.put(PATH, data)
    with pytest.raises(MetadataError, match=PATH):
        await read_document(store, PATH)
    await store.close()
