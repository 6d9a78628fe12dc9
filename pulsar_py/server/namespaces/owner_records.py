"""`OwnerRecords`: the ownership records of all brokers, as lookups read them (edge).

A record is read once and kept until the watch says that it changed. `wait_for_change` returns as
soon as that happens, so that a lookup can wait for the end of an ownership.

Source: OwnershipCache in Pulsar's broker, whose read-only part this is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from pulsar_py.common.loops.fresh import FreshByKey
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import (
    MetadataStore,
    Notification,
    NotificationType,
    Versioned,
)
from pulsar_py.server.namespaces.owner_record import OwnerRecord

MAX_RECORDS: Final = 100_000
"""Kept at most; the oldest goes first."""


class OwnerRecords:
    """Read-only view of `/namespace`; its owner starts and closes it."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._records: dict[str, OwnerRecord] = {}  # by path, the oldest first
        self._changes_count = 0  # notifications so far
        # By path; the clients of all topics of a bundle ask at the same time.
        self._newest: FreshByKey[str, OwnerRecord | None] = FreshByKey()
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}  # by path
        self._stop_watching: Callable[[], None] | None = None

    def start(self) -> None:
        """Watch the records."""
        self._stop_watching = self._metadata.watch(paths.OWNERSHIP, self._on_notification)

    @property
    def changes_count(self) -> int:
        """Grows with each change of any record; for `wait_for_change`."""
        return self._changes_count

    async def get(self, path: str) -> OwnerRecord | None:
        """The record at `path`, None if there is none.

        Raises:
            MetadataError: It can't be read.
        """
        return self._records.get(path) or await self._read(path, self._metadata.get)

    async def _read(
        self, path: str, read: Callable[[str], Awaitable[Versioned | None]]
    ) -> OwnerRecord | None:
        changes_count = self._changes_count
        stored = await read(path)
        if stored is None or not stored.value:
            return None
        record = OwnerRecord.decode(stored.value)
        if changes_count == self._changes_count and self._stop_watching is not None:
            self._records[path] = record
            if len(self._records) > MAX_RECORDS:
                del self._records[next(iter(self._records))]
        return record

    async def get_newest(self, path: str) -> OwnerRecord | None:
        """As `get`, and what was stored before this call is seen for certain.

        Raises:
            MetadataError: It can't be read.
        """

        async def read() -> OwnerRecord | None:
            self._records.pop(path, None)
            return await self._read(path, self._metadata.get_newest)

        return await self._newest.get(path, read)

    async def wait_for_change(self, path: str, *, since: int, timeout_seconds: float) -> bool:
        """Return when the record may have changed; False if it did not in time.

        `since` is `changes_count` of before the record was read: nothing is missed in between.
        """
        if since != self._changes_count:
            return True
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(path, []).append(waiter)
        try:
            async with asyncio.timeout(timeout_seconds):
                await waiter
        except TimeoutError:
            return False
        finally:
            self._stop_waiting(path, waiter)
        return True

    def _stop_waiting(self, path: str, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiting.get(path)
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._waiting[path]

    def _on_notification(self, notification: Notification) -> None:
        self._changes_count += 1
        if notification.type is NotificationType.ANYTHING:
            self._records.clear()
            waiting, self._waiting = self._waiting, {}
        else:
            self._records.pop(notification.path, None)
            waiting = {notification.path: self._waiting.pop(notification.path, [])}
        for waiters in waiting.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def close(self) -> None:
        """Stop watching."""
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        self._records.clear()
