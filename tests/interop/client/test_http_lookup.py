"""Our client with an `http://` service URL, and with providers that choose among clusters."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import pulsar_py
from tests.interop.client.sides import TIMEOUT, Official, Ours, data_of, receive_all
from tests.interop.conftest import Address


async def test_everything_is_found_over_http(
    address: Address, official: Official, partitioned_topic: Callable[[int], str]
) -> None:
    topic = partitioned_topic(3)
    async with pulsar_py.Client(address.web_service_url) as client:
        ours = Ours(client)
        consumer = await ours.consumer(topic)
        assert len(await client.get_topic_partitions(topic)) == 3

        await official.publish(topic, [b"%d" % i for i in range(9)])
        assert sorted(await data_of(consumer, 9)) == [b"%d" % i for i in range(9)]

        by_pattern = await ours.consumer(re.compile(f"{topic}.*"), "pattern")
        assert len(await receive_all(by_pattern, 9)) == 9


async def test_names_with_strange_letters_are_found_over_http(
    address: Address, topic: str, official: Official
) -> None:
    topic += "-a b%2Fü?&#"
    async with pulsar_py.Client(address.web_service_url) as client:
        consumer = await Ours(client).consumer(topic)
        await official.publish(topic, [b"m"])
        assert await data_of(consumer, 1) == [b"m"]


async def test_a_namespace_that_is_missing_is_told_over_http(address: Address) -> None:
    async with pulsar_py.Client(address.web_service_url, operation_timeout_seconds=5) as client:
        with pytest.raises(pulsar_py.PulsarError):
            await client.create_producer("persistent://public/nowhere/t")


async def test_a_client_goes_where_the_cluster_is(address: Address, topic: str) -> None:
    down = "pulsar://127.0.0.1:1"
    provider = pulsar_py.AutoClusterFailover(
        pulsar_py.ServiceInfo(down),
        [pulsar_py.ServiceInfo(address.service_url)],
        check_interval_ms=100,
    )
    async with pulsar_py.Client(provider) as client:
        consumer = await client.subscribe(topic, "sub")
        async with await client.create_producer(topic) as producer:
            await producer.send(b"m")
        assert (await consumer.receive(TIMEOUT)).data() == b"m"
        assert client.service_url == address.service_url


async def test_a_client_switches_between_ways_of_looking_up(
    address: Address, topic: str, official: Official
) -> None:
    async with pulsar_py.Client(address.service_url) as client:
        consumer = await client.subscribe(topic, "sub")
        producer = await client.create_producer(topic)

        await client.update_service_url(address.web_service_url)

        await producer.send(b"m")
        assert (await consumer.receive(TIMEOUT)).data() == b"m"
