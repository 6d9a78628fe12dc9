from __future__ import annotations

from pulsar_py.bookkeeper.bookies.health import (
    MAX_PAUSE_SECONDS,
    STEADY_SECONDS,
    BookieHealth,
    QuarantineSettings,
)


def test_the_last_that_was_heard_counts() -> None:
    health = BookieHealth()
    assert not health.on_answered("b", 0)
    assert health.on_failed("b", 1)
    assert not health.on_failed("b", 2), "no news"
    assert health.is_failing("b")
    assert not health.is_failing("a")
    assert health.on_answered("b", 3)
    assert not health.is_failing("b")


def test_so_many_failures_within_an_interval_quarantine_a_bookie_for_a_time() -> None:
    health = BookieHealth()
    for now in (0, 30, 50, 59, 61, 62, 63, 64):
        assert not health.is_quarantined("b", now), "four of the first interval, then others"
        health.on_failed("b", now)
        health.on_answered("b", now)
    health.on_failed("b", 65)
    assert health.is_quarantined("b", 65)
    assert health.is_quarantined("b", 65 + 1799)
    assert not health.is_quarantined("b", 65 + 1800)
    assert health.quarantines_count == 1


def test_a_slow_bookie_is_quarantined_in_time_and_does_not_count_as_failing() -> None:
    health = BookieHealth()
    for now in range(5):
        assert not health.is_quarantined("b", now)
        health.on_slow("b", now)
    assert health.is_quarantined("b", 5)
    assert not health.is_failing("b")


def test_quarantine_can_be_switched_off() -> None:
    health = BookieHealth(QuarantineSettings(is_enabled=False))
    for now in range(10):
        health.on_failed("b", now)
    assert not health.is_quarantined("b", 10)


def test_those_of_the_first_list_are_steady_and_who_comes_later_has_to_stay() -> None:
    health = BookieHealth()
    health.on_listed(["a"], 0)
    assert health.is_steady("a", 0)
    health.on_listed(["a", "b"], 10)
    assert not health.is_steady("b", 10 + STEADY_SECONDS - 1)
    assert health.is_steady("b", 10 + STEADY_SECONDS)
    health.on_listed(["b"], 100)
    assert not health.is_steady("a", 100)
    health.on_listed(["a", "b"], 110)
    assert not health.is_steady("a", 110 + STEADY_SECONDS - 1)
    assert health.is_steady("a", 110 + STEADY_SECONDS)


def test_who_failed_is_steady_again_only_after_a_time() -> None:
    health = BookieHealth()
    health.on_listed(["a"], 0)
    health.on_failed("a", 1)
    assert not health.is_steady("a", 1000)
    health.on_answered("a", 1000)
    assert not health.is_steady("a", 1000 + STEADY_SECONDS - 1)
    assert health.is_steady("a", 1000 + STEADY_SECONDS)


def test_a_bookie_that_stays_away_is_asked_less_often_up_to_a_bound() -> None:
    health = BookieHealth()
    now, pauses = 0.0, []
    health.on_failed("b", now)
    for _ in range(6):
        due = health.to_be_asked()["b"]
        pauses.append(due - now)
        health.on_failed("b", due - 0.1)  # an answer to something else changes nothing
        assert health.to_be_asked() == {"b": due}
        now = due
        health.on_failed("b", now)
    assert pauses == [0.5, 1, 2, 4, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS]


def test_one_that_comes_back_and_fails_at_once_goes_on_waiting_longer() -> None:
    health = BookieHealth()
    health.on_failed("b", 0)
    health.on_answered("b", 1)
    assert health.to_be_asked() == {}
    health.on_failed("b", 2)
    assert health.to_be_asked() == {"b": 3}
    health.on_answered("b", 3)
    health.on_failed("b", 3 + STEADY_SECONDS)
    assert health.to_be_asked() == {"b": 3 + STEADY_SECONDS + 0.5}
