"""`CutShortDeletions`: finds managed ledgers in metadata whose deletion was interrupted (edge).

A deletion marks the list of ledgers before it removes it. A broker that stops in between leaves a
marked list, which counts as deleted; the next opening removes the rest. Listings of topics must not
show it, but can't read every list to find out. So all lists are read once in the background when
the broker starts, and again with each round of the ledger collector, which reads them anyway. When
topics are listed, only the marked ones found so far are read again.

A deletion that another broker leaves unfinished later is found in the next round.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.managed_ledger.log.ledger_format import ROOT, is_deletion_begun
from pulsar_py.metadata.store import MetadataStore

logger = logging.getLogger(__name__)

NAMES_AT_ONCE = 64
"""Requests to the metadata store that are under way at the same time."""

FIRST_LOOK_SECONDS = 5.0
"""Seconds that a listing waits for the first round to end."""

_LEDGER_DEPTH: Final = 3
"""Path segments below the root before a managed ledger's own: tenant, namespace, domain."""

_DOMAINS_AT_ONCE = 16  # domains whose topics' names are in memory at the same time


class CutShortDeletions:
    """The marked managed ledgers found so far. Owned by a `ManagedLedgerOpener`."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._found: dict[str, None] = {}  # paths; some may be gone, or created again
        self._first_look: asyncio.Event | None = None  # set when the first round has ended

    def begin(self, tasks: TaskOwner) -> None:
        """Read all lists once, in a task of `tasks`; to be called at the start."""
        self._first_look = asyncio.Event()
        tasks.spawn(self._look(self._first_look), "look for deletions cut short")

    async def _look(self, looked: asyncio.Event) -> None:
        try:
            for paths in await self.domains():
                ledgers = await self.children(paths)
                await each_result(self._look_at, ledgers, at_once=NAMES_AT_ONCE)
        except MetadataError as error:
            logger.warning("unfinished deletions not found out", extra={"error": str(error)})
        finally:
            looked.set()

    async def _look_at(self, path: str) -> None:
        found = await self._metadata.get(path)
        if found is not None and is_deletion_begun(found.value):
            self.note(path)

    def note(self, path: str) -> None:
        """Note a managed ledger whose list, as a caller has read, is marked as being deleted."""
        self._found[path] = None

    async def below(self, prefix: str) -> set[str]:
        """The last path segments of marked managed ledgers directly below a path.

        Raises:
            MetadataError: The lists can't be read now.
        """
        if self._first_look is not None and not self._first_look.is_set():
            await self._until_looked(self._first_look)
        names: set[str] = set()
        for path in [each for each in self._found if each.rpartition("/")[0] == prefix]:
            found = await self._metadata.get(path)
            if found is not None and is_deletion_begun(found.value):
                names.add(path.rpartition("/")[2])
            else:
                self._found.pop(path, None)
        return names

    async def _until_looked(self, looked: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await looked.wait()
        except TimeoutError:
            return

    async def domains(self) -> list[list[str]]:
        """The parent paths of managed ledgers, `tenant/namespace/domain`, in groups."""
        paths = [ROOT]
        for _ in range(_LEDGER_DEPTH):
            paths = await self.children(paths)
        return [
            paths[start : start + _DOMAINS_AT_ONCE]
            for start in range(0, len(paths), _DOMAINS_AT_ONCE)
        ]

    async def children(self, paths: list[str]) -> list[str]:
        """The paths of everything directly below these."""
        names = await each_result(self._metadata.children, paths, at_once=NAMES_AT_ONCE)
        return [
            f"{path}/{child}"
            for path, children in zip(paths, names, strict=True)
            for child in children
        ]
