"""Administration of one cluster of both kinds: each broker is asked for what the other one serves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Final

import pytest

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.mixed_cluster import (
    SETTINGS,
    Broker,
    Mixed,
    advertised,
    ask_on,
    lookup,
    until,
)
from tests.cluster.our_broker import OurBroker

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(900)]

NAMESPACE: Final = "public/administered"
TOPICS: Final = 8


@pytest.fixture(scope="module", params=["ours-leads", "apache-leads"])
def mixed(
    request: pytest.FixtureRequest,
    bookkeeper: BookKeeperCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mixed]:
    """Whoever is started first leads; each has half of the namespace's bundles."""
    directory = tmp_path_factory.mktemp(f"{request.param}-administered")
    url = f"{bookkeeper.zookeeper.url}/{directory.name}"
    settings = {**SETTINGS, "forceDeleteNamespaceAllowed": "true"}
    ours = OurBroker(
        directory / "ours", url, settings={**settings, "advertisedAddress": "localhost"}
    )
    apache = ApacheBroker(
        directory / "apache",
        url,
        settings={**settings, "bookkeeperMetadataServiceUri": ours._bookkeeper_uri},
    )
    brokers: list[Broker] = [ours, apache]
    if request.param == "apache-leads":
        brokers.reverse()
    try:
        ours.initialize_cluster()
        for broker in brokers:
            broker.start()
        made = Mixed(brokers)
        spread(made, NAMESPACE)
        yield made
    finally:
        for broker in brokers:
            broker.kill()


