"""What became of a change whose answer is missing is read back."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataExistsError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
)
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.settling import delete_if_there, delete_settled, put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, Session
from pulsar_py.testing.clock import VirtualClock


class Forgetful(MemoryMetadataStore):
    """Makes a change or not, and loses the answer; somebody else may be quicker to follow."""

    is_made = True
    followed_by: bytes | None = None

    def __init__(self) -> None:
        super().__init__(VirtualClock())

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        if self.is_made:
            await super().put(path, value, expected_version=expected_version, session=session)
        if self.followed_by is not None:
            await super().put(path, self.followed_by)
        raise MetadataOutcomeUnknownError("no answer")

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        if self.is_made:
            await super().delete(path, expected_version=expected_version)
        raise MetadataOutcomeUnknownError("no answer")


async def test_a_put_that_was_made_gives_its_version() -> None:
    store = Forgetful()
    assert await put_settled(store, "/a", b"1", expected_version=MUST_NOT_EXIST) == 0
    assert await put_settled(store, "/a", b"2", expected_version=0) == 1


async def test_a_put_that_was_not_made_stays_unknown() -> None:
    store = Forgetful()
    store.is_made = False
    with pytest.raises(MetadataOutcomeUnknownError):
        await put_settled(store, "/a", b"1", expected_version=MUST_NOT_EXIST)


async def test_somebody_elses_value_is_told_as_such() -> None:
    store = Forgetful()
    store.is_made, store.followed_by = False, b"another's"
    with pytest.raises(MetadataExistsError, match="/a"):
        await put_settled(store, "/a", b"1", expected_version=MUST_NOT_EXIST)
    with pytest.raises(MetadataBadVersionError, match="it has 1"):
        await put_settled(store, "/a", b"1", expected_version=0)


async def test_a_deletion_is_looked_after() -> None:
    store = Forgetful()
    await MemoryMetadataStore.put(store, "/a", b"")
    store.is_made = False
    with pytest.raises(MetadataOutcomeUnknownError):
        await delete_settled(store, "/a")
    store.is_made = True
    assert await delete_if_there(store, "/a")
    assert not await delete_if_there(store, "/a")
    with pytest.raises(MetadataNotFoundError):
        await delete_settled(store, "/a")
