"""Two brokers of ours and one of Apache Pulsar's: who leads balances, splits and dies.

Both kinds read each other's load reports, take part in one election, and follow dynamic settings.
Policies of a topic hold wherever the topic is, and wherever the events that tell of them are.
The leader, of whichever kind, has bundles of the others split and moved; a skewed load settles
within five rounds and stays. Bundles are moved by their bytes a second (UniformLoadShedder): what
a machine's processor or network says here depends on what else it does, and by messages Apache
Pulsar always moves up to a thousand a second more than it has to, which is all that there are here.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise, product
from typing import Any, Final

import pulsar
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

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(1500)]

ROUND_SECONDS: Final = 60.0
ROUNDS: Final = 5
STAYS_SECONDS: Final = 2 * ROUND_SECONDS + 10
SKEWED, LARGE, POLICIES = "public/skewed", "public/large", "public/policies"
EVENTS: Final = "__change_events"
BUNDLES: Final = 12
KNOWN_SECONDS: Final = 75.0
"""By which a leader's means of ten reports are the rates of now: one comes each five seconds. An
Apache Pulsar that leads and still has reports of the time without traffic among them takes each
bundle for a fraction of what it is, and moves all of them."""
RATE: Final = 20
"""Messages a second of each bundle."""
SIZE_BYTES: Final = 1024
LARGE_TOPICS: Final = 30
OWN: Final = {
    **SETTINGS,
    "loadBalancerSheddingEnabled": "false",  # until the leader knows the rates
    "loadBalancerReportUpdateThresholdPercentage": 0,
    "statsUpdateFrequencyInSecs": 5,
    "loadBalancerLoadSheddingStrategy": (
        "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
    ),
    "loadBalancerMsgRateDifferenceShedderThreshold": 0,  # not by messages
    # Six bundles and three are even enough, six and none are not.
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": 2.6,
    "minUnloadMessageThroughput": 10_000,
    # An Apache Pulsar that leads sends all bundles of a round to one broker; the next but one has to
    # move some of them on.
    "loadBalancerSheddingGracePeriodMinutes": 1,
    # Else a broker of a machine that does other work, too, would get nothing.
    "loadBalancerBrokerOverloadedThresholdPercentage": 100,
    "maxUnloadPercentage": 0.5,
    "loadBalancerAutoBundleSplitEnabled": "true",
    "loadBalancerNamespaceBundleMaxTopics": LARGE_TOPICS - 10,
    "brokerDeleteInactiveTopicsEnabled": "false",
    "managedLedgerMaxEntriesPerLedger": 50_000,
}


@dataclass
class Three(Mixed):
    """The brokers, the one that leads first."""

    def broker_ids(self) -> dict[str, Broker]:
        """By the ids under which they are registered."""
        return {_id_of(each): each for each in self.brokers}

    def leaders(self, *, but: Sequence[Broker] = ()) -> set[str]:
        """Who leads, as each says that is not left out."""
        living = [each for each in self.brokers if each not in but]
        return {ask_on(each, "GET", "brokers/leaderBroker")["brokerId"] for each in living}


def _id_of(broker: Broker) -> str:
    return advertised(broker, broker.web_service_url).removeprefix("http://")


@pytest.fixture(scope="module", params=["ours-leads", "apache-leads"])
def three(
    request: pytest.FixtureRequest,
    bookkeeper: BookKeeperCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Three]:
    """Whoever is started first leads."""
    directory = tmp_path_factory.mktemp(f"{request.param}-of-three")
    url = f"{bookkeeper.zookeeper.url}/{directory.name}"
    settings = {**OWN, "advertisedAddress": "localhost"}
    one, two = (OurBroker(directory / name, url, settings=settings) for name in ("one", "two"))
    apache = ApacheBroker(
        directory / "apache",
        url,
        settings={**OWN, "bookkeeperMetadataServiceUri": one._bookkeeper_uri},
    )
    brokers: list[Broker] = [one, apache, two]
    if request.param == "apache-leads":
        brokers = [apache, one, two]
    try:
        one.initialize_cluster()
        two._is_initialized = True
        for broker in brokers:
            broker.start()
        yield Three(brokers)
    finally:
        for broker in brokers:
            broker.kill()


def test_all_know_who_is_there_and_who_leads(three: Three) -> None:
    ids = three.broker_ids()
    for broker in three.brokers:
        assert until(
            lambda broker=broker: set(ask_on(broker, "GET", "brokers/standalone")), set(ids)
        )
    assert three.leaders() == {_id_of(three.brokers[0])}


def test_dynamic_settings_reach_both_kinds(three: Three) -> None:
    for number, asked in enumerate(three.brokers):
        value = str(1000 + number)
        ask_on(asked, "POST", f"brokers/configuration/maxTopicsPerNamespace/{value}")
        for broker in three.brokers:
            in_use = lambda broker=broker: ask_on(  # noqa: E731
                broker, "GET", "brokers/configuration/runtime"
            ).get("maxTopicsPerNamespace")
            assert until(in_use, value), _id_of(broker)
    ask_on(three.brokers[0], "DELETE", "brokers/configuration/maxTopicsPerNamespace")


def test_policies_of_topics_hold_wherever_their_events_are(three: Three) -> None:
    """Any broker sets and tells them, who has the topic keeps to them, they go with the topic."""
    ask_on(three.brokers[0], "PUT", f"namespaces/{POLICIES}", {"bundles": {"numBundles": 8}})
    client = three.client()
    try:
        for number, (events_at, topic_at) in enumerate(product(three.brokers, repeat=2)):
            asked = three.brokers[number % 3]
            name = _name_beside_events(asked, number)
            _bring(three, POLICIES, EVENTS, events_at)
            _bring(three, POLICIES, name, topic_at)
            place = f"events at {_id_of(events_at)}, topic at {_id_of(topic_at)}"
            print(f"{place}, asked: {_id_of(asked)}")
            _check_policies_of_topic(three, client, asked, name)
    finally:
        client.close()


def _check_policies_of_topic(three: Three, client: Any, asked: Broker, name: str) -> None:
    topic = f"persistent://{POLICIES}/{name}"
    path = f"persistent/{POLICIES}/{name}"
    ask_on(asked, "PUT", path)
    for limit in (1, 2):
        ask_on(asked, "POST", f"{path}/maxConsumers", limit)
        for broker in three.brokers:
            told = lambda broker=broker: ask_on(broker, "GET", f"{path}/maxConsumers")  # noqa: E731
            assert until(told, limit), _id_of(broker)
        assert until(partial(_consumers_count, client, topic), limit)
    ask_on(asked, "DELETE", f"{path}?force=true")
    ask_on(asked, "PUT", path)
    for broker in three.brokers:
        told = lambda broker=broker: ask_on(broker, "GET", f"{path}/maxConsumers")  # noqa: E731
        assert until(told, None), _id_of(broker)
    assert until(partial(_consumers_count, client, topic), 4)


def _consumers_count(client: Any, topic: str) -> int:
    """How many consumers a topic takes, of four that come."""
    consumers: list[Any] = []
    try:
        with suppress(pulsar.ConsumerBusy):
            while len(consumers) < 4:
                consumers.append(client.subscribe(topic, f"sub-{len(consumers)}"))
        return len(consumers)
    finally:
        for consumer in consumers:
            consumer.close()


def _name_beside_events(broker: Broker, number: int) -> str:
    """The name of a topic that is in another bundle than the events."""
    of_events = _bundle_of(broker, POLICIES, EVENTS)
    names = (f"t{number}-{attempt}" for attempt in count())
    return next(each for each in names if _bundle_of(broker, POLICIES, each) != of_events)


def _bundle_of(broker: Broker, namespace: str, name: str) -> str:
    return _text(broker, f"../../lookup/v2/topic/persistent/{namespace}/{name}/bundle")


def test_a_large_bundle_of_any_broker_is_split(three: Three) -> None:
    """The leader has it split by the broker that owns it, and its topics are found afterwards."""
    for number, owner in enumerate(three.brokers):
        namespace = f"{LARGE}-{number}"
        ask_on(three.brokers[0], "PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": 1}})
        _move(three, namespace, "0x00000000_0xffffffff", owner)
        for topic in range(LARGE_TOPICS):
            ask_on(owner, "PUT", f"persistent/{namespace}/t{topic}")
        deadline = time.monotonic() + 4 * ROUND_SECONDS
        while len(_boundaries(three, namespace)) < 3:
            assert time.monotonic() < deadline, f"bundle of {_id_of(owner)} is not split"
            time.sleep(1)
        for broker in three.brokers:
            listed = partial(_topics_count, broker, namespace)
            assert until(listed, LARGE_TOPICS)


def test_a_skewed_load_settles_and_stays(three: Three) -> None:
    ours = next(each for each in three.brokers if isinstance(each, OurBroker))
    ask_on(three.brokers[0], "PUT", f"namespaces/{SKEWED}", {"bundles": {"numBundles": BUNDLES}})
    boundaries = _boundaries(three, SKEWED)
    topics = _one_topic_a_bundle(three, boundaries)
    for bundle in topics:
        _move(three, SKEWED, bundle, ours)
    traffic = Traffic(three, list(topics.values()))
    try:
        time.sleep(KNOWN_SECONDS)
        ask_on(three.brokers[0], "POST", "brokers/configuration/loadBalancerSheddingEnabled/true")
        begun, changed = time.monotonic(), 0.0
        owners = _owners(three, topics)
        assert set(owners.values()) == {advertised(ours, ours.service_url)}
        while True:
            time.sleep(5)
            now = _owners(three, topics)
            if now != owners:
                print(f"{time.monotonic() - begun:.0f} s: {sorted(Counter(now.values()).values())}")
                owners, changed = now, time.monotonic() - begun
            assert changed < (ROUNDS + 0.5) * ROUND_SECONDS, "it has not settled"
            quiet_seconds = time.monotonic() - begun - changed
            if changed and quiet_seconds > STAYS_SECONDS:
                break
            assert quiet_seconds < 4 * ROUND_SECONDS, "nothing was moved"
        counts = Counter(owners.values())
        assert len(counts) == len(three.brokers), counts
        assert max(counts.values()) <= 2 * min(counts.values()), counts
    finally:
        traffic.stop()
    assert not traffic.errors


def test_the_next_leader_is_of_either_kind(three: Three) -> None:
    """The last test of these brokers: one after the other is killed and comes back."""
    for _ in range(2):
        leader = next(each for each in three.brokers if _id_of(each) in three.leaders(but=()))
        leader.kill()
        others = [each for each in three.brokers if each is not leader]
        followed = lambda leader=leader, others=others: (  # noqa: E731
            len(three.leaders(but=[leader])) == 1
            and three.leaders(but=[leader]) <= {_id_of(each) for each in others}
        )
        assert until(followed, wanted=True)
        leader.start()


# --- what they do ------------------------------------------------------------------------------


def _topics_count(broker: Broker, namespace: str) -> int:
    return sum("/t" in each for each in ask_on(broker, "GET", f"persistent/{namespace}"))


def _boundaries(three: Three, namespace: str) -> list[str]:
    found: list[str] = ask_on(three.brokers[0], "GET", f"namespaces/{namespace}/bundles")[
        "boundaries"
    ]
    return found


def _move(three: Three, namespace: str, bundle: str, to: Broker) -> None:
    """Have a bundle at a broker; one that nobody has yet is taken by somebody first."""
    name = "where" if bundle == "0x00000000_0xffffffff" else _NAMES[bundle]
    _bring(three, namespace, name, to)


def _bring(three: Three, namespace: str, name: str, to: Broker) -> None:
    """Have the bundle of a topic at a broker."""
    bundle = _bundle_of(three.brokers[0], namespace, name)
    path = f"namespaces/{namespace}/{bundle}/unload?destinationBroker={_id_of(to)}"
    deadline = time.monotonic() + ROUND_SECONDS
    wanted, topic = advertised(to, to.service_url), f"persistent/{namespace}/{name}"
    while _owner(three, topic) != wanted:
        assert time.monotonic() < deadline, f"{bundle} is not moved"
        with suppress(OSError):
            ask_on(three.brokers[0], "PUT", path)
        time.sleep(0.3)


def _owner(three: Three, topic: str) -> str | None:
    with suppress(OSError):
        return lookup(three.brokers[0].web_service_url, topic)
    return None


_NAMES: dict[str, str] = {}
"""A topic of each bundle of the skewed namespace."""


def _one_topic_a_bundle(three: Three, boundaries: Sequence[str]) -> dict[str, str]:
    wanted = {f"{low}_{high}" for low, high in pairwise(boundaries)}
    _NAMES.clear()
    number = 0
    while _NAMES.keys() != wanted:
        url = f"../../lookup/v2/topic/persistent/{SKEWED}/s{number}/bundle"
        bundle = _text(three.brokers[0], url)
        _NAMES.setdefault(bundle, f"s{number}")
        number += 1
    return dict(_NAMES)


def _text(broker: Broker, path: str) -> str:
    import urllib.request  # noqa: PLC0415 - this answer is no JSON

    url = f"{broker.web_service_url}/{path.removeprefix('../../')}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def _owners(three: Three, topics: dict[str, str]) -> dict[str, str]:
    """The owner of each bundle; while one moves, asked again."""
    found = {}
    for bundle, name in topics.items():
        for _ in range(50):
            with suppress(OSError):
                found[bundle] = lookup(
                    three.brokers[0].web_service_url, f"persistent/{SKEWED}/{name}"
                )
                break
            time.sleep(0.2)
    return found


class Traffic:
    """The same number of messages a second on some topics."""

    def __init__(self, three: Three, names: Sequence[str]) -> None:
        self._client: Any = three.client()
        self._producers = [
            self._client.create_producer(
                f"persistent://{SKEWED}/{name}", block_if_queue_full=True, send_timeout_millis=0
            )
            for name in names
        ]
        self.errors: list[pulsar.Result] = []
        self._is_over = False
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        while not self._is_over:
            for producer in self._producers:
                producer.send_async(b"x" * SIZE_BYTES, self._sent)
            time.sleep(1 / RATE)

    def _sent(self, result: pulsar.Result, _: object) -> None:
        if result != pulsar.Result.Ok:
            self.errors.append(result)

    def stop(self) -> None:
        self._is_over = True
        self._thread.join(30)
        for producer in self._producers:
            producer.flush()
        self._client.close()
