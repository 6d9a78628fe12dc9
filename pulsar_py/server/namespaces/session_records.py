"""`SessionRecords`: reads, writes and deletes the ownership records of a session (edge).

A record that is changed or deleted was read as this session's, or as a former session's of this
broker, and only the version that was read is changed. Before one of a former session is deleted it
is written once, so that its version differs from the first version of the next owner's record.

Which bundles count as owned, and what is read again when, is left to `BundleOwnership`.

Source: ResourceLockImpl in Pulsar.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataExistsError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
)
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore, Session, Versioned
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.owner_record import OwnerRecord

Bundle = tuple[NamespaceName, str]

_NOBODYS = LocalAddresses(default=BrokerAddresses(broker_url=None))


class SessionRecord(Struct, frozen=True):
    """A record of this broker as written, with its version and session."""

    record: OwnerRecord
    version: int
    session_id: str


class SessionRecords:
    """The stored records of one broker's bundles; owned by its `BundleOwnership`."""

    def __init__(
        self,
        metadata: MetadataStore,
        session: Callable[[], Session],
        *,
        on_unanswered: Callable[[Bundle, OwnerRecord], None],
        on_outlived: Callable[[Bundle], None],
    ) -> None:
        """`session` gives the broker's session, which has to be open.

        `on_unanswered` is called with a record whose creation got no answer: it may exist, or be
        made later. `on_outlived` is called with a bundle whose record was made for a session that
        ended meanwhile.
        """
        self._metadata = metadata
        self._session = session
        self._on_unanswered = on_unanswered
        self._on_outlived = on_outlived

    def may_be_ours(self, stored: Versioned, addresses: LocalAddresses) -> bool:
        """Whether a record is this session's, or is a former session's of this broker."""
        if stored.owner == self._session().session_id:
            return True
        return OwnerRecord.decode(stored.value).addresses.default == addresses.default

    async def take(
        self, key: Bundle, stored: Versioned | None, record: OwnerRecord
    ) -> SessionRecord | None:
        """Write this session's record if there is none, or one of our own.

        None: the record was changed meanwhile, or the outcome is unknown; read it again.

        Raises:
            MetadataError: It can't be written.
        """
        session_id = self._session().session_id
        path = paths.bundle_owner(*key)
        try:
            if stored is not None and stored.owner == session_id:
                version = stored.version
                if stored.value != record.encode():
                    version = await self._metadata.put(
                        path, record.encode(), expected_version=version
                    )
                return SessionRecord(record, version, session_id)
            if stored is not None:
                await self._metadata.sync(path)
                if await self._metadata.get(path) != stored:
                    return None  # by now the record may be the next owner's, with the same version
                if not await self._delete_former(path, stored):
                    return None
            return await self._create(key, record)
        except (
            MetadataExistsError,
            MetadataBadVersionError,
            MetadataNotFoundError,
            MetadataOutcomeUnknownError,
        ):
            return None

    async def _create(self, key: Bundle, record: OwnerRecord) -> SessionRecord:
        session_id = self._session().session_id
        try:
            version = await self._metadata.put(
                paths.bundle_owner(*key),
                record.encode(),
                expected_version=MUST_NOT_EXIST,
                session=self._session(),
            )
        except (MetadataOutcomeUnknownError, asyncio.CancelledError):
            self._on_unanswered(key, record)
            raise
        # A record of a former session went with it, and nobody would look for it.
        if session_id != self._session().session_id:
            self._on_outlived(key)
        return SessionRecord(record, version, session_id)

    async def _delete_former(self, path: str, stored: Versioned) -> bool:
        """Delete a former session's record; False if another broker has it by now.

        The record may vanish with its session at any time, and the next owner's record starts with
        the same version. So it is changed first. If that changes the next owner's record, that
        broker, which watches it, writes it again. A record that has the new version is the former
        session's.
        """
        nobodys = OwnerRecord(_NOBODYS, is_disabled=True)
        version = await self._metadata.put(path, nobodys.encode(), expected_version=stored.version)
        await self._metadata.sync(path)
        found = await self._metadata.get(path)
        if found is None or (found.owner, found.version) != (stored.owner, version):
            return False
        await self._metadata.delete(path, expected_version=version)
        return True

    async def find_ours(self, path: str) -> Versioned | None:
        """The stored record if it is this session's, else None."""
        await self._metadata.sync(path)
        found = await self._metadata.get(path)
        return found if found is not None and found.owner == self._session().session_id else None

    async def refreshed(self, path: str, owned: SessionRecord) -> SessionRecord | None:
        """Our record as it is stored now; None if there is no record of this session."""
        session_id = self._session().session_id
        found = await self.find_ours(path)
        if found is None or found.owner != session_id:
            return None
        return replace(owned, version=found.version, session_id=session_id)
