"""CutShortDeletions: managed ledgers in metadata of which nothing counts any more (edge).

A deletion says so in the list of ledgers before it removes that list; who stops in between leaves a
list of which nothing counts, until somebody opens it and removes the rest. Lists of names must not
have it, and may not read every list to see that. So all lists are read once when the broker starts,
in the background, and again with each round that reads them anyway; what was found then is read
again, name by name, when somebody lists.

A deletion that is cut short later by another broker is found in the next round.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pulsar_py.common.concurrently import each_result
from pulsar_py.common.errors import MetadataError
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.managed_ledger.log.ledger_format import ROOT, is_deletion_begun
from pulsar_py.metadata.store import MetadataStore

logger = logging.getLogger(__name__)

NAMES_AT_ONCE = 64
"""Questions to the metadata store that are under way at the same time."""

FIRST_LOOK_SECONDS = 5.0
"""How long those who list names wait for the first look to end."""

_LEDGER_DEPTH: Final = 3
"""Path segments below the root before a managed ledger's own: tenant, namespace, domain."""

_DOMAINS_AT_ONCE = 16  # whose names are in memory at the same time


class CutShortDeletions:
    """What is known of such managed ledgers. Owned by a `ManagedLedgerOpener`."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._found: dict[str, None] = {}  # paths; some may be gone, or made anew
        self._first_look: asyncio.Event | None = None  # set when it has ended; None before it

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
            logger.warning("deletions cut short not looked for", extra={"error": str(error)})
        finally:
            looked.set()

    async def _look_at(self, path: str) -> None:
        found = await self._metadata.get(path)
        if found is not None and is_deletion_begun(found.value):
            self.note(path)

    def note(self, path: str) -> None:
        """Somebody has read a list that is being deleted."""
        self._found[path] = None

    async def below(self, prefix: str) -> set[str]:
        """Names of the last path segment, of those directly below a path.

        Raises:
            MetadataError: It can't be found out now.
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
        """Paths that managed ledgers lie below, some at a time."""
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
