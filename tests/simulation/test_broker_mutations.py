"""Two brokers over hostile stores show each bug of a list; the seed that was seen to comes first."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.simulation.broker_mutations import MUTATIONS
from tests.simulation.brokers_run import SeedError, run_seed
from tests.simulation.findings import is_finding

FOUND_WITHIN_SEEDS = 500

FIRST_SEEDS = {
    "owned_until_given_up": 2,
    "doubt_only_when_told": 2,
    "nothing_is_refused_in_doubt": 2,
    "doubt_is_not_asked_again": 66,
    "session_events_are_ignored": 7,
    "a_lost_bundles_topics_stay": 5,
    "a_lost_topic_is_written_down": 7,
    "an_unload_stops_where_it_fails": 3,
    "a_topic_that_fails_to_close_ends_the_unload": 2,
    "cursors_are_written_before_it_is_known_who_owns": 7,
    "one_s_own_write_is_another_owners": 10,
    "splits_elsewhere_are_not_seen": 9,
    "both_roles_are_one_store": 5,
    "a_cache_takes_no_news_for_none": 1,
    "what_can_not_be_read_now_is_never_read": 4,
}
"""Where it is not 0. They move with every change of what brokers do; then others are found."""

QUICK = (
    "owned_until_given_up",
    "a_new_session_owns_what_the_old_one_did",
    "splits_elsewhere_are_not_seen",
)

RARE = ("a_record_without_an_answer_is_forgotten", "who_gave_a_bundle_up_writes_on")
"""Found by no seed that was looked at: `test_forced_brokers` makes what they get wrong."""


def first_failure(name: str) -> int | None:
    hint = FIRST_SEEDS.get(name, 0)
    for seed in chain((hint,), range(FOUND_WITHIN_SEEDS)):
        try:
            with MUTATIONS[name]():
                run_seed(seed)
        except SeedError as error:
            if is_finding(error):
                return seed
    return None


@pytest.mark.parametrize("name", QUICK)
def test_a_mutation_is_found(name: str) -> None:
    assert first_failure(name) is not None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MUTATIONS if name not in (*QUICK, *RARE)])
def test_each_mutation_is_found(name: str) -> None:
    assert first_failure(name) is not None
