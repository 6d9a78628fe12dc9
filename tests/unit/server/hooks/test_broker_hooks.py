"""broker_hooks: the users' classes of one broker end with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.loop_watch import LoopWatch
from pulsar_py.server.broker import broker_hooks
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.dispatch.user_filters import FilterCounts, UserFilters
from pulsar_py.server.hooks.broker_hooks import MODULES_CALLING_USERS, BrokerHooks
from pulsar_py.server.hooks.entry_filter import FilterResult
from tests.hook_classes import ENDS_WAITING, ByPayload

NAME = "tests.hook_classes.ByPayload"


def test_filters_are_told_of_the_end() -> None:
    hooks = broker_hooks(BrokerConfig(entryFilterNames=(NAME,)), SystemClock())
    made = hooks.filters.require(NAME).filter
    assert isinstance(made, ByPayload)
    hooks.close()
    assert made.is_closed
    assert hooks.errors.total == 0


def by_filter(hooks: BrokerHooks) -> None:
    installed = hooks.filters.require("tests.hook_classes.Waiting")
    entry: Any = SimpleNamespace(ledger_id=1, entry_id=0, data=b"")
    counts = FilterCounts()
    filters = UserFilters([installed], cast("Any", lambda: None), counts, lambda _: None)
    summary: Any = SimpleNamespace(messages_count=1)
    assert filters.result_of(entry, summary) is FilterResult.ACCEPT


def by_interceptor(hooks: BrokerHooks) -> None:
    hooks.interceptors.tell("close")


def by_end_of_a_filter(hooks: BrokerHooks) -> None:
    hooks.filters.require("tests.hook_classes.Waiting")
    hooks.filters.close()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (by_filter, "hook_classes.Waiting.filter_entry"),
        (by_interceptor, "hook_classes.WaitingToo.close"),
        (by_end_of_a_filter, "hook_classes.Waiting.close"),
    ],
)
def test_a_class_that_does_not_return_is_named(
    caplog: pytest.LogCaptureFixture, call: Callable[[BrokerHooks], None], name: str
) -> None:
    async def run() -> None:
        config = BrokerConfig(
            entryFilterNames=("tests.hook_classes.Waiting",),
            brokerInterceptors=("tests.hook_classes.WaitingToo",),
        )
        hooks = broker_hooks(config, SystemClock())
        watch = LoopWatch(
            asyncio.get_running_loop(),
            service_url="pulsar://here:1",
            limit_seconds=0.02,
            calling_users=MODULES_CALLING_USERS,
        )
        ENDS_WAITING.clear()
        await asyncio.sleep(0.02)
        call(hooks)
        await asyncio.to_thread(watch.stop)

    def end_waiting(record: logging.LogRecord) -> bool:
        del record
        ENDS_WAITING.set()
        return True

    caplog.handler.addFilter(end_waiting)
    try:
        asyncio.run(run())
    finally:
        caplog.handler.removeFilter(end_waiting)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{name} (hook_classes.py:")
    assert "has not returned for 0.02 s" in record.getMessage()
