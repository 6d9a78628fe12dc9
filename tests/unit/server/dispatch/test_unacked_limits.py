from __future__ import annotations

from pulsar_py.server.dispatch.unacked_limits import BrokerUnackedLimit


class Holder:
    def __init__(self) -> None:
        self.unacked_messages = 0
        self.is_blocked = False

    def block_for_broker(self) -> None:
        self.is_blocked = True

    def unblock_for_broker(self) -> None:
        self.is_blocked = False

    def add(self, limit: BrokerUnackedLimit, delta: int) -> None:
        self.unacked_messages += delta
        limit.add(self, delta)


def test_large_holders_are_blocked_at_the_limit_and_small_ones_are_not() -> None:
    limit = BrokerUnackedLimit(max_unacked_messages=100, blocked_share=0.16)
    large, small = Holder(), Holder()
    small.add(limit, 10)
    large.add(limit, 90)
    assert (large.is_blocked, small.is_blocked) == (True, False)


def test_a_holder_may_send_up_to_the_limit_or_its_share() -> None:
    limit = BrokerUnackedLimit(max_unacked_messages=100, blocked_share=0.16)
    first, second = Holder(), Holder()
    assert limit.allowance(first) == 100
    first.add(limit, 90)
    assert (limit.allowance(first), limit.allowance(second)) == (10, 17)
    second.add(limit, 16)
    assert not second.is_blocked
    assert (limit.allowance(first), limit.allowance(second)) == (-6, 1)
    second.add(limit, 1)
    assert second.is_blocked


def test_a_holder_goes_on_below_half_of_its_share() -> None:
    limit = BrokerUnackedLimit(max_unacked_messages=100, blocked_share=0.16)
    first, second = Holder(), Holder()
    first.add(limit, 80)
    second.add(limit, 20)
    assert second.is_blocked
    second.add(limit, -13)
    assert (first.is_blocked, second.is_blocked) == (True, False)


def test_all_go_on_when_the_broker_is_below_half_its_limit() -> None:
    limit = BrokerUnackedLimit(max_unacked_messages=100, blocked_share=0.16)
    holder = Holder()
    holder.add(limit, 100)
    holder.add(limit, -51)
    assert not holder.is_blocked
    assert limit.unacked_messages == 49


def test_without_a_limit_nobody_is_blocked() -> None:
    limit = BrokerUnackedLimit(max_unacked_messages=0, blocked_share=0.16)
    holder = Holder()
    holder.add(limit, 10**6)
    assert not holder.is_blocked


def test_a_holder_that_ends_is_forgotten() -> None:
    limit = BrokerUnackedLimit(max_unacked_messages=100, blocked_share=0.16)
    holder = Holder()
    holder.add(limit, 100)
    limit.remove(holder)
    holder.is_blocked = True
    limit.add(Holder(), -100)
    assert holder.is_blocked
