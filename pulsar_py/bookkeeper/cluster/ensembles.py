"""`Ensembles`: chooses the bookies of new ledgers, and replacements for failed ones (edge).

A bookie may be taken that is registered to take entries, is not failing, and is in the ledger's
isolation groups. Where fewer are there than a ledger asks for it is made smaller
(`ensemble_sizing`); where they are fewer than its ack quorum, its maker waits here until there are
more, or its time is over. Nobody tries meanwhile: whether failing bookies are back is asked once
for all ledgers (`BookieWatch`).

Bookies may answer that question and still store nothing. So once some ledgers in a row have failed
without a single confirmed entry, whoever makes the next one tries for all: one every 5 s, until an
entry is confirmed somewhere.

Source: BookieWatcherImpl in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Final

from pulsar_py.bookkeeper.bookies.bookies import Bookies
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata
from pulsar_py.bookkeeper.placement.ensemble_sizing import fitting
from pulsar_py.bookkeeper.placement.isolation import isolation_of
from pulsar_py.bookkeeper.placement.placement import Placement, PlacementSettings
from pulsar_py.common.errors import (
    MetadataError,
    NotEnoughBookiesError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.store import LedgerOptions

logger = logging.getLogger(__name__)

BARREN_COUNT: Final = 3
"""After so many ledgers in a row that failed without an entry, one is tried at a time."""
TRY_SECONDS: Final = 5.0
"""The time between two such tries."""


class Ensembles:
    """Chooses the bookies of all ledgers of one store."""

    def __init__(
        self, bookies: Bookies, clock: Clock, chance: Random, settings: PlacementSettings
    ) -> None:
        self._bookies = bookies
        self._registry = bookies.registry
        self._health = bookies.health
        self._clock = clock
        self._chance = chance
        self._settings = settings
        self._changed = asyncio.Event()  # of the bookies; a new one each time
        self._reduced: dict[int, None] = {}  # ensemble sizes that could not be had last time
        self._barren_count = 0  # ledgers in a row that failed without an entry
        self._next_try_seconds = float("-inf")  # for the next one, after too many of those
        self.waiting_count = 0
        """Ledgers that wait for bookies now."""
        self.reduced_count = 0
        """Ledgers made smaller than their policy, since the start."""

    def on_change(self) -> None:
        """Wake the callers that wait for bookies, because the available ones may have changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    def on_barren(self) -> None:
        """Note that a ledger failed because of its bookies, without a confirmed entry."""
        self._barren_count += 1

    def on_fruitful(self) -> None:
        """Note that a ledger has its first confirmed entry."""
        if self._barren_count >= BARREN_COUNT:
            self.on_change()
        self._barren_count = 0

    def _try_in_seconds(self) -> float:
        """The seconds until a ledger may be tried; 0: now, and the next one has to wait."""
        if self._barren_count < BARREN_COUNT:
            return 0
        now = self._clock.monotonic_seconds()
        if now < self._next_try_seconds:
            return self._next_try_seconds - now
        self._next_try_seconds = now + TRY_SECONDS
        return 0

    @property
    def placement(self) -> Placement:
        """The placement by the current racks and states of bookies."""
        return Placement(self._settings, self._registry.known_racks)

    def is_avoided(self, bookie_id: str) -> bool:
        """Whether a bookie is chosen only if there is no other."""
        return self._health.is_quarantined(bookie_id, self._clock.monotonic_seconds())

    def _there(self, labels: Mapping[str, bytes], wanted: int) -> list[str]:
        """The bookies that may be chosen now."""
        answering = [
            each for each in self._registry.known_writable if not self._health.is_failing(each)
        ]
        isolation = isolation_of(labels, self._settings.isolation)
        return isolation.allowed(answering, self._registry.known_racks, wanted=wanted)

    async def _look(self) -> None:
        """Read the lists of bookies and racks again.

        Raises:
            StoreUnavailableError: The metadata can't be asked.
        """
        try:
            writable = await self._registry.writable()
            await self._registry.racks()
        except MetadataError as error:
            raise StoreUnavailableError(f"bookies can't be listed: {error}") from error
        self._health.on_listed(writable, self._clock.monotonic_seconds())

    async def new(
        self, policy: LedgerOptions, timeout_seconds: float
    ) -> tuple[LedgerOptions, list[str]]:
        """The options that a new ledger of this policy gets, and its bookies; waits for them.

        Raises:
            NotEnoughBookiesError: For so long there were fewer than its ack quorum.
            StoreUnavailableError: The metadata can't be asked.
        """
        error: NotEnoughBookiesError | None = None
        try:
            async with asyncio.timeout(timeout_seconds):
                while True:
                    changed = self._changed
                    await self._look()
                    pause_seconds: float | None = None  # until something changes
                    try:
                        options, bookie_ids = self._chosen(policy)
                        pause_seconds = self._try_in_seconds()
                        if not pause_seconds:
                            self._note_size(policy, options)
                            return options, bookie_ids
                        error = NotEnoughBookiesError(
                            f"{self._barren_count} ledgers in a row failed without an entry"
                        )
                    except NotEnoughBookiesError as too_few:
                        if error is None:
                            self._tell_too_few(too_few)
                        error = too_few
                    await self._wait(changed, pause_seconds)
        except TimeoutError:
            raise error or StoreUnavailableError(
                f"bookies could not be listed within {timeout_seconds:g} s"
            ) from None

    async def check(self, policy: LedgerOptions) -> None:
        """Return if a ledger of this policy, or a smaller one, could be created now.

        Raises:
            NotEnoughBookiesError: There are fewer bookies than its ack quorum.
            StoreUnavailableError: The metadata can't be asked.
        """
        await self._look()
        self._chosen(policy)

    async def _wait(self, changed: asyncio.Event, seconds: float | None) -> None:
        self.waiting_count += 1
        try:
            async with asyncio.timeout(seconds):
                await changed.wait()
        except TimeoutError:
            pass  # its turn may have come
        finally:
            self.waiting_count -= 1

    def _tell_too_few(self, error: NotEnoughBookiesError) -> None:
        if not self.waiting_count:
            logger.warning("too few bookies, appends wait", extra={"error": str(error)})

    def _chosen(self, policy: LedgerOptions) -> tuple[LedgerOptions, list[str]]:
        size = policy.ensemble_size
        there = self._there(policy.custom_metadata, size)
        now = self._clock.monotonic_seconds()
        is_reduced = size in self._reduced
        steady = [each for each in there if self._health.is_steady(each, now)]
        options = fitting(policy, there=len(there), steady=len(steady), is_reduced=is_reduced)
        if options is None:
            raise self._too_few(policy, there)
        filled = self.placement.fill(
            {},
            dict.fromkeys(range(options.ensemble_size)),
            there,
            ensemble_size=options.ensemble_size,
            write_quorum_size=options.write_quorum_size,
            is_avoided=lambda each: self.is_avoided(each) or (is_reduced and each not in steady),
            chance=self._chance,
        )
        ensemble = [filled[place] for place in range(options.ensemble_size)]
        if not self.placement.has_enough_racks(ensemble, options.write_quorum_size):
            raise NotEnoughBookiesError(
                f"{ensemble} lie on fewer racks than a write quorum of "
                f"{options.write_quorum_size} needs ({self._settings.min_racks_per_write_quorum})"
            )
        return options, ensemble

    def _too_few(self, policy: LedgerOptions, there: Sequence[str]) -> NotEnoughBookiesError:
        known = self._registry.known_writable
        failing = [each for each in known if self._health.is_failing(each)]
        return NotEnoughBookiesError(
            f"{policy.ack_quorum_size} bookies are needed at least, {len(there)} can be had; "
            f"{len(known)} are registered to take entries, of which fail: "
            f"{', '.join(failing) or 'none'}"
        )

    def _note_size(self, policy: LedgerOptions, options: LedgerOptions) -> None:
        size = policy.ensemble_size
        if options.ensemble_size < size:
            self.reduced_count += 1
            if size not in self._reduced:
                logger.warning(
                    "too few bookies for the policy, ledgers get smaller ensembles",
                    extra={
                        "policy": size,
                        "ensemble": options.ensemble_size,
                        "bookies": self._registry.known_writable,
                    },
                )
            self._reduced[size] = None
        elif size in self._reduced:
            del self._reduced[size]
            logger.info("bookies suffice for the policy again", extra={"policy": size})

    # Replacing

    def has_spare(self, metadata: LedgerMetadata) -> bool:
        """Whether another bookie could replace a failed one now."""
        return bool(self._spares(metadata, metadata.last_segment.bookie_ids))

    def _spares(self, metadata: LedgerMetadata, excluded: Collection[str]) -> list[str]:
        there = self._there(metadata.custom_metadata, metadata.ensemble_size)
        return [each for each in there if each not in excluded]

    async def replacements(
        self,
        metadata: LedgerMetadata,
        ensemble: Sequence[str],
        failed: Mapping[int, str],
        avoided: Collection[str],
    ) -> dict[int, str]:
        """Other bookies for the places of an ensemble that failed; for fewer where they lack.

        Args:
            metadata: Of the ledger: its sizes and labels.
            ensemble: As it is.
            failed: The places, with who stands there.
            avoided: Who has failed this ledger before: taken where there is nobody else.

        Raises:
            StoreUnavailableError: The metadata can't be asked.
        """
        await self._look()
        others = {
            place: bookie_id for place, bookie_id in enumerate(ensemble) if place not in failed
        }
        filled = self.placement.fill(
            others,
            failed,
            self._spares(metadata, ensemble),
            ensemble_size=metadata.ensemble_size,
            write_quorum_size=metadata.write_quorum_size,
            is_avoided=lambda each: each in avoided or self.is_avoided(each),
            chance=self._chance,
        )
        now = [filled.get(place, bookie_id) for place, bookie_id in enumerate(ensemble)]
        if self.placement.has_enough_racks(now, metadata.write_quorum_size):
            return filled
        return {}
