"""The same calls from an event loop, against a real broker."""

from __future__ import annotations

import pytest

from pulsar_py.admin_client import AsyncAdminClient, clusters, topics
from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.testing.restartable_broker import RestartableBroker


async def test_calls_are_awaited(async_pulsar_broker: RestartableBroker) -> None:
    async with AsyncAdminClient(async_pulsar_broker.web_service_url) as admin:
        assert "public" in await admin.call(clusters.tenants())
        await admin.call(topics.create_partitioned_topic("parts", 3))
        assert (await admin.call(topics.partitions("parts"))).partitions == 3
        assert await admin.send("GET", "/admin/v2/clusters") == ["standalone"]
        with pytest.raises(TopicNotFoundError, match="404"):
            await admin.call(topics.stats("no-such"))
