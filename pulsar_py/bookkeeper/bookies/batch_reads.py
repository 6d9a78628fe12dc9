"""`BatchReads`: knows which bookies take BATCH_READ (edge).

A bookie before version 4.17 closes the connection on which it is asked for several entries at once,
and nothing that it registers tells its version. So each is asked once for entries of a ledger that
does not exist, on a connection of its own, where nothing else is lost. Until it has answered it is
read from entry by entry.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pulsar_py.bookkeeper.bookies.connection import BookieConnection, ConnectionLimits
from pulsar_py.bookkeeper.bookies.opening import open_connection
from pulsar_py.bookkeeper.bookies.registry import BookieRegistry
from pulsar_py.bookkeeper.bookies.requests import BookieRequest, OneAnswer
from pulsar_py.bookkeeper.metadata.ledger_paths import MAX_LEDGER_ID
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.frames import BookieOperation
from pulsar_py.common.errors import MetadataError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner

logger = logging.getLogger(__name__)

ASKED_BYTES: Final = 1024
"""The size of the answer that a bookie is asked for."""


class BatchReads:
    """What is known of the bookies of one store."""

    def __init__(
        self, registry: BookieRegistry, clock: Clock, limits: ConnectionLimits, tasks: TaskOwner
    ) -> None:
        """`registry` says where bookies listen; the tasks are the store's."""
        self._registry = registry
        self._clock = clock
        self._limits = limits
        self._tasks = tasks
        self._known: dict[str, bool] = {}  # by bookie id
        self._asked: dict[str, None] = {}  # bookies that are being asked

    def takes(self, bookie_id: str) -> bool:
        """Whether a bookie is known to take BATCH_READ; one that is not known is asked."""
        takes = self._known.get(bookie_id)
        if takes is None and bookie_id not in self._asked:
            self._asked[bookie_id] = None
            try:
                self._tasks.spawn(self._ask(bookie_id), f"ask {bookie_id} for batches")
            except RuntimeError:
                self._asked.pop(bookie_id)  # the store is closed
        return takes is True

    def forget(self, bookie_id: str) -> None:
        """Note that a bookie may have been started anew, perhaps in another version."""
        self._known.pop(bookie_id, None)

    async def _ask(self, bookie_id: str) -> None:
        limits = self._limits
        connection = None
        try:
            async with asyncio.timeout(limits.connect_timeout_seconds):
                host, port = await self._registry.address(bookie_id)
                connection = await open_connection(
                    lambda: BookieConnection(self._clock, limits, lambda _: None),
                    host,
                    port,
                    limits.tls,
                )
            asked = OneAnswer()
            frame = frames.batch_read_request(MAX_LEDGER_ID, 0, max_count=1, max_bytes=ASKED_BYTES)
            connection.send(
                BookieRequest(BookieOperation.BATCH_READ, MAX_LEDGER_ID, 0, (frame,), asked)
            )
            self._known[bookie_id] = (await asked.answer).code in frames.NOT_HERE
        except (OSError, TimeoutError, StorageError, MetadataError) as error:
            # It is asked again when it is read from.
            logger.debug("bookie can't be asked", extra={"bookie": bookie_id, "error": str(error)})
        finally:
            self._asked.pop(bookie_id)
            if connection is not None:
                connection.lose("it has answered")
