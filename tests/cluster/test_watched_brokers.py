"""Two of our brokers as processes, as operators, programs of REST and clients' connections see them.

Who asks the wrong one is sent to the owner; CLOSE commands name a broker that has the bundle by
then; namespaces of one group are kept apart; `doctor --cluster` and the console tell of both.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.browser import chromium
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import PULSAR_PY, OurBroker
from tests.wire_client import WireClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NAMESPACE: Final = "public/watched"
BUNDLES_COUNT: Final = 4
GROUP: Final = "apart"
WAIT_SECONDS: Final = 60.0
SESSION_MILLIS: Final = 60_000
"""Long: a broker that was killed is asked about while it is still registered."""


@pytest.fixture(scope="module")
def brokers(
    bookkeeper: BookKeeperCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[OurBroker]]:
    directory = tmp_path_factory.mktemp("watched")
    url = f"{bookkeeper.zookeeper.url}/{directory.name}"
    settings = {
        "metadataStoreSessionTimeoutMillis": SESSION_MILLIS,
        "loadBalancerReportUpdateMinIntervalMillis": 500,
    }
    both = [OurBroker(directory / name, url, settings=settings) for name in ("one", "two")]
    try:
        for broker in both:
            broker.start()
        both[0].ask("PUT", f"namespaces/{NAMESPACE}", {"bundles": {"numBundles": BUNDLES_COUNT}})
        yield both
    finally:
        for broker in both:
            broker.kill()


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def id_of(broker: OurBroker) -> str:
    return broker.web_service_url.removeprefix("http://")


def owner_of(brokers: list[OurBroker], topic: str) -> OurBroker:
    """The broker that has a topic's bundle; all say the same."""
    found = set()
    for broker in brokers:
        url = f"{broker.web_service_url}/lookup/v2/topic/persistent/{topic}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found.add(json.load(answer)["brokerUrl"])
    (url,) = found
    return next(each for each in brokers if each.service_url == url)


def bundle_of(broker: OurBroker, topic: str) -> str:
    url = f"{broker.web_service_url}/lookup/v2/topic/persistent/{topic}/bundle"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def own_bundles(broker: OurBroker) -> dict[str, int]:
    """What a broker says that it has itself, and since when."""
    return {each["bundle"]: each["since"] for each in broker.get("brokers/load")["bundles"]}


def status_of(broker: OurBroker, method: str, path: str) -> tuple[int, str]:
    """The status of an answer, and where it sends us; nothing is followed."""
    connection = HTTPConnection("127.0.0.1", broker.web_port, timeout=60)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, "[]" if method == "POST" else None, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("Location", "")
    finally:
        connection.close()


def test_both_have_bundles_and_who_asks_the_wrong_one_is_sent_on(brokers: list[OurBroker]) -> None:
    found = set()
    for number in range(2 * BUNDLES_COUNT):
        topic = f"{NAMESPACE}/t{number}"
        ask_any(brokers[number % 2], "PUT", f"persistent/{topic}")
        owner = owner_of(brokers, topic)
        found.add(id_of(owner))
        (other,) = (each for each in brokers if each is not owner)
        base = f"/admin/v2/persistent/{topic}"
        for method, path in (
            ("GET", f"{base}/stats?getPreciseBacklog=true"),
            ("GET", f"{base}/internalStats"),
            ("PUT", f"{base}/subscription/sub"),
            ("POST", f"{base}/subscription/sub/skip_all"),
            ("PUT", f"{base}/unload"),
            ("DELETE", f"{base}/subscription/sub"),
        ):
            status, where = status_of(other, method, path)
            assert status == 307, (method, path, status)
            wanted, got = urlsplit(owner.web_service_url + path), urlsplit(where)
            assert got.netloc == wanted.netloc
            assert got.path == wanted.path
            assert parse_qs(wanted.query).items() <= parse_qs(got.query).items()
            there = status_of(owner, method, f"{got.path}?{got.query}")[0]
            assert there in {200, 204}, (method, where)
    assert found == {id_of(each) for each in brokers}


async def test_a_close_names_a_broker_that_has_the_bundle_by_then(
    brokers: list[OurBroker],
) -> None:
    name = f"{NAMESPACE}/closed"
    owner = await asyncio.to_thread(owner_of, brokers, name)
    (other,) = (each for each in brokers if each is not owner)
    client = await WireClient.connect("127.0.0.1", owner.port)
    try:
        topic = f"persistent://{name}"
        await client.lookup(topic)
        assert (await client.create_producer(topic)).HasField("producer_success")
        assert (await client.subscribe(topic, "sub")).HasField("success")
        bundle = await asyncio.to_thread(bundle_of, owner, name)
        path = f"namespaces/{NAMESPACE}/{bundle}/unload?destinationBroker={id_of(other)}"
        asked = asyncio.create_task(asyncio.to_thread(ask_any, owner, "PUT", path))
        closed, arrived_at = [], []
        for _ in range(2):
            received = await asyncio.wait_for(client.pushed.get(), WAIT_SECONDS)
            arrived_at.append(time.time() * 1000)
            closed.append(received.command)
        await asked
        urls = {each.close_producer.assignedBrokerServiceUrl for each in closed} | {
            each.close_consumer.assignedBrokerServiceUrl for each in closed
        }
        assert {each.type for each in closed} == {
            BaseCommand.CLOSE_PRODUCER,
            BaseCommand.CLOSE_CONSUMER,
        }
        assert urls == {other.service_url, ""}, "each has one of the two fields"
        since = (await asyncio.to_thread(own_bundles, other))[f"{NAMESPACE}/{bundle}"]
        assert since <= min(arrived_at)
    finally:
        await client.close()


