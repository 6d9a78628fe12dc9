"""HostileService: sessions by the server's clock, views, and what ZooKeeper refuses."""

from __future__ import annotations

import asyncio
import random

import pytest

from pulsar_py.common.errors import MetadataError
from pulsar_py.metadata.store import Notification
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.hostile_service import HostileService, HostileSettings


def service(settings: HostileSettings) -> HostileService:
    return HostileService(random.Random(1), VirtualClock(), settings)


def test_a_session_ends_after_its_timeout_without_news() -> None:
    async def run() -> None:
        server = service(HostileSettings(session_timeout_seconds=10))
        session = server.open_session()
        server.put("/e", b"", -1, session)
        await asyncio.sleep(9)
        assert server.touch(session)
        await asyncio.sleep(9.9)
        assert server.below("/") == ["/e"]
        await asyncio.sleep(0.2)
        assert not server.touch(session)
        assert server.below("/") == []
        assert server.expired_count == 1

    run_virtual(run())


def test_a_lagging_view_follows_within_its_bound() -> None:
    async def run() -> None:
        server = service(HostileSettings(lag_seconds=2))
        heard: list[Notification] = []
        view = server.add_view(heard.append)
        server.put("/a", b"1", None, None)
        assert view.tree.get("/a") is None
        await asyncio.sleep(2.01)
        assert view.tree.get("/a") is not None
        server.put("/a", b"2", None, None)
        view.catch_up(server.changes_count)
        assert [each.path for each in heard] == ["/a", "/a"]

    run_virtual(run())


def test_nothing_is_put_below_an_ephemeral_key() -> None:
    async def run() -> None:
        server = service(HostileSettings())
        server.put("/e", b"", -1, server.open_session())
        with pytest.raises(MetadataError, match="/e is ephemeral"):
            server.put("/e/a", b"", None, None)
        with pytest.raises(MetadataError, match="/e is ephemeral"):
            server.create_sequential("/e/", b"", None)

    run_virtual(run())


def test_parents_become_keys_where_that_is_asked_for() -> None:
    async def run() -> None:
        server = service(HostileSettings(are_parents_keys=True))
        server.put("/a/b/c", b"", None, None)
        assert server.below("/") == ["/a/b/c", "/a/b", "/a"]

    run_virtual(run())
