"""`BundleOwnership`: this broker's bundles, as ephemeral records in the metadata store (edge).

A record `/namespace/<tenant>/<namespace>/<range>` has the owner's addresses. The broker that
creates it owns the bundle until its session ends. While a bundle is being unloaded its record says
`disabled`, so that lookups send no client there.

A session may end while its process runs. So a bundle counts as owned only while the session is, by
the clock at this moment, certainly alive; after any doubt each record is read again before it
counts. A record of this broker from a former session (it has the broker's addresses) is replaced.
Another broker's record is left alone, and the bundle is lost: `on_lost` is called. Our records are
watched, too: one that was changed or removed is read and written again.

A namespace's bundles may change while one has no owner: whoever owned it last may have split it.
So after its record was created, a bundle counts only once `is_current` said that it is still one of
its namespace's; else the record is deleted again.

The creation of a record may get no answer, and be made later: then this broker owns a bundle that
whoever asked for it was refused. So such a bundle is remembered until a `sync` tells, however often
that has to be tried, and a record that was made after all is taken up.

`SessionRecords` reads and writes the records, each with the version that was read.

Source: OwnershipCache, ResourceLockImpl in Pulsar.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakValueDictionary

from msgspec.structs import replace

from pulsar_py.common.errors import (
    InvalidNamespaceNameError,
    MetadataBadVersionError,
    MetadataError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    ServiceNotReadyError,
    SessionInDoubtError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import (
    MetadataStore,
    Notification,
    NotificationType,
    Session,
    SessionEvent,
)
from pulsar_py.server.namespaces import ownership_log
from pulsar_py.server.namespaces.lookup import LocalAddresses
from pulsar_py.server.namespaces.owner_record import OwnerRecord
from pulsar_py.server.namespaces.ownership_log import OwnershipLog
from pulsar_py.server.namespaces.session_records import Bundle, SessionRecord, SessionRecords

logger = logging.getLogger(__name__)

RECORDS_AT_ONCE: Final = 64
"""Records that are read at the same time after a doubt."""
ATTEMPTS_COUNT: Final = 10
"""How often a record is read that other brokers change at the same time, before giving up."""
RETRY_SECONDS: Final = 0.5
"""Seconds to wait before the records are read again, after that failed."""

_RECORD_SEGMENTS_COUNT = 3  # tenant, namespace, range


def _bundle_of(path: str) -> Bundle | None:
    """The bundle of an ownership record, None for another path."""
    parts = path.removeprefix(paths.OWNERSHIP + "/").split("/")
    if len(parts) != _RECORD_SEGMENTS_COUNT:
        return None
    try:
        return NamespaceName(parts[0], parts[1]), parts[2]
    except InvalidNamespaceNameError:
        return None


class BundleOwnership:
    """The bundles of one broker; owned by its `NamespaceService`."""

    def __init__(
        self,
        metadata: MetadataStore,
        on_lost: Callable[[NamespaceName, str], None],
        wall_time_millis: Callable[[], int] = lambda: 0,
        *,
        is_current: Callable[[NamespaceName, str], Awaitable[bool]] | None = None,
    ) -> None:
        """`on_lost` is called with each bundle that another broker turns out to own.

        `is_current` reads whether a bundle is one of its namespace's; None: each is.
        """
        self.log = OwnershipLog()
        """What was gained and lost, and why."""
        self._wall_time_millis = wall_time_millis
        self._metadata = metadata
        self._on_lost = on_lost
        self._is_current = is_current
        self._session: Session | None = None
        self._records = SessionRecords(
            metadata,
            lambda: self._owner,
            on_unanswered=self._unsettle,
            on_outlived=self._suspect,
        )
        self._stop_listening: Callable[[], None] | None = None
        self._owned: dict[Bundle, SessionRecord] = {}
        # Those whose records were created, and of which it is not known yet whether they exist.
        self._unchecked: dict[Bundle, None] = {}
        self._doubts_count = 0  # times that the session was in doubt
        self._settled_count = 0  # the last of those after which all records were read again
        self._is_overslept = False  # the process stood still, its records were not read since
        self.on_settled: Callable[[], None] = lambda: None
        """Called when all records were read again after a doubt."""
        self._is_connected = True  # False once the store reported that it is disconnected
        self._is_validating = False  # a task that reads them runs
        self._stop_watching: Callable[[], None] | None = None
        self._suspects: dict[Bundle, None] = {}  # records that changed, to be read again
        self._is_looking = False  # a task that reads them runs
        # Records whose creation got no answer: they may exist, or come to be until the next sync.
        # Invariant: what is here and not in `_owned` is among the suspects, or a task holds it.
        self._unsettled: dict[Bundle, OwnerRecord] = {}
        # Bundles that a task each gives up, until their records are deleted.
        self._leaving: dict[Bundle, None] = {}
        self._tasks = TaskOwner("bundle ownership")
        self._is_closed = False
        # Held while a record is changed: the notification of our own change must find it noted.
        self._locks: WeakValueDictionary[Bundle, asyncio.Lock] = WeakValueDictionary()

    async def start(self) -> None:
        """Open the session that the records belong to, and watch them."""
        self._session = await self._metadata.open_session()
        self._stop_listening = self._session.listen(self._on_session_event)
        self._stop_watching = self._metadata.watch(paths.OWNERSHIP, self._on_notification)

    @property
    def _owner(self) -> Session:
        assert self._session is not None, "not started"
        return self._session

    def owns(self, namespace: NamespaceName, bundle: str) -> bool:
        """Whether this broker certainly owns the bundle at this moment, and does not unload it."""
        record = self.record_of(namespace, bundle)
        return record is not None and not record.is_disabled

    def holds(self, namespace: NamespaceName, bundle: str) -> bool:
        """Whether this broker certainly has the bundle at this moment, unloading it or not."""
        return self.record_of(namespace, bundle) is not None

    def record_of(self, namespace: NamespaceName, bundle: str) -> OwnerRecord | None:
        """The record of a bundle that this broker certainly has, unloading it or not; else None."""
        key = (namespace, bundle)
        owned = self._owned.get(key)
        counts = owned is not None and key not in self._unchecked and self._counts(owned)
        return owned.record if owned is not None and counts else None

    @property
    def _is_validated(self) -> bool:
        return self._settled_count == self._doubts_count

    def _counts(self, owned: SessionRecord) -> bool:
        """Whether a record of ours certainly still exists."""
        session = self._owner
        return self._is_validated and session.is_good and owned.session_id == session.session_id

    def check_session(self) -> None:
        """Return if no other broker can own this broker's bundles at this moment.

        Raises:
            SessionInDoubtError: Another one may.
        """
        if not (self._owner.is_good and self._is_validated):
            raise SessionInDoubtError(
                "the broker's session with the metadata store is in doubt: try again, no topic is "
                "opened until the store answers"
            )

    def must_hold(self) -> bool:
        """Whether this process stood still for longer than its session, and knows no more so far.

        Then another broker may serve what is owned here, and has for a while. In any other doubt
        what is served goes on, because this process saw it come.
        """
        if not self._is_overslept and self._session is not None and self._session.has_overslept:
            self._is_overslept = True
            self._doubts_count += 1
        return self._is_overslept

    @property
    def may_change(self) -> bool:
        """Whether changes of what this broker owns can be made now, as far as is known."""
        return self._is_connected and self._is_validated and self._owner.is_good

    def owned_bundles(self, namespace: NamespaceName | None = None) -> list[Bundle]:
        """The bundles that this broker owns or may own, those being unloaded included."""
        return [key for key in self._owned if namespace is None or key[0] == namespace]

    def kept_bundles(self, namespace: NamespaceName) -> list[str]:
        """Of the bundles that this broker owns or may own, those that it does not give up."""
        return [
            bundle
            for (of, bundle), owned in self._owned.items()
            if of == namespace and not owned.record.is_disabled
        ]

    def _lock_of(self, key: Bundle) -> asyncio.Lock:
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    # Taking and giving up

    async def acquire(
        self, namespace: NamespaceName, bundle: str, addresses: LocalAddresses
    ) -> OwnerRecord:
        """Become the owner if there is none; returns the owner's record.

        Raises:
            SessionInDoubtError: The session is in doubt, so no bundle can be owned now.
            ServiceNotReadyError: The bundle was split by its last owner.
            MetadataError: The record can't be read or written.
        """
        self.check_session()
        ours = self._owned.get((namespace, bundle))
        if ours is not None and (namespace, bundle) not in self._unchecked:
            return ours.record
        async with self._lock_of((namespace, bundle)):
            return await self._acquire(namespace, bundle, addresses)

    async def _acquire(
        self, namespace: NamespaceName, bundle: str, addresses: LocalAddresses
    ) -> OwnerRecord:
        key = (namespace, bundle)
        path = paths.bundle_owner(namespace, bundle)
        for _ in range(ATTEMPTS_COUNT):
            self.check_session()
            if key in self._owned:
                return await self._checked(key)
            stored = await self._metadata.get(path)
            if stored is not None and not self._records.may_be_ours(stored, addresses):
                return OwnerRecord.decode(stored.value)
            taken = await self._records.take(key, stored, OwnerRecord(addresses))
            if taken is not None:
                self._owned[key] = taken
                self._unchecked[key] = None
                self._note_gain(key, ownership_log.TAKEN)
                return await self._checked(key)
            await self._metadata.sync(path)
        raise MetadataUnavailableError(
            f"{path}: other brokers changed the record {ATTEMPTS_COUNT} times meanwhile; try again"
        )

    async def _checked(self, key: Bundle) -> OwnerRecord:
        """The record of a bundle of ours, once it is known to be one of its namespace's.

        Raises:
            ServiceNotReadyError: It is not: it was given up.
            MetadataError: That can't be read now, or the record is not deleted yet.
        """
        try:
            is_current = await self._settles_current(key)
            if not is_current:
                await self._delete(key)
        except (MetadataError, asyncio.CancelledError):
            # The record sends clients here until that is known, and perhaps nobody asks again.
            self._suspect(key)
            raise
        if not is_current:
            self._forget(key)
            self._note_loss(key, ownership_log.SPLIT)
            raise ServiceNotReadyError(f"Namespace bundle {key[0]}/{key[1]} was split; try again")
        return self._owned[key].record

    async def _settles_current(self, key: Bundle) -> bool:
        """Whether a bundle is one of its namespace's; it counts from now on if so."""
        if key not in self._unchecked:
            return True
        if self._is_current is not None and not await self._is_current(*key):
            return False
        self._unchecked.pop(key, None)
        return True

    def _forget(self, key: Bundle) -> SessionRecord | None:
        self._unchecked.pop(key, None)
        return self._owned.pop(key, None)

    async def disable(self, namespace: NamespaceName, bundle: str) -> None:
        """Mark the bundle as being unloaded, while this broker still owns it.

        Does nothing if the bundle is not this broker's.

        Raises:
            MetadataError: It can't be written; this broker treats it as being unloaded anyway.
        """
        owned = self._owned.get((namespace, bundle))
        if owned is None:
            return
        disabled = replace(owned.record, is_disabled=True)
        self._owned[namespace, bundle] = replace(owned, record=disabled)
        async with self._lock_of((namespace, bundle)):
            await self._write_disabled((namespace, bundle), disabled)

    async def _write_disabled(self, key: Bundle, disabled: OwnerRecord) -> None:
        path = paths.bundle_owner(*key)
        for _ in range(ATTEMPTS_COUNT):
            owned = self._owned.get(key)
            if owned is None:
                return
            if owned.session_id != self._owner.session_id:
                # The record vanished with its session. There is one of the new session by now, or
                # another owner's, which may have the same version.
                await self._validate_locked(key)
                continue
            try:
                version = await self._metadata.put(
                    path, disabled.encode(), expected_version=owned.version
                )
            except (MetadataBadVersionError, MetadataOutcomeUnknownError):
                found = await self._records.find_ours(path)
                if found is None:
                    self._lose(key)
                    return
                if key in self._owned:
                    self._owned[key] = replace(owned, version=found.version)
            else:
                if key in self._owned:
                    self._owned[key] = replace(owned, record=disabled, version=version)
                return
        raise MetadataUnavailableError(f"{path}: the bundle can't be marked as being unloaded now")

    async def release(
        self, namespace: NamespaceName, bundle: str, reason: str = ownership_log.UNLOADED
    ) -> None:
        """Give the bundle up, so that any broker may own it. Another broker's record stays.

        Raises:
            MetadataError: Our record may still exist. A task deletes it as soon as possible, and
                the bundle counts as being unloaded until then.
        """
        key = (namespace, bundle)
        try:
            await self._give_up(key, reason)
        except MetadataError:
            if key not in self._leaving:
                self._leaving[key] = None
                self._tasks.spawn(self._leave(key, reason), f"give up {namespace}/{bundle}")
            raise

    async def _leave(self, key: Bundle, reason: str) -> None:
        """Give a bundle up, repeating it until the record is deleted."""
        try:
            while key in self._owned:
                await asyncio.sleep(RETRY_SECONDS)
                try:
                    await self._give_up(key, reason)
                except MetadataError as error:
                    logger.info("bundle not released", extra={"error": str(error)})
        finally:
            self._leaving.pop(key, None)

    async def _give_up(self, key: Bundle, reason: str) -> None:
        owned = self._owned.get(key)
        if owned is None:
            return
        self._owned[key] = replace(owned, record=replace(owned.record, is_disabled=True))
        async with self._lock_of(key):
            await self._delete(key)
            self._forget(key)
            self._note_loss(key, reason)

    def _note_gain(self, key: Bundle, reason: str) -> None:
        self.log.gained(f"{key[0]}/{key[1]}", reason, now_millis=self._wall_time_millis())

    def _note_loss(self, key: Bundle, reason: str) -> None:
        self.log.lost(f"{key[0]}/{key[1]}", reason, now_millis=self._wall_time_millis())

    @property
    def doubts_count(self) -> int:
        """How often the session was in doubt."""
        return self._doubts_count

    async def _delete(self, key: Bundle) -> None:
        """Return when there is no record of this session.

        Raises:
            MetadataError: There may still be one.
        """
        path = paths.bundle_owner(*key)
        for _ in range(ATTEMPTS_COUNT):
            owned = self._owned.get(key)
            if owned is None:
                return
            # It syncs, which settles our unanswered changes, and tells whether one of them was the
            # deletion: the next owner's record may be there, whose versions start at 0 again.
            owned = await self._records.refreshed(path, owned)
            if owned is None:
                return
            self._owned[key] = owned
            try:
                await self._metadata.delete(path, expected_version=owned.version)
            except (MetadataBadVersionError, MetadataOutcomeUnknownError):
                continue
            except MetadataNotFoundError:
                pass
            return
        raise MetadataUnavailableError(f"{path}: the record can't be deleted")

    # Doubts

    async def still_owns(self, namespace: NamespaceName, bundle: str) -> bool:
        """Read from the store whether this broker owns the bundle now.

        Raises:
            SessionInDoubtError, MetadataUnavailableError: That can't be found out now.
        """
        self.check_session()
        owned = self._owned.get((namespace, bundle))
        if owned is None:
            return False
        found = await self._records.find_ours(paths.bundle_owner(namespace, bundle))
        self.check_session()
        if found is None:
            self._lose((namespace, bundle))
        return found is not None

    def _on_session_event(self, event: SessionEvent) -> None:
        self._is_connected = event in (SessionEvent.RECONNECTED, SessionEvent.NEW_SESSION)
        if event is SessionEvent.CONNECTION_LOST:
            return
        self._is_overslept = self.must_hold()
        self._doubts_count += 1
        logger.warning("metadata session", extra={"event": event.value})
        if event is not SessionEvent.IN_DOUBT and not self._is_validating:
            self._is_validating = True
            self._tasks.spawn(self._validate(), "validate")

    async def _validate(self) -> None:
        """Read all records, again and again until none fails within one session."""
        try:
            while not self._is_validated:
                doubts_count = self._doubts_count
                try:
                    await each_result(
                        self._validate_one, list(self._owned), at_once=RECORDS_AT_ONCE
                    )
                except MetadataError as error:
                    logger.info("ownership not validated", extra={"error": str(error)})
                    await asyncio.sleep(RETRY_SECONDS)
                else:
                    self._settled_count = doubts_count
            self._is_overslept = False
            self.on_settled()
        finally:
            self._is_validating = False

    async def _validate_one(self, key: Bundle) -> None:
        """Read the record of a bundle that was ours: write it for this session, or lose it.

        Raises:
            MetadataError: The record can't be read or written.
        """
        async with self._lock_of(key):
            await self._validate_locked(key)

    async def _validate_locked(self, key: Bundle) -> None:
        path = paths.bundle_owner(*key)
        for _ in range(ATTEMPTS_COUNT):
            owned = self._owned.get(key)
            if owned is None:
                await self._settle(key)
                return
            await self._metadata.sync(path)
            stored = await self._metadata.get(path)
            if stored is not None and not self._records.may_be_ours(stored, owned.record.addresses):
                self._lose(key)
                return
            # `disable` may have marked it meanwhile without having written that.
            record = self._owned.get(key, owned).record
            taken = await self._records.take(key, stored, record)
            if taken is not None and (newest := self._owned.get(key)) is not None:
                self._owned[key] = replace(taken, record=newest.record)
                self._unsettled.pop(key, None)
                if stored is None or stored.owner != taken.session_id:
                    self._unchecked[key] = None
                await self._drop_if_split(key)
                return
            if taken is not None:  # `still_owns` found no record, before this one was created
                self._unsettle(key, record)
        raise MetadataUnavailableError(
            f"{path}: other brokers changed the record {ATTEMPTS_COUNT} times meanwhile"
        )

    async def _drop_if_split(self, key: Bundle) -> None:
        """Lose a bundle whose next owner has split it before this broker was back.

        Raises:
            MetadataError: That can't be read now, or the record is not deleted yet.
        """
        if not await self._settles_current(key):
            await self._delete(key)
            self._lose(key)

    async def _settle(self, key: Bundle) -> None:
        """Take a record up whose creation got no answer, if it was made.

        Raises:
            MetadataError: It can't be read or written.
        """
        path = paths.bundle_owner(*key)
        for _ in range(ATTEMPTS_COUNT):
            record = self._unsettled.get(key)
            if record is None:
                return
            await self._metadata.sync(path)
            stored = await self._metadata.get(path)
            if stored is None or stored.owner != self._owner.session_id:
                del self._unsettled[key]
                return
            taken = await self._records.take(key, stored, replace(record, is_disabled=False))
            if taken is not None:
                self._owned[key] = taken
                self._unchecked[key] = None
                self._note_gain(key, ownership_log.TAKEN_UP)
                del self._unsettled[key]
                logger.info("late ownership record", extra={"path": path})
                await self._drop_if_split(key)
                return
        raise MetadataUnavailableError(
            f"{path}: other brokers changed the record {ATTEMPTS_COUNT} times meanwhile"
        )

    # Changes of the records that are not ours

    def _on_notification(self, notification: Notification) -> None:
        """Have changed records of ours read again; after our own changes they are as expected."""
        if notification.type is NotificationType.ANYTHING:
            self._suspects.update(dict.fromkeys(self._owned))
        else:
            key = _bundle_of(notification.path)
            if key in self._owned:
                self._suspects[key] = None
        self._look()

    def _unsettle(self, key: Bundle, record: OwnerRecord) -> None:
        self._unsettled[key] = record
        self._suspect(key)

    def _suspect(self, key: Bundle) -> None:
        self._suspects[key] = None
        self._look()

    def _look(self) -> None:
        if self._suspects and not self._is_looking and not self._is_closed:
            self._is_looking = True
            self._tasks.spawn(self._look_at_suspects(), "look at records")

    async def _look_at_suspects(self) -> None:
        try:
            while self._suspects:
                suspects, self._suspects = self._suspects, {}
                try:
                    await each_result(self._validate_one, list(suspects), at_once=RECORDS_AT_ONCE)
                except MetadataError as error:
                    logger.info("bundles' records not looked at", extra={"error": str(error)})
                    self._suspects.update(suspects)
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._is_looking = False

    def _lose(self, key: Bundle) -> None:
        """Forget a bundle that another broker owns, and call `on_lost`; writes nothing."""
        if self._forget(key) is not None:
            self._note_loss(key, ownership_log.LOST)
            namespace, bundle = key
            logger.warning("bundle lost", extra={"namespace": str(namespace), "bundle": bundle})
            self._on_lost(namespace, bundle)

    async def close(self) -> None:
        """Give up all bundles. Records that can't be deleted now end with the session."""
        for stop in (self._stop_listening, self._stop_watching):
            if stop is not None:
                stop()
        self._is_closed = True
        await self._tasks.close()
        for key in {**self._owned, **self._unsettled}:
            try:
                if key not in self._owned:
                    await self._validate_one(key)
                await self._give_up(key, ownership_log.HANDED_OVER)
            except MetadataError as error:
                logger.info("bundle's record is left", extra={"error": str(error)})
