"""`ExplicitLacs`: tells bookies how far ledgers are confirmed, and asks them for it (edge).

One connection to each bookie that is asked, opened when it is needed. Nothing depends on these
requests: what could not be told is told with the ledger's next entry, or found by its recovery. So
failures are counted and logged, and who asks gets what the others know.

Source: ExplicitLacUpdateFlow, PendingWriteLacOp, PendingReadLacOp in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.bookies.lac_connection import LacConnection
from pulsar_py.bookkeeper.bookies.opening import open_connection
from pulsar_py.bookkeeper.bookies.registry import BookieRegistry
from pulsar_py.bookkeeper.protocol.digest import EntryDigest
from pulsar_py.bookkeeper.protocol.explicit_lac import (
    NOTHING_KNOWN,
    LacAnswer,
    packed_lac,
    unpacked_lac,
)
from pulsar_py.common.errors import CorruptDataError, MetadataError, StorageError
from pulsar_py.proto import BookkeeperProtocol_pb2 as pb

logger = logging.getLogger(__name__)


class ExplicitLacs:
    """The connections of one store."""

    def __init__(self, registry: BookieRegistry, limits: ConnectionLimits) -> None:
        """`registry` says where bookies listen; `limits` are those of any connection to them."""
        self._registry = registry
        self._limits = limits
        self._connections: dict[str, LacConnection] = {}  # by bookie id
        self._opening: dict[str, asyncio.Lock] = {}
        self.failures_count = 0
        """Requests that a bookie refused or did not answer."""

    async def write(
        self,
        bookie_ids: Sequence[str],
        ledger_id: int,
        digest: EntryDigest,
        master_key: bytes,
        last_add_confirmed: int,
    ) -> int:
        """Tell bookies; returns how many keep it."""
        body = packed_lac(digest, ledger_id, last_add_confirmed)
        answers = await self._ask_all(
            bookie_ids, lambda connection: connection.write_lac(ledger_id, master_key, body)
        )
        return sum(answer.status == pb.EOK for answer in answers.values())

    async def read(self, bookie_ids: Sequence[str], ledger_id: int, digest: EntryDigest) -> int:
        """The highest last add confirmed that any of these bookies was told; -1 for none."""
        answers = await self._ask_all(bookie_ids, lambda connection: connection.read_lac(ledger_id))
        known = -1
        for bookie_id, answer in answers.items():
            if not answer.body:
                continue
            try:
                known = max(known, unpacked_lac(digest, ledger_id, answer.body))
            except CorruptDataError as error:
                self._note_failure(bookie_id, str(error))
        return known

    async def _ask_all(
        self,
        bookie_ids: Sequence[str],
        ask: Callable[[LacConnection], Awaitable[LacAnswer]],
    ) -> dict[str, LacAnswer]:
        """The answers of the bookies that gave one which is no failure."""
        asked = (self._ask(bookie_id, ask) for bookie_id in bookie_ids)
        answers = zip(bookie_ids, await asyncio.gather(*asked), strict=True)
        return {bookie_id: answer for bookie_id, answer in answers if answer is not None}

    async def _ask(
        self, bookie_id: str, ask: Callable[[LacConnection], Awaitable[LacAnswer]]
    ) -> LacAnswer | None:
        try:
            async with asyncio.timeout(self._limits.request_timeout_seconds):
                answer = await ask(await self._connection(bookie_id))
        except (OSError, TimeoutError, StorageError, MetadataError) as error:
            self._note_failure(bookie_id, str(error) or type(error).__name__)
            return None
        if answer.status != pb.EOK and answer.status not in NOTHING_KNOWN:
            self._note_failure(bookie_id, answer.status_name)
            return None
        return answer

    def _note_failure(self, bookie_id: str, reason: str) -> None:
        self.failures_count += 1
        logger.debug("explicit last add confirmed", extra={"bookie": bookie_id, "reason": reason})

    async def _connection(self, bookie_id: str) -> LacConnection:
        async with self._opening.setdefault(bookie_id, asyncio.Lock()):
            connection = self._connections.get(bookie_id)
            if connection is None or connection.is_lost:
                host, port = await self._registry.address(bookie_id)
                connection = await open_connection(
                    lambda: LacConnection(self._limits.max_frame_bytes),
                    host,
                    port,
                    self._limits.tls,
                )
                self._connections[bookie_id] = connection
            return connection

    def close(self) -> None:
        """End all connections; requests without an answer fail. May be called again."""
        for connection in self._connections.values():
            connection.lose("the store is closed")
