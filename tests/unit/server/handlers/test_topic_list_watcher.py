from __future__ import annotations

import asyncio

from pulsar_py.common.names import NamespaceName
from pulsar_py.server.handlers.topic_list_watcher import TopicListWatcher
from pulsar_py.server.handlers.topic_patterns import TopicPattern, topics_hash
from tests.unit.server.connection.standins import Client, Server, settle

NS = NamespaceName.parse("public/ns")
A, B, C = (f"persistent://public/ns/x-{letter}" for letter in "abc")
OTHER = "persistent://public/ns/other"


async def watching(server: Server) -> tuple[Client, TopicListWatcher]:
    client = await server.connect()
    watcher = TopicListWatcher(client.cnx, 7, NS, TopicPattern("public/ns/x-.*"))
    await watcher.start(server.topics)  # type: ignore[arg-type]
    return client, watcher


async def test_starts_with_the_topics_that_match(server: Server) -> None:
    server.topics.listed = [B, OTHER, A]
    _, watcher = await watching(server)
    assert watcher.topics == [A, B]


async def test_tells_of_changes_with_the_hash_of_the_whole(server: Server) -> None:
    server.topics.listed = [A]
    client, watcher = await watching(server)
    (notify,) = server.topics.watchers
    notify([B, OTHER, "non-persistent://public/ns/x-n"], [])
    notify([], [A])
    first, second = await client.receives()
    assert (first.watcher_id, list(first.new_topics)) == (7, [B])
    assert first.topics_hash == topics_hash([A, B])
    assert list(second.deleted_topics) == [A]
    assert watcher.topics == [B]


async def test_says_nothing_about_what_does_not_change_the_list(server: Server) -> None:
    server.topics.listed = [A]
    client, _ = await watching(server)
    (notify,) = server.topics.watchers
    notify([A, OTHER], [B])
    assert not await client.receives()


async def test_changes_while_the_list_is_read_are_not_lost(server: Server) -> None:
    server.topics.listed = [A, B]
    client = await server.connect()
    server.topics.gate.clear()
    watcher = TopicListWatcher(client.cnx, 7, NS, TopicPattern("public/ns/x-.*"))
    async with asyncio.TaskGroup() as group:
        group.create_task(watcher.start(server.topics))  # type: ignore[arg-type]
        await settle()
        server.topics.watchers[0]([C], [A])
        server.topics.gate.set()
    assert watcher.topics == [B, C]
    assert not await client.receives()


async def test_closed_watcher_is_silent(server: Server) -> None:
    _, watcher = await watching(server)
    watcher.close()
    watcher.close()
    assert not server.topics.watchers
