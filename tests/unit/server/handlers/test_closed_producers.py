from __future__ import annotations

from pulsar_py.server.handlers.closed_producers import ClosedProducers


def test_an_id_is_known_until_the_second_interval_ends() -> None:
    closed = ClosedProducers()
    closed.add(1)
    closed.on_interval()
    closed.add(2)
    assert (1 in closed, 2 in closed, 3 in closed) == (True, True, False)
    closed.on_interval()
    assert (1 in closed, 2 in closed) == (False, True)
    closed.on_interval()
    assert 2 not in closed


def test_an_id_in_use_again_is_not_a_closed_one() -> None:
    closed = ClosedProducers()
    closed.discard(1)
    closed.add(1)
    closed.discard(1)
    assert 1 not in closed
    closed.add(1)
    closed.on_interval()
    closed.discard(1)
    assert 1 not in closed
