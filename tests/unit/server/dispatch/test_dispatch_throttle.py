"""How much a dispatcher may read within its limits."""

from __future__ import annotations

from pulsar_py.common.loops.rate_limiter import RateLimiter
from pulsar_py.server.dispatch.dispatch_throttle import DispatchThrottle
from pulsar_py.testing.clock import VirtualClock


def limiter(clock: VirtualClock, messages: int, size: int = 0) -> RateLimiter:
    made = RateLimiter(clock)
    made.set_limits(messages, size)
    return made


async def test_the_first_entry_is_read_alone(virtual_clock: VirtualClock) -> None:
    throttle = DispatchThrottle([limiter(virtual_clock, 100)])
    assert throttle.entries_allowed(50) == 1
    throttle.charge([10], [1])
    assert throttle.entries_allowed(50) == 50
    assert throttle.entries_allowed(500) == 99


async def test_the_largest_entry_and_the_tightest_limit_count(virtual_clock: VirtualClock) -> None:
    throttle = DispatchThrottle([limiter(virtual_clock, 100), limiter(virtual_clock, 0, 1000)])
    throttle.charge([100, 50], [10, 3])
    assert throttle.entries_allowed(50) == 8  # 87 messages, 850 bytes
    throttle.charge([800], [1])
    assert not throttle.is_ready(lambda: None)


async def test_of_entries_larger_than_expected_as_many_fit_as_there_is_left(
    virtual_clock: VirtualClock,
) -> None:
    limiters = [limiter(virtual_clock, 10), limiter(virtual_clock, 0, 1000)]
    throttle = DispatchThrottle(limiters)
    assert throttle.entries_that_fit([10] * 5, [3, 3, 3, 3, 1]) == 3
    assert throttle.entries_that_fit([400] * 5, [1] * 5) == 2
    assert throttle.entries_that_fit([100], [50]) == 1
    assert throttle.entries_that_fit([100, 1], [50, 1]) == 1
    assert DispatchThrottle(limiters, counts_entries=True).entries_that_fit([1] * 5, [9] * 5) == 5


async def test_it_calls_back_once_an_entry_fits(virtual_clock: VirtualClock) -> None:
    throttle = DispatchThrottle([limiter(virtual_clock, 10)])
    throttle.charge([1] * 10, [1] * 10)
    woken: list[float] = []
    start = virtual_clock.monotonic_seconds()
    assert not throttle.is_ready(lambda: woken.append(virtual_clock.monotonic_seconds() - start))
    await virtual_clock.sleep(1)
    assert [round(each, 3) for each in woken] == [0.1]


async def test_batches_and_dropped_entries_count_as_set(virtual_clock: VirtualClock) -> None:
    shared = limiter(virtual_clock, 100)
    DispatchThrottle([shared], counts_entries=True).charge([1], [50])
    assert round(shared.available()[0]) == 99
    DispatchThrottle([shared], charges_filtered=True).charge_refused([1, 1], [5, 2])
    assert round(shared.available()[0]) == 92
    throttle = DispatchThrottle([shared])
    throttle.charge_refused([1, 1], [5, 2])
    assert round(shared.available()[0]) == 92
    assert throttle.entries_allowed(100) == 92 // 5  # but their size is known


async def test_what_is_being_read_is_kept_for_it(virtual_clock: VirtualClock) -> None:
    shared = limiter(virtual_clock, 100, 1000)
    reader, other = DispatchThrottle([shared]), DispatchThrottle([shared])
    reader.charge([10], [2])
    reserved = reader.reserve(reader.entries_allowed(60))
    woken: list[float] = []
    start = virtual_clock.monotonic_seconds()
    assert not other.is_ready(lambda: woken.append(virtual_clock.monotonic_seconds() - start))
    await virtual_clock.sleep(0.005)
    reader.give_back(reserved)
    reader.charge([10], [2])
    assert [int(each) for each in shared.available()] == [96, 985]
    await virtual_clock.sleep(0.002)
    assert len(woken) == 1


async def test_each_wait_is_counted_once_by_whose_limit_it_is(virtual_clock: VirtualClock) -> None:
    own = RateLimiter(virtual_clock, "subscription s")
    own.set_limits(0, 100)
    topic = RateLimiter(virtual_clock, "topic")
    topic.set_limits(10, 0)
    throttle = DispatchThrottle([own, topic])
    throttle.charge([10], [10])

    def on_ready() -> None:
        """Waits once, however often it asks."""

    assert not throttle.is_ready(on_ready)
    assert not throttle.is_ready(on_ready)
    assert (throttle.events.messages_by_topic, throttle.events.bytes_by_topic) == (1, 0)
    throttle.forget(on_ready)
    await virtual_clock.sleep(2)
    throttle.charge([100], [1])
    assert not throttle.is_ready(on_ready)
    events = throttle.events
    assert (events.messages_by_subscription, events.bytes_by_subscription) == (0, 1)
    assert (events.messages_by_topic, events.messages_by_broker, events.bytes_by_broker) == (
        1,
        0,
        0,
    )
