from __future__ import annotations

from random import Random

from pulsar_py.client.brokers.outages import Outages


def fail(outages: Outages, address: str, now: float) -> bool:
    return outages.on_failure(
        address, now, chance=Random(1), initial_seconds=0.1, maximum_seconds=2.0
    )


def test_attempts_wait_longer_and_longer_up_to_the_limit() -> None:
    outages = Outages()
    now, waits = 100.0, []
    for _ in range(8):
        fail(outages, "a", now)
        waits.append(outages.wait_seconds("a", now))
        now += waits[-1]
        assert outages.wait_seconds("a", now) == 0
    assert waits == sorted(waits[:6]) + waits[6:]
    assert 0.09 <= waits[0] <= 0.1
    assert all(1.8 <= each <= 2 for each in waits[5:])


def test_the_first_failure_and_its_end_are_told_once() -> None:
    outages = Outages()
    assert [fail(outages, "a", 0), fail(outages, "a", 1)] == [True, False]
    assert "a" in outages
    assert [outages.on_success("a"), outages.on_success("a")] == [True, False]
    assert outages.wait_seconds("a", 1) == 0
    assert fail(outages, "a", 2)
    assert outages.wait_seconds("a", 2) <= 0.1, "it begins anew"


def test_addresses_are_apart() -> None:
    outages = Outages()
    fail(outages, "a", 0)
    assert outages.wait_seconds("b", 0) == 0
