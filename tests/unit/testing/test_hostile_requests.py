from __future__ import annotations

import random

import pytest

from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.hostile_requests import Lane
from pulsar_py.testing.hostile_service import HostileService, HostileSettings


@pytest.mark.parametrize("delay_seconds", [(0.0, 0.0), (0.0, 1.0)])
def test_what_goes_in_comes_out_in_order(delay_seconds: tuple[float, float]) -> None:
    assert run_virtual(sent(VirtualClock(), delay_seconds)) == list(range(100))


async def sent(virtual_clock: VirtualClock, delay_seconds: tuple[float, float]) -> list[int]:
    settings = HostileSettings(delay_seconds=delay_seconds)
    lane = Lane(HostileService(random.Random(1), virtual_clock, settings))
    came: list[int] = []
    for number in range(100):
        lane.send(lambda number=number: came.append(number))
        assert len(came) <= number
    await virtual_clock.sleep(1.1)
    return came
