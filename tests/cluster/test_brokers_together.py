"""Two of our brokers on one ZooKeeper and one set of bookies, and official clients of both."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import SESSION_MILLIS, OurBroker

pytestmark = pytest.mark.slow  # seconds of real time; `make test-cluster` runs them

TOPICS = [f"persistent://public/default/together-{number}" for number in range(8)]
TIMEOUT_MILLIS = 60_000
AFTER_SESSION_SECONDS = 8.0
"""By which an outage may be longer than the session of a broker that was killed."""
HAND_OVER_SECONDS = 3.0
"""A loaded machine's; on a free one it is a tenth of that."""


@pytest.fixture
def brokers(bookkeeper: BookKeeperCluster, tmp_path: Path) -> Iterator[list[OurBroker]]:
    url = f"{bookkeeper.zookeeper.url}/{tmp_path.name}"
    both = [OurBroker(tmp_path / name, url) for name in ("one", "two")]
    try:
        for broker in both:
            broker.start()
        yield both
    finally:
        for broker in both:
            broker.kill()


def client_of(*brokers: OurBroker) -> Any:  # Any: the official client has no types
    hosts = ",".join(broker.service_url.removeprefix("pulsar://") for broker in brokers)
    return pulsar.Client(f"pulsar://{hosts}", logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def owners(brokers: list[OurBroker]) -> dict[str, str]:
    """The broker that each topic is looked up at, by asking each of the brokers."""
    found = {}
    for topic in TOPICS:
        path = f"/lookup/v2/topic/{topic.replace('://', '/')}"
        answers = {get_json(f"{broker.web_service_url}{path}")["nativeUrl"] for broker in brokers}
        assert len(answers) == 1, answers
        found[topic] = answers.pop()
    return found


def get_json(url: str) -> Any:  # Any: JSON
    """What is answered, redirects followed."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


class Publisher:
    """Sends one message after the other to a topic, and notes the longest time between two."""

    def __init__(self, client: Any, topic: str) -> None:
        self.confirmed: list[int] = []
        self.longest_seconds = 0.0
        client.subscribe(topic, "keeps-everything").close()
        self._producer = client.create_producer(
            topic, send_timeout_millis=TIMEOUT_MILLIS, batching_enabled=False
        )
        self._is_stopping = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        last = time.monotonic()
        try:
            while not self._is_stopping:
                self._producer.send(b"%d" % number)
                now = time.monotonic()
                self.longest_seconds = max(self.longest_seconds, now - last)
                last = now
                self.confirmed.append(number)
                number += 1
                threading.Event().wait(0.01)
        except Exception as error:  # noqa: BLE001 - told by `stop`
            self._error = error

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 120
        wanted = len(self.confirmed) + count
        while len(self.confirmed) < wanted and self._error is None:
            assert time.monotonic() < deadline, f"{len(self.confirmed)} of {wanted} confirmed"
            threading.Event().wait(0.05)

    def stop(self) -> None:
        self._is_stopping = True
        self._thread.join(120)
        if self._error is not None:
            raise self._error


def everything_in(client: Any, topic: str) -> list[int]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(int(reader.read_next(TIMEOUT_MILLIS).data()))
    reader.close()
    return found


def check_complete(client: Any, topic: str, publisher: Publisher) -> None:
    """Nothing confirmed is lost; what was sent again without deduplication may be there twice."""
    found = everything_in(client, topic)
    assert set(publisher.confirmed) <= set(found)
    firsts = list(dict.fromkeys(found))
    assert firsts == sorted(firsts)


@pytest.mark.interop
def test_clients_of_either_broker_go_on_when_one_is_killed(brokers: list[OurBroker]) -> None:
    one, two = brokers
    clients = [client_of(one, two), client_of(two, one)]
    publishers = [Publisher(clients[number % 2], topic) for number, topic in enumerate(TOPICS)]
    for publisher in publishers:
        publisher.wait_for(20)
    before = owners(brokers)
    assert set(before.values()) == {one.service_url, two.service_url}
    one.kill()
    for publisher in publishers:
        publisher.wait_for(20)
    for publisher in publishers:
        publisher.stop()
    longest = max(publisher.longest_seconds for publisher in publishers)
    assert set(owners([two]).values()) == {two.service_url}
    for topic, publisher in zip(TOPICS, publishers, strict=True):
        check_complete(clients[1], topic, publisher)
    for client in clients:
        client.close()
    print(f"killed: longest outage {longest:.2f} s")
    assert longest < SESSION_MILLIS / 1000 + AFTER_SESSION_SECONDS


@pytest.mark.interop
def test_a_broker_that_is_stopped_hands_over(brokers: list[OurBroker]) -> None:
    one, two = brokers
    client = client_of(two, one)
    publishers = [Publisher(client, topic) for topic in TOPICS]
    for publisher in publishers:
        publisher.wait_for(20)
    assert set(owners(brokers).values()) == {one.service_url, two.service_url}
    assert one.stop() == 0
    for publisher in publishers:
        publisher.wait_for(20)
    for publisher in publishers:
        publisher.stop()
    for topic, publisher in zip(TOPICS, publishers, strict=True):
        check_complete(client, topic, publisher)
    client.close()
    longest = max(publisher.longest_seconds for publisher in publishers)
    print(f"stopped: longest outage {longest:.2f} s")
    assert longest < HAND_OVER_SECONDS
