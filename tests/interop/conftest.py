"""A broker in a process of its own, and official clients of it.

With `PULSAR_SERVICE_URL` and `PULSAR_WEB_SERVICE_URL` in the environment the suite runs against
that broker instead, Apache Pulsar for one. With `--on-bookkeeper` the broker has its metadata in a
real ZooKeeper and its ledgers on three real bookies.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pulsar
import pytest

from tests.cluster.our_broker import OurBroker
from tests.interop.broker_process import BrokerProcess

_numbers = itertools.count()


@dataclass(frozen=True)
class Address:
    """Where the broker under test listens."""

    service_url: str
    web_service_url: str

    def rest(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """One call of the admin API."""
        request = urllib.request.Request(
            self.web_service_url + path, data=body, headers=dict(headers or {}), method=method
        )
        if body is not None:
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10) as response:
            return bytes(response.read())


@pytest.fixture(scope="session")
def address(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Address]:
    """The broker that all interop tests share."""
    if url := os.environ.get("PULSAR_SERVICE_URL"):
        yield Address(url, os.environ["PULSAR_WEB_SERVICE_URL"])
        return
    if request.config.getoption("--on-bookkeeper"):
        bookkeeper = request.getfixturevalue("bookkeeper")
        directory = tmp_path_factory.mktemp("broker")
        with OurBroker(directory, f"{bookkeeper.zookeeper.url}/interop") as broker:
            yield Address(broker.service_url, broker.web_service_url)
        return
    with BrokerProcess(tmp_path_factory.mktemp("data")) as broker:
        yield Address(broker.service_url, broker.web_service_url)


@pytest.fixture
def client(address: Address) -> Iterator[pulsar.Client]:
    """An official client, closed at the end."""
    client = new_client(address.service_url)
    yield client
    # A producer that was fenced is closed by the client's own threads, at any moment after the
    # fencing: a `close` of the client that comes upon it then says so, having closed all the rest.
    with contextlib.suppress(pulsar.AlreadyClosed):
        client.close()


def new_client(url: str, **options: object) -> pulsar.Client:
    """An official client that only logs errors."""
    return pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error), **options)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic of this test alone."""
    name = request.node.name.replace("[", "-").rstrip("]")
    return f"persistent://public/default/{name}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def partitioned_topic(address: Address, topic: str) -> Callable[[int], str]:
    """Makes the test's topic a partitioned one."""

    def create(partitions: int) -> str:
        path = "/admin/v2/" + topic.replace("://", "/") + "/partitions"
        address.rest("PUT", path, str(partitions).encode())
        return topic

    return create
