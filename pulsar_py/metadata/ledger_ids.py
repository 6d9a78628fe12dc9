"""`MetadataLedgerIds`: takes ledger ids from one sequence of the cluster's metadata (edge).

An id is the number of an ephemeral sequential child of `/ledgers/idgen`, which is deleted again, as
Apache BookKeeper's clients do it: so ours and theirs never give the same. Numbers grow, whichever
process takes them. Id 0 is never given: the ids of non-persistent messages have it.

ZooKeeper counts children in 31 bits and then goes on below zero. From then on ids are taken below
`/ledgers/idgen-long`, which then exists for all clients:

    idgen-long/HOB-0000000001/ID-0000000007    id = 1 << 32 | 7

and the directory after it is used once its own 31 bits are.

No caller waits for the deletion. Children of one moment are deleted together, and those that a
crash leaves are deleted with the session.

Source: ZkLedgerIdGenerator, LongZkLedgerIdGenerator in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Session

logger = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 3
"""How often a number is requested for one id, while the outcome of the last request is unknown."""

NUMBERS_COUNT: Final = 0x7FFFFFFF
"""Numbers that one parent gives; what is beyond, or below 0, is not used."""

_LONG: Final = "-long"
_HIGH_BITS: Final = "HOB-"

DELETE_AFTER_SECONDS: Final = 0.05
"""Seconds for which children are gathered before they are deleted, so that many share a commit."""


class MetadataLedgerIds:
    """Gives ids for new ledgers; one a process, closed before the store."""

    def __init__(self, metadata: MetadataStore, prefix: str = paths.LEDGER_ID_PREFIX) -> None:
        """`prefix` is what the children's paths begin with."""
        self._metadata = metadata
        self._prefix = prefix
        counter, _, self._name = prefix.rpartition("/")
        self._long_root = counter + _LONG
        self._high_bits: int | None = None  # of ids; 0: 31 bits do. None before it is known
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
                number = await self._number()
            except MetadataOutcomeUnknownError:
                if attempt == MAX_ATTEMPTS:
                    raise
                continue  # a number may be lost, and its key goes with the session
            return number or await self._number()  # 0, the first one of a cluster, is not an id
        raise AssertionError("unreachable")

    async def _number(self) -> int:
        if self._high_bits is None:
            self._high_bits = await self._known_high_bits()
        while True:
            high_bits = self._high_bits
            prefix = self._prefix
            if high_bits:
                prefix = f"{self._long_root}/{_HIGH_BITS}{high_bits:010d}/{self._name}"
            number = await self._take(prefix)
            if 0 <= number < NUMBERS_COUNT:
                return high_bits << 32 | number
            known = await self._known_high_bits()
            self._high_bits = max(self._high_bits, known, high_bits + 1)
            logger.info("ledger ids have more bits now", extra={"high_bits": self._high_bits})

    async def _known_high_bits(self) -> int:
        """The newest directory of long ids that somebody has made; 0 without one."""
        names = await self._metadata.children(self._long_root)
        numbers = [name.removeprefix(_HIGH_BITS) for name in names if name.startswith(_HIGH_BITS)]
        return max((int(each) for each in numbers if each.isdecimal()), default=0)

    async def _take(self, prefix: str) -> int:
        """The next number of a parent; from ZooKeeper it is below 0 once 31 bits are used."""
        if self._session is None:
            self._session = await self._metadata.open_session()
        path = await self._metadata.create_sequential(prefix, b"", self._session)
        self._taken.append(path)
        if not self._is_deleting and not self._is_closed:
            self._is_deleting = True
            self._tasks.spawn(self._delete_taken(), "delete")
        return int(path.removeprefix(prefix))

    async def _delete_taken(self) -> None:
        try:
            while self._taken:
                await asyncio.sleep(DELETE_AFTER_SECONDS)
                await self._delete_those_taken()
        finally:
            self._is_deleting = False

    async def _delete_those_taken(self) -> None:
        taken, self._taken = self._taken, []
        try:
            await self._metadata.delete_each(taken)
        except MetadataError as error:
            # Harmless: the keys are ephemeral and go with the session.
            logger.info("ledger ids' keys are left", extra={"error": str(error)})

    async def close(self) -> None:
        """Delete the created keys that are left. Their session ends with the metadata store."""
        self._is_closed = True
        await self._tasks.close()
        await self._delete_those_taken()
