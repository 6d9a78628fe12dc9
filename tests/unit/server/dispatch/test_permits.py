from __future__ import annotations

import pytest

from pulsar_py.server.dispatch.permits import ConsumerPermits


def test_permits_are_charged_and_may_go_negative() -> None:
    permits = ConsumerPermits(max_unacked_messages=0)
    assert permits.add(2)
    permits.take(5)
    assert permits.available == -3
    assert not permits.can_receive


def test_a_consumer_at_its_limit_is_blocked_and_flow_is_parked() -> None:
    permits = ConsumerPermits(max_unacked_messages=4)
    permits.add(10)
    permits.take(4)
    permits.owe(4)
    assert permits.is_blocked
    assert not permits.can_receive
    assert not permits.add(7)
    assert (permits.available, permits.parked_permits) == (6, 7)


def test_acknowledging_down_to_half_releases_what_was_parked() -> None:
    permits = ConsumerPermits(max_unacked_messages=4)
    permits.owe(4)
    permits.add(7)
    assert not permits.give_back(1)
    assert permits.give_back(1)
    assert (permits.available, permits.parked_permits, permits.is_blocked) == (7, 0, False)


def test_redelivery_unblocks_in_any_case() -> None:
    permits = ConsumerPermits(max_unacked_messages=4)
    permits.owe(4)
    permits.add(1)
    assert permits.redeliver(0)
    assert permits.can_receive
    assert permits.unacked_messages == 4


def test_a_blocked_consumer_is_blocked_again_by_the_next_flow() -> None:
    permits = ConsumerPermits(max_unacked_messages=4)
    permits.owe(4)
    permits.redeliver(0)
    assert not permits.add(1)


def test_without_a_limit_nothing_blocks() -> None:
    permits = ConsumerPermits(max_unacked_messages=0)
    permits.owe(1_000_000)
    assert not permits.is_blocked
    assert permits.unacked_allowance > 1_000_000


def test_the_allowance_is_what_is_left_to_the_limit() -> None:
    permits = ConsumerPermits(max_unacked_messages=4)
    permits.owe(3)
    assert permits.unacked_allowance == 1


def test_a_raised_limit_unblocks() -> None:
    permits = ConsumerPermits(max_unacked_messages=2)
    permits.owe(2)
    permits.set_limit(10)
    assert not permits.is_blocked


def test_giving_back_more_than_owed_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="-1 unacknowledged"):
        ConsumerPermits(max_unacked_messages=0).give_back(1)


def test_who_watches_is_told_when_it_can_receive_again():
    told = []
    permits = ConsumerPermits(max_unacked_messages=2)
    permits.on_ready = lambda: told.append(permits.can_receive)
    permits.add(2)
    permits.add(1)
    assert told == [True]
    permits.take(3)
    permits.add(1)
    assert told == [True, True]
    permits.owe(2)
    permits.add(5)
    assert permits.is_blocked
    assert told == [True, True]
    permits.give_back(1)
    assert told == [True, True, True]
    permits.take(6)
    permits.owe(2)
    permits.redeliver(3)
    assert told == [True, True, True]
