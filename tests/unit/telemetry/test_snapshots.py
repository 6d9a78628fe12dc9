"""Statistics for exporters in other threads."""

from __future__ import annotations

import asyncio

import pulsar_py
from pulsar_py import blocking
from pulsar_py.telemetry.snapshots import Snapshots
from pulsar_py.testing import BrokerThread


def take_anew(snapshots: Snapshots) -> pulsar_py.ClientStatistics | None:
    snapshots._valid_until = 0.0
    return snapshots.take()


async def test_an_asyncio_client_is_asked_in_its_loop_from_any_thread(
    async_pulsar_broker: object,
) -> None:
    client = pulsar_py.Client(async_pulsar_broker.service_url)
    snapshots = Snapshots(client)
    assert take_anew(snapshots) is None
    producer = await client.create_producer("t")
    await producer.send(b"x")
    here = take_anew(snapshots)
    there = await asyncio.to_thread(take_anew, snapshots)
    for each in (here, there):
        ((fields, figures),) = each.producers
        assert fields["topic"] == "persistent://public/default/t"
        assert figures.total_messages_sent == 1
        assert each.connections_count == 1
    assert snapshots.take() is there  # those that follow at once get the same
    await client.close()


def test_a_loop_that_ended_leaves_the_last_ones(session_pulsar_broker: BrokerThread) -> None:
    async def use() -> Snapshots:
        async with pulsar_py.Client(session_pulsar_broker.service_url) as client:
            await client.create_producer("t")
            snapshots = Snapshots(client)
            take_anew(snapshots)
            return snapshots

    snapshots = asyncio.run(use())
    assert len(take_anew(snapshots).producers) == 1


def test_a_blocking_client_is_asked_by_its_thread(session_pulsar_broker: BrokerThread) -> None:
    with blocking.Client(session_pulsar_broker.service_url) as client:
        client.subscribe("t", "s", consumer_name="c")
        ((fields, _),) = take_anew(Snapshots(client)).consumers
        assert (fields["subscription"], fields["consumer"]) == ("s", "c")
