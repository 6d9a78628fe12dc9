"""broker_hooks: the users' classes of one broker end with it."""

from __future__ import annotations

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.server.broker import broker_hooks
from pulsar_py.server.config import BrokerConfig
from tests.hook_classes import ByPayload

NAME = "tests.hook_classes.ByPayload"


def test_filters_are_told_of_the_end() -> None:
    hooks = broker_hooks(BrokerConfig(entryFilterNames=(NAME,)), SystemClock())
    made = hooks.filters.require(NAME).filter
    assert isinstance(made, ByPayload)
    hooks.close()
    assert made.is_closed
    assert hooks.errors.total == 0
