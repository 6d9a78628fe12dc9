"""The simulation finds bugs: each of a list is found, and so is each left-out sync."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.crash.storage.sync_mutations import SYNC_MUTATIONS
from tests.simulation.findings import is_finding
from tests.simulation.mutations import MUTATIONS
from tests.simulation.run import SeedError, run_seed

FOUND_WITHIN_SEEDS = 400

FIRST_SEEDS = {
    "receipts_before_sync": 42,
    "journal_errors_ignored": 7,
    "journal_file_kept_after_an_error": 90,
    "journals_removed_before_the_checkpoint": 29,
    "checksum_skipped": 68,
    "ledgers_deleted_before_metadata": 7,
    "mark_delete_recovered_backwards": 7,
    "individual_acks_forgotten": 7,
    "cursor_flush_does_nothing": 13,
    "reset_is_not_written": 13,
    "a_full_disk_is_for_ever": 7,
    "a_failed_flush_is_taken_for_done": 39,
    "blocks_of_earlier_lives_read": 77,
    "prepared_header_not_synced": 18,
    "group:journal": 3,
    "data:journal": 18,
    "replace-name:MANIFEST": 11,
}
"""Where it is not one of the first three. They move with every change of what the engine does."""


def first_failure(name: str, ignored_syncs: frozenset[str] = frozenset()) -> int | None:
    for seed in chain((FIRST_SEEDS.get(name, 0),), range(FOUND_WITHIN_SEEDS)):
        try:
            run_seed(seed, ignored_syncs=ignored_syncs)
        except SeedError as error:
            if is_finding(error):
                return seed
    return None


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_found(name: str) -> None:
    with MUTATIONS[name]():
        assert first_failure(name) is not None


@pytest.mark.parametrize("name", SYNC_MUTATIONS)
def test_a_missing_sync_is_found(name: str) -> None:
    assert first_failure(name, frozenset({name})) is not None
