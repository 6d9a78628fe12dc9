"""`MetadataLedgerIds`: takes ledger ids from one sequence of the cluster's metadata (edge).

An id is the number of an ephemeral sequential child of `/ledgers/idgen`, which is deleted again, as
Apache BookKeeper's clients do it: so ours and theirs never give the same. Numbers grow, whichever
process takes them. Id 0 is never given: the ids of non-persistent messages have it.

No caller waits for the deletion. Children of one moment are deleted together, and those that a
crash leaves are deleted with the session.

Source: ZkLedgerIdGenerator in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pulsar_py.common.errors import (
    MetadataError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
)
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Session

logger = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 3
"""How often a number is requested for one id, while the outcome of the last request is unknown."""

DELETES_AT_ONCE: Final = 1000

DELETE_AFTER_SECONDS: Final = 0.05
"""Seconds for which children are gathered before they are deleted, so that many share a commit."""


class MetadataLedgerIds:
    """Gives ids for new ledgers; one a process, closed before the store."""

    def __init__(self, metadata: MetadataStore, prefix: str = paths.LEDGER_ID_PREFIX) -> None:
        """`prefix` is what the children's paths begin with."""
        self._metadata = metadata
        self._prefix = prefix
        self._tasks = TaskOwner("ledger ids")
        self._session: Session | None = None  # None before the first id
        self._taken: list[str] = []  # children to be deleted
        self._is_deleting = False
        self._is_closed = False

    async def next(self) -> int:
        """An id greater than all given before, at least 1.

        Raises:
            MetadataError: The store gave no number; one may be lost, and is never given again.
        """
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                number = await self._take()
            except MetadataOutcomeUnknownError:
                if attempt == MAX_ATTEMPTS:
                    raise
                continue  # a number may be lost, and its key goes with the session
            return number or await self._take()  # 0, the first number of a cluster, is not an id
        raise AssertionError("unreachable")

    async def _take(self) -> int:
        if self._session is None:
            self._session = await self._metadata.open_session()
        path = await self._metadata.create_sequential(self._prefix, b"", self._session)
        self._taken.append(path)
        if not self._is_deleting and not self._is_closed:
            self._is_deleting = True
            self._tasks.spawn(self._delete_taken(), "delete")
        return paths.sequence_number(path)

    async def _delete_taken(self) -> None:
        try:
            while self._taken:
                await asyncio.sleep(DELETE_AFTER_SECONDS)
                await self._delete_those_taken()
        finally:
            self._is_deleting = False

    async def _delete_those_taken(self) -> None:
        taken, self._taken = self._taken, []
        await each_result(self._delete, taken, at_once=DELETES_AT_ONCE)

    async def _delete(self, path: str) -> None:
        try:
            await self._metadata.delete(path)
        except MetadataNotFoundError:
            return  # it went with a session that ended
        except MetadataError as error:
            # Harmless: the key is ephemeral and goes with the session.
            logger.info("ledger id's key is left", extra={"path": path, "error": str(error)})

    async def close(self) -> None:
        """Delete the created keys that are left. Their session ends with the metadata store."""
        self._is_closed = True
        await self._tasks.close()
        await self._delete_those_taken()
