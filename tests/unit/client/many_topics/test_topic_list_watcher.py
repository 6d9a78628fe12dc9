"""Watching a namespace: the list, then news of it; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pulsar_py.client.many_topics.topic_list_watcher import FATAL_ERRORS, TopicListWatcher
from pulsar_py.client.many_topics.topic_lists import TopicPattern
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from tests.simulated_client import World, simulated

NAMESPACE = "persistent://public/default"


class News:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_topics_listed(self, topics: Sequence[str]) -> None:
        self.heard.append(("listed", *topics))

    def on_topics_updated(self, new: Sequence[str], deleted: Sequence[str]) -> None:
        self.heard.append(("updated", *new, "-", *deleted))

    def on_watch_failed(self, error: Exception) -> None:
        self.heard.append(error)


def a_watcher(world: World, news: News, pattern: str = "a.*") -> TopicListWatcher:
    parsed = TopicPattern(pattern, RegexSubscriptionMode.PersistentOnly)
    return TopicListWatcher(world.client.context, parsed, news)


def test_first_the_list_then_what_changes() -> None:
    async def work(world: World) -> None:
        await world.send("a1")
        await world.send("b1")
        news = News()
        watcher = a_watcher(world, news)
        await watcher.open()
        assert watcher.is_connected
        assert news.heard == [("listed", f"{NAMESPACE}/a1")]
        await world.send("a2")
        await world.delete(f"{NAMESPACE}/a1")
        await asyncio.sleep(1)
        assert news.heard[1:] == [
            ("updated", f"{NAMESPACE}/a2", "-"),
            ("updated", "-", f"{NAMESPACE}/a1"),
        ]
        await watcher.close()
        await world.send("a3")
        await asyncio.sleep(1)
        assert len(news.heard) == 3
        await watcher.close()

    simulated(work)


def test_an_unchanged_list_is_not_told_again() -> None:
    async def work(world: World) -> None:
        await world.send("a1")
        news = News()
        watcher = a_watcher(world, news)
        await watcher.open()
        for connection in list(asyncio.get_running_loop().network.connections):  # type: ignore[attr-defined] # of SimulatedLoop
            connection.abort()
        await asyncio.sleep(0.01)
        assert not watcher.is_connected
        await asyncio.sleep(10)
        assert watcher.is_connected
        assert news.heard == [("listed", f"{NAMESPACE}/a1")]
        await world.send("a2")
        await asyncio.sleep(1)
        assert news.heard[1:] == [("updated", f"{NAMESPACE}/a2", "-")]
        await watcher.close()

    simulated(work)


def test_updates_that_overtake_the_list_come_after_it() -> None:
    async def work(world: World) -> None:
        news = News()
        watcher = a_watcher(world, news)
        async with asyncio.TaskGroup() as group:
            opening = group.create_task(watcher.open())
            while not opening.done():
                watcher.on_topic_list_update(["early"], [], "hash")
                await asyncio.sleep(0.0005)
        assert news.heard[:2] == [("listed",), ("updated", "early", "-")]
        await watcher.close()

    simulated(work)


def test_a_broker_that_does_not_watch_says_so() -> None:
    async def work(world: World) -> None:
        watcher = a_watcher(world, News())
        with pytest.raises(FATAL_ERRORS):
            await watcher.open()
        assert not watcher.is_connected
        await watcher.close()

    simulated(work, enableBrokerTopicListWatcher=False)


def test_a_pattern_that_is_too_long_is_refused() -> None:
    async def work(world: World) -> None:
        watcher = a_watcher(world, News(), "a" * 100)
        with pytest.raises(FATAL_ERRORS):
            await watcher.open()
        await watcher.close()

    simulated(work)
