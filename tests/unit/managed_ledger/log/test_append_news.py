"""AppendNews: groups reach the listener whole, or split around those who wait."""

import pytest

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.append_news import AppendNews, Waiter
from tests.managed_ledger_parts import Recorder


def news_for(recorder, waiters=0):
    news = AppendNews()
    news.listener = recorder
    news.waiters_count = waiters
    return news


async def test_a_group_without_waiters_is_handed_on_as_it_is():
    recorder = Recorder()
    news_for(recorder).appended(5, 7, ["a", "b"])
    assert recorder.groups == [(5, 7, ["a", "b"])]


async def test_waiters_split_a_group_and_get_their_positions():
    recorder, first, last = Recorder(), Waiter(), Waiter()
    news = news_for(recorder, waiters=2)
    news.appended(5, 7, ["a", first, "b", "c", last])
    assert recorder.groups == [(5, 7, ["a"]), (5, 9, ["b", "c"])]
    assert (await first.done, await last.done) == (Position(5, 8), Position(5, 11))
    assert news.waiters_count == 0


async def test_failures_reach_both():
    recorder, waiter = Recorder(), Waiter()
    error = ValueError("no")
    news_for(recorder, waiters=1).failed([waiter, "a"], error)
    assert recorder.failed == ["a"]
    with pytest.raises(ValueError, match="no"):
        await waiter.done


async def test_a_waiter_that_gave_up_is_passed_over():
    waiter = Waiter()
    waiter.done.cancel()
    news_for(Recorder(), waiters=1).appended(5, 0, [waiter])
    other = Waiter()
    other.done.cancel()
    news_for(Recorder(), waiters=1).failed([other], ValueError())


async def test_without_a_listener_nobody_is_told():
    news = AppendNews()
    news.appended(5, 0, ["a"])
    news.failed(["a"], ValueError())
    news.fenced(ValueError())
