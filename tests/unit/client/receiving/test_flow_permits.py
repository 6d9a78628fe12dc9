from __future__ import annotations

from pulsar_py.client.receiving.flow_permits import FlowPermits


def test_the_queue_is_refilled_at_half() -> None:
    permits = FlowPermits(10)
    assert permits.opened(0) == 10
    assert [permits.taken(1) for _ in range(5)] == [0, 0, 0, 0, 5]
    assert permits.taken(7) == 7


def test_a_queue_of_one_is_refilled_at_once() -> None:
    permits = FlowPermits(1)
    assert permits.opened(0) == 1
    assert permits.taken(1) == 1


def test_a_new_connection_begins_with_all() -> None:
    permits = FlowPermits(10)
    permits.opened(0)
    permits.taken(3)
    assert permits.opened(0) == 10
    assert permits.to_give == 0


def test_whether_the_broker_may_send() -> None:
    permits = FlowPermits(4)
    assert permits.opened(0) == 4
    assert permits.are_out(3)
    assert not permits.are_out(4), "all of them came"
    assert not permits.are_out(9), "a batch was not divided"
    assert permits.taken(1) == 0
    assert not permits.are_out(3), "one is to be given back"
    assert permits.taken(1) == 2
    assert permits.are_out(2)
    on_demand = FlowPermits(0)
    assert not on_demand.are_out(0)
    assert on_demand.opened(1) == 1
    assert on_demand.are_out(0)


def test_a_pause_holds_back() -> None:
    permits = FlowPermits(4, is_paused=True)
    assert permits.opened(0) == 0
    assert permits.resume(0) == 4
    permits.pause()
    assert permits.is_paused
    assert permits.taken(3) == 0
    assert permits.resume(0) == 3


def test_a_queue_of_zero_asks_for_those_who_wait() -> None:
    permits = FlowPermits(0)
    assert permits.opened(0) == 0
    assert permits.wanted(1) == 1
    assert permits.wanted(1) == 0
    permits.arrived(1)
    assert permits.taken(1) == 0
    assert permits.wanted(2) == 2
    assert permits.opened(1) == 1


def test_a_queue_of_zero_pays_for_a_batch_first() -> None:
    permits = FlowPermits(0)
    permits.opened(0)
    permits.wanted(1)
    permits.arrived(5)
    assert permits.wanted(1) == 5


def test_a_queue_of_zero_can_be_paused() -> None:
    permits = FlowPermits(0)
    permits.opened(0)
    permits.pause()
    assert permits.wanted(1) == 0
    assert permits.resume(1) == 1


def test_a_larger_queue_gets_more_at_once() -> None:
    permits = FlowPermits(10)
    assert permits.opened(0) == 10
    permits.resize(30)
    assert permits.taken(0) == 20


def test_a_smaller_queue_is_reached_as_messages_are_taken() -> None:
    permits = FlowPermits(100)
    assert permits.opened(0) == 100
    permits.resize(10)
    assert permits.resume(0) == 0
    assert permits.taken(90) == 0
    assert permits.taken(4) == 0
    assert permits.taken(1) == 5
    assert permits.opened(0) == 10