def ask_any(broker: OurBroker, method: str, path: str) -> None:
    """Ask for it, at another broker if that one is named."""
    status, where = status_of(broker, method, f"/admin/v2/{path}")
    while status == 307:
        address = urlsplit(where)
        connection = HTTPConnection(address.netloc, timeout=60)
        connection.request(method, f"{address.path}?{address.query}")
        answer = connection.getresponse()
        answer.read()
        status, where = answer.status, answer.getheader("Location", "")
        connection.close()
    assert status == 204, status


def test_namespaces_of_one_group_are_kept_apart(brokers: list[OurBroker]) -> None:
    names = [f"public/apart-{number}" for number in range(2)]
    for name in names:
        brokers[0].ask("PUT", f"namespaces/{name}", {"bundles": {"numBundles": 1}})
        brokers[0].ask("POST", f"namespaces/{name}/antiAffinity", GROUP)
    found = set()
    for name in names:
        found.add(id_of(owner_of(brokers, f"{name}/topic")))
        bundle = f"{name}/0x00000000_0xffffffff"
        for broker in brokers:
            reported = lambda broker=broker, bundle=bundle: any(  # noqa: E731
                bundle in each["bundles"] for each in broker.get("brokers/load")["brokers"]
            )
            wait_for(reported, f"{bundle} is in no report that {id_of(broker)} has")
    assert len(found) == 2, "each has one of them"
    listed = brokers[0].get(f"namespaces/standalone/antiAffinity/{GROUP}?tenant=public")
    assert sorted(listed) == names


def doctor(broker: OurBroker, *words: str) -> subprocess.CompletedProcess[str]:
    command = [PULSAR_PY, "doctor", "--cluster", "--admin-url", broker.web_service_url, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_doctor_tells_of_all_brokers(brokers: list[OurBroker]) -> None:
    ids = sorted(map(id_of, brokers))
    for asked in brokers:
        view = json.loads(doctor(asked, "-o", "json").stdout)
        assert sorted(each["brokerId"] for each in view["brokers"]) == ids
        assert view["silent"] == {}
        assert len({each["leaderId"] for each in view["brokers"]}) == 1
        assert sum(each["isLeading"] for each in view["brokers"]) == 1
        for each in view["brokers"]:
            assert each["session"]["isGood"]
            assert all(change["reason"] for change in each["changes"])
            assert all(0 < bundle["since"] <= time.time() * 1000 for bundle in each["bundles"])
        codes = {each["code"] for each in view["symptoms"]}
        assert not codes & {"BUNDLE_OF_TWO", "BROKER_SILENT"}
        text = doctor(asked).stdout
        assert all(f"  {each}  " in text for each in ids)
        assert f"gained {NAMESPACE}/" in text


def test_the_console_of_each_shows_both(brokers: list[OurBroker]) -> None:
    with chromium() as browser:
        for asked in brokers:
            context = browser.new_context()
            page = context.new_page()
            page.set_default_timeout(WAIT_SECONDS * 1000)
            wrong: list[str] = []
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
            page.goto(f"{asked.web_service_url}/console/#/cluster")
            page.wait_for_selector(f"main a.name >> text={other_id(brokers, asked)}")
            table, owners, changes, _ = page.locator("main section.card").all_inner_texts()
            assert all(id_of(each) in table for each in brokers)
            assert table.count("leader") == 1
            assert all(name in owners for name in every_bundle(brokers))
            assert NAMESPACE in changes
            assert not wrong
            context.close()


def other_id(brokers: list[OurBroker], broker: OurBroker) -> str:
    return next(id_of(each) for each in brokers if each is not broker)


def every_bundle(brokers: list[OurBroker]) -> list[str]:
    return [name for each in brokers for name in own_bundles(each) if name.startswith(NAMESPACE)]


def test_the_doctor_names_a_broker_that_is_dead(brokers: list[OurBroker]) -> None:
    """The last test of these brokers."""
    one, two = brokers
    two.kill()
    told = doctor(one, "-o", "json")
    assert told.returncode == 1
    view: Any = json.loads(told.stdout)
    assert [*view["silent"]] == [id_of(two)]
    assert any(each["code"] == "BROKER_SILENT" for each in view["symptoms"])
