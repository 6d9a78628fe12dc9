"""`EphemeralRecord`: keeps one ephemeral key of this broker, and creates it anew in new sessions.

A broker's registration and the leader's record are such keys. The key is created if there is none;
it is created again when the session that had it has ended. What is stored by another session is
left alone, unless `may_take` says that it is a former one of this broker's: that is deleted and
created anew at once, instead of waiting until the former session expires. Every change of the key,
and every event of the session, has it read again.

What always holds: `is_held` is True only while this session certainly has the key. Nothing is
deleted by a version that could be another broker's: a former record is written once before it is
deleted, so that its version differs from the first version of the next holder's record.

Source: ResourceLockImpl, LeaderElectionImpl in Pulsar's pulsar-metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    MetadataStore,
    Notification,
    Session,
    SessionEvent,
    Versioned,
)

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.5
"""Seconds until the key is read again, after that failed."""
ATTEMPTS_COUNT: Final = 10
"""How often a key is tried that others change at the same time, before the retry is waited for."""

_CHANGED_MEANWHILE = (
    MetadataExistsError,
    MetadataBadVersionError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
)


class EphemeralRecord:
    """One key; its owner starts and closes it."""

    def __init__(
        self,
        metadata: MetadataStore,
        path: str,
        clock: Clock,
        *,
        may_take: Callable[[bytes], bool],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_change` is called when it was got, lost, or another holder turned up or went."""
        self._metadata = metadata
        self._path = path
        self._clock = clock
        self._may_take = may_take
        self._on_change = on_change
        self._tasks = TaskOwner(f"record {path}")
        self._session: Session | None = None  # None before start
        self._stops: list[Callable[[], None]] = []  # what ends listening and watching
        self._value: bytes | None = None  # what the key shall hold; None: it is not wanted
        self._held_by: str | None = None  # the session of ours that has it
        self._foreign: bytes | None = None  # what another session has stored there
        self._is_stale = False  # to be read again
        self._is_working = False  # a task reads it

    @property
    def is_held(self) -> bool:
        """Whether the key is certainly this broker's at this moment."""
        session = self._session
        return session is not None and session.session_id == self._held_by and session.is_good

    @property
    def foreign(self) -> bytes | None:
        """What another one has stored; None if there is nothing, or this broker's."""
        return self._foreign

    async def start(self, value: bytes) -> None:
        """Want the key with this value, and return when it is clear who has it.

        Raises:
            MetadataError: The store can't be read or written now.
        """
        self._session = await self._metadata.open_session()
        self._value = value
        self._stops.append(self._session.listen(self._on_session_event))
        self._stops.append(self._metadata.watch(self._path, self._on_notification))
        await self._settle()

    def set_value(self, value: bytes) -> None:
        """Store another value, soon."""
        if self._value is not None and value != self._value:
            self._value = value
            self._look()

    def withdraw(self) -> None:
        """Want the key no more, and delete it soon if it is this broker's."""
        self._value = None
        self._look()

    async def give_up(self) -> None:
        """Delete the key if it is this broker's, and want it no more.

        Raises:
            MetadataError: It may still be there, until the session ends.
        """
        self._value = None
        if self._session is not None:
            await self._settle()

    async def close(self) -> None:
        """Give it up; a key that can't be deleted now ends with the session."""
        for stop in self._stops:
            stop()
        self._stops.clear()
        await self._tasks.close()
        try:
            await self.give_up()
        except MetadataError as error:
            logger.info("record is left", extra={"path": self._path, "error": str(error)})

    def _on_session_event(self, event: SessionEvent) -> None:
        if event in (SessionEvent.RECONNECTED, SessionEvent.NEW_SESSION):
            self._look()

    def _on_notification(self, notification: Notification) -> None:
        del notification
        self._look()

    def _look(self) -> None:
        self._is_stale = True
        if not self._is_working and self._stops:
            self._is_working = True
            self._tasks.spawn(self._look_until_settled(), "look")

    async def _look_until_settled(self) -> None:
        try:
            while self._is_stale:
                self._is_stale = False
                try:
                    await self._settle()
                except MetadataError as error:
                    extra = {"path": self._path, "error": str(error)}
                    logger.info("record not settled", extra=extra)
                    self._is_stale = True
                    await self._clock.sleep(RETRY_SECONDS)
        finally:
            self._is_working = False

    async def _settle(self) -> None:
        """Read the key, and create, change or delete it, until it is as wanted or another's.

        Raises:
            MetadataError: The store can't be read or written now.
        """
        for _ in range(ATTEMPTS_COUNT):
            before = (self._held_by, self._foreign)
            try:
                is_settled = await self._settle_once()
            except _CHANGED_MEANWHILE:
                is_settled = False
            if before != (self._held_by, self._foreign):
                self._on_change()
            if is_settled:
                return
        raise MetadataUnavailableError(
            f"{self._path}: others changed the record {ATTEMPTS_COUNT} times meanwhile"
        )

    async def _settle_once(self) -> bool:
        assert self._session is not None, "not started"
        session_id, value = self._session.session_id, self._value
        await self._metadata.sync(self._path)
        stored = await self._metadata.get(self._path)
        if stored is None or (not stored.value and stored.owner is None):
            self._held_by = self._foreign = None
            if value is not None:
                await self._create(value)
            return True
        if stored.owner == session_id:
            return await self._settle_own(stored, session_id)
        self._held_by = None
        if value is not None and self._may_take(stored.value):
            await self._delete_former(stored, value)
            return False
        self._foreign = stored.value
        return True

    async def _settle_own(self, stored: Versioned, session_id: str) -> bool:
        self._foreign = None
        if self._value is None:
            self._held_by = None
            await self._metadata.delete(self._path, expected_version=stored.version)
            return True
        self._held_by = session_id
        if stored.value != self._value:
            await self._metadata.put(self._path, self._value, expected_version=stored.version)
        return True

    async def _create(self, value: bytes) -> None:
        assert self._session is not None, "not started"
        session_id = self._session.session_id
        await self._metadata.put(
            self._path, value, expected_version=MUST_NOT_EXIST, session=self._session
        )
        self._held_by = session_id

    async def _delete_former(self, stored: Versioned, value: bytes) -> None:
        """Delete a former session's key; does nothing if another broker has it by now.

        It may vanish at any time, and the next holder's starts with the same version, so it is
        written first. If that hits the next holder's, that one, which watches it, writes it again.
        """
        version = await self._metadata.put(self._path, value, expected_version=stored.version)
        await self._metadata.sync(self._path)
        found = await self._metadata.get(self._path)
        if found is not None and (found.owner, found.version) == (stored.owner, version):
            await self._metadata.delete(self._path, expected_version=version)