def spread(mixed: Mixed, namespace: str) -> None:
    """Make a namespace of which each broker serves two bundles."""
    first = mixed.brokers[0]
    ask_on(first, "PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 4}})
    for number in range(TOPICS):
        ask_on(first, "PUT", f"persistent/{namespace}/t{number}")
    boundaries = ask_on(first, "GET", f"namespaces/{namespace}/bundles")["boundaries"]
    for number, (low, high) in enumerate(pairwise(boundaries)):
        to = mixed.brokers[number % 2]
        bundle = f"{low}_{high}"
        names = [name for name in topics() if bundle_of(mixed, namespace, name) == bundle]
        assert names, "a bundle without topics"
        assert until(partial(is_brought, mixed, namespace, bundle, names[0], to), wanted=True)


def topics() -> list[str]:
    return [f"t{number}" for number in range(TOPICS)]


def bundle_of(mixed: Mixed, namespace: str, name: str) -> str:
    import urllib.request  # noqa: PLC0415 - this answer is no JSON

    base = mixed.brokers[0].web_service_url
    url = f"{base}/lookup/v2/topic/persistent/{namespace}/{name}/bundle"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def is_brought(mixed: Mixed, namespace: str, bundle: str, name: str, to: Broker) -> bool:
    """Whether a broker has the bundle; it is asked for once more."""
    if owner(mixed, namespace, name) == to:
        return True
    broker_id = advertised(to, to.web_service_url).removeprefix("http://")
    path = f"namespaces/{namespace}/{bundle}/unload?destinationBroker={broker_id}"
    ask_on(mixed.brokers[0], "PUT", path)
    return False


def owner(mixed: Mixed, namespace: str, name: str) -> Broker:
    """Who serves a topic, as both say."""
    topic = f"persistent/{namespace}/{name}"
    (found,) = {lookup(broker.web_service_url, topic) for broker in mixed.brokers}
    return next(b for b in mixed.brokers if advertised(b, b.service_url) == found)


def is_served(mixed: Mixed, name: str) -> bool:
    return owner(mixed, NAMESPACE, name) in mixed.brokers


def other(mixed: Mixed, broker: Broker) -> Broker:
    return next(each for each in mixed.brokers if each is not broker)


def of_each(mixed: Mixed) -> list[tuple[Broker, str]]:
    """For each broker a topic that it serves."""
    found = {id(owner(mixed, NAMESPACE, name)): name for name in topics()[2:]}
    return [(broker, found[id(broker)]) for broker in mixed.brokers]


def at_once(*calls: Callable[[], Any]) -> None:
    """Make calls at the same time; returns when all have been answered well."""
    errors: list[Exception] = []

    def run(call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_topic_grows_at_one_while_the_other_serves_partitions(mixed: Mixed) -> None:
    path = f"persistent/{NAMESPACE}/parts"
    one, two = mixed.brokers
    ask_on(one, "PUT", f"{path}/partitions", 2)
    ask_on(two, "PUT", f"{path}/subscription/sub", {"ledgerId": -1, "entryId": -1})
    for asked, count in ((one, 8), (two, 12), (one, 16), (two, 20)):
        ask_on(asked, "POST", f"{path}/partitions", count)
        for broker in mixed.brokers:
            found = partial(ask_on, broker, "GET", f"{path}/partitions")
            assert until(lambda found=found: found()["partitions"], count)
            for number in range(count):
                of_one = f"{path}-partition-{number}/subscriptions"
                assert until(partial(ask_on, broker, "GET", of_one), ["sub"]), number
    owners = {id(owner(mixed, NAMESPACE, f"parts-partition-{number}")) for number in range(20)}
    assert len(owners) == 2
    ask_on(two, "DELETE", f"{path}/partitions")
    for broker in mixed.brokers:
        listed = ask_on(broker, "GET", f"persistent/{NAMESPACE}")
        assert not [name for name in listed if "parts" in name]


def test_topics_of_the_other_are_deleted(mixed: Mixed) -> None:
    client = mixed.client()
    try:
        for broker, name in of_each(mixed):
            producer = client.create_producer(f"persistent://{NAMESPACE}/{name}")
            path = f"persistent/{NAMESPACE}/{name}"
            with pytest.raises(OSError, match="412"):
                ask_on(other(mixed, broker), "DELETE", path)
            producer.close()
            ask_on(other(mixed, broker), "DELETE", path)
            for each in mixed.brokers:
                listed = partial(ask_on, each, "GET", f"persistent/{NAMESPACE}")
                assert f"persistent://{NAMESPACE}/{name}" not in listed()
            ask_on(broker, "PUT", path)
    finally:
        client.close()


def test_schemas_registered_at_both_at_once_are_the_same(mixed: Mixed) -> None:
    path = f"schemas/{NAMESPACE}/typed"
    bodies = [
        {"type": "AVRO", "schema": json.dumps(record(count)), "properties": {}}
        for count in range(1, 5)
    ]
    at_once(
        *(
            partial(ask_on, broker, "POST", f"{path}/schema", body)
            for body in bodies
            for broker in mixed.brokers
        )
    )
    found = [ask_on(broker, "GET", f"{path}/schemas") for broker in mixed.brokers]
    for each in found:
        versions = [(one["version"], one["data"]) for one in each["getSchemaResponses"]]
        assert [version for version, _ in versions] == [0, 1, 2, 3]
        assert len({data for _, data in versions}) == 4


def record(fields_count: int) -> dict[str, Any]:
    fields = [
        {"name": f"f{number}", "type": ["null", "string"], "default": None}
        for number in range(fields_count)
    ]
    return {"type": "record", "name": "Row", "fields": fields}


def test_bundles_are_split_by_the_other_and_moved_to_no_stranger(mixed: Mixed) -> None:
    for broker, name in of_each(mixed):
        bundle = bundle_of(mixed, NAMESPACE, name)
        path = f"namespaces/{NAMESPACE}/{bundle}"
        for asked in mixed.brokers:
            with pytest.raises(OSError, match="409"):
                ask_on(asked, "PUT", f"{path}/unload?destinationBroker=nowhere:1")
        ask_on(other(mixed, broker), "PUT", f"{path}/split?unload=true")
        for asked in mixed.brokers:
            assert until(partial(has_bundle, asked, bundle), wanted=False)
    for name in topics():
        assert until(partial(is_served, mixed, name), wanted=True)


def has_bundle(broker: Broker, bundle: str) -> bool:
    boundaries = ask_on(broker, "GET", f"namespaces/{NAMESPACE}/bundles")["boundaries"]
    return bundle in [f"{low}_{high}" for low, high in pairwise(boundaries)]


def test_namespaces_that_both_serve_are_deleted_by_force(mixed: Mixed) -> None:
    for number, asked in enumerate(mixed.brokers):
        namespace = f"public/doomed-{number}"
        spread(mixed, namespace)
        ask_on(asked, "POST", f"persistent/{namespace}/t0/maxConsumers", 3)
        with pytest.raises(OSError, match="409"):
            ask_on(asked, "DELETE", f"namespaces/{namespace}")
        ask_on(asked, "DELETE", f"namespaces/{namespace}?force=true")
        for broker in mixed.brokers:
            listed = partial(ask_on, broker, "GET", "namespaces/public")
            assert until(lambda listed=listed, ns=namespace: ns in listed(), wanted=False)
