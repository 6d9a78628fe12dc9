"""A broker of ours and one of Apache Pulsar's in one cluster with tokens, and TLS alone.

Neither has a port in clear text. What one kind asks of the other, as a REST client or as one of the
binary protocol, goes over TLS and proves the asking broker's own role.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import jwt
import pulsar
import pytest

from tests.certificates import Authority
from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.mixed_cluster import MAX_REDIRECTS, until
from tests.cluster.mixed_cluster import SETTINGS as MIXED
from tests.cluster.our_broker import PULSAR_PY, OurBroker

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(900)]

NAMESPACE: Final = "public/secured"
PARTITIONS: Final = 8
BUNDLES: Final = 4
MESSAGES: Final = 200
MOVE_SECONDS: Final = 60.0
SECRET: Final = b"a secret of brokers and clients, thirty-two bytes and more"


def token(role: str) -> str:
    return jwt.encode({"sub": role}, SECRET, "HS256")


class OurSecureBroker(OurBroker):
    """Ours, with the ports of its settings alone."""

    @property
    def service_url(self) -> str:
        return f"pulsar+ssl://127.0.0.1:{self.port}"

    @property
    def web_service_url(self) -> str:
        return f"https://127.0.0.1:{self.web_port}"

    def command(self) -> list[str]:
        self.configure_with(ports(self.port, self.web_port))
        return [PULSAR_PY, "broker", "--config", str(self.configure()), "--host", "127.0.0.1"]


class ApacheSecureBroker(ApacheBroker):
    """Apache Pulsar's, likewise."""

    context: ssl.SSLContext

    @property
    def service_url(self) -> str:
        return f"pulsar+ssl://127.0.0.1:{self._port}"

    @property
    def web_service_url(self) -> str:
        return f"https://127.0.0.1:{self._web_port}"

    def _configure(self) -> Path:
        self._settings |= ports(self._port, self._web_port)
        return super()._configure()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return ask(self.context, self, method, path, body)


Broker = OurSecureBroker | ApacheSecureBroker


def ports(binary: int, web: int) -> dict[str, object]:
    return {
        "brokerServicePort": "", "webServicePort": "",
        "brokerServicePortTls": binary, "webServicePortTls": web,
    }  # fmt: skip


def ask(
    context: ssl.SSLContext,
    broker: Broker,
    method: str,
    path: str,
    body: object = None,
    *,
    role: str | None = "admin",
) -> Any:  # Any: JSON
    """What administration answers, redirects followed for all methods.

    Raises:
        urllib.error.HTTPError: It refuses.
        OSError: Nobody answers.
    """
    url = f"{broker.web_service_url}/{path if '/v2/' in path else 'admin/v2/' + path}"
    headers = {"Content-Type": "application/json"}
    if role is not None:
        headers["Authorization"] = f"Bearer {token(role)}"
    data = None if body is None else json.dumps(body).encode()
    for _ in range(MAX_REDIRECTS):
        request = urllib.request.Request(url, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60, context=context) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.TEMPORARY_REDIRECT:
                error.msg = f"{method} {url}: {error.read()[:500]!r}"
                raise
            url = error.headers["Location"]
            assert url.startswith("https://"), url
        else:
            return json.loads(content) if content else None
    raise OSError(f"{method} {path}: {MAX_REDIRECTS} redirects, the last one to {url}")


class SecureMixed:
    """Both brokers, in the order in which they were started."""

    def __init__(self, brokers: list[Broker], authority: Authority) -> None:
        self.brokers = brokers
        self.context = ssl.create_default_context(cafile=authority.path)
        self._trusted = authority.path

    def ask(self, broker: Broker, method: str, path: str, body: object = None) -> Any:
        return ask(self.context, broker, method, path, body)

    def client(
        self, role: str | None, *brokers: Broker, trusts: bool = True
    ) -> Any:  # Any: the official client has no types
        hosts = (each.service_url.removeprefix("pulsar+ssl://") for each in brokers or self.brokers)
        return pulsar.Client(
            f"pulsar+ssl://{','.join(hosts)}",
            authentication=None if role is None else pulsar.AuthenticationToken(token(role)),
            tls_trust_certs_file_path=self._trusted if trusts else None,
            tls_validate_hostname=True,
            operation_timeout_seconds=30 if trusts and role else 5,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )

    def owner(self, topic: str) -> str:
        """Where the broker that was started first says that a topic is."""
        found = self.ask(self.brokers[0], "GET", f"lookup/v2/topic/{topic}")
        assert found.get("brokerUrl") is None, "nobody has a port in clear text"
        return str(found.get("brokerUrlTls") or found["brokerUrlSsl"])

    def bring(self, local_name: str, to: Broker) -> None:
        """Have the bundle of a topic at a broker."""
        topic = f"persistent/{NAMESPACE}/{local_name}"
        bundle = bundle_of(self, local_name)
        broker_id = to.web_service_url.removeprefix("https://")
        path = f"namespaces/{NAMESPACE}/{bundle}/unload?destinationBroker={broker_id}"
        deadline = time.monotonic() + MOVE_SECONDS
        while True:
            with suppress(OSError):
                if self.owner(topic) == to.service_url:
                    return
                self.ask(self.brokers[0], "PUT", path)
            assert time.monotonic() < deadline, f"{bundle} is not moved to {broker_id}"
            time.sleep(0.3)


def bundle_of(mixed: SecureMixed, local_name: str) -> str:
    path = f"lookup/v2/topic/persistent/{NAMESPACE}/{local_name}/bundle"
    url = f"{mixed.brokers[0].web_service_url}/{path}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token('admin')}"})
    with urllib.request.urlopen(request, timeout=30, context=mixed.context) as answer:
        return str(answer.read().decode())


@pytest.fixture(scope="module", params=["ours-leads", "apache-leads"])
def mixed(
    request: pytest.FixtureRequest,
    bookkeeper: BookKeeperCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SecureMixed]:
    """Whoever is started first leads."""
    directory = tmp_path_factory.mktemp(f"secured-{request.param}")
    url = f"{bookkeeper.zookeeper.url}/{directory.name}"
    authority = Authority(directory)
    certificate, key = authority.issue("broker")
    secret = directory / "secret.key"
    secret.write_bytes(SECRET)
    settings = {
        **MIXED,
        "advertisedAddress": "127.0.0.1",
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        "tlsTrustCertsFilePath": authority.path,
        "authenticationEnabled": "true",
        "authenticationProviders": (
            "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
        ),
        "tokenSecretKey": secret.as_uri(),
        "authorizationEnabled": "true",
        "superUserRoles": "admin,broker-of-ours,broker-of-apache",
        "brokerClientTlsEnabled": "true",
        "brokerClientTrustCertsFilePath": authority.path,
        "tlsHostnameVerificationEnabled": "true",
        "brokerClientAuthenticationPlugin": (
            "org.apache.pulsar.client.impl.auth.AuthenticationToken"
        ),
    }
    ours = OurSecureBroker(
        directory / "ours",
        url,
        settings=settings
        | {"brokerClientAuthenticationParameters": f"token:{token('broker-of-ours')}"},
    )
    apache = ApacheSecureBroker(
        directory / "apache",
        url,
        settings=settings
        | {
            "bookkeeperMetadataServiceUri": ours._bookkeeper_uri,
            "brokerClientAuthenticationParameters": f"token:{token('broker-of-apache')}",
        },
    )
    brokers: list[Broker] = [ours, apache]
    if request.param == "apache-leads":
        brokers.reverse()
    made = SecureMixed(brokers, authority)
    apache.context = made.context
    try:
        ours.initialize_cluster()
        for broker in brokers:
            broker.start()
        first, second = brokers
        made.ask(first, "PUT", f"namespaces/{NAMESPACE}", {"bundles": {"numBundles": BUNDLES}})
        made.ask(second, "POST", f"namespaces/{NAMESPACE}/permissions/app", ["produce", "consume"])
        made.ask(first, "PUT", f"persistent/{NAMESPACE}/parts/partitions", PARTITIONS)
        yield made
    finally:
        for broker in brokers:
            broker.kill()


def test_messages_and_statistics_of_partitions_at_both(mixed: SecureMixed) -> None:
    bundles: dict[str, str] = {}
    for number in range(PARTITIONS):
        name = f"parts-partition-{number}"
        bundles.setdefault(bundle_of(mixed, name), name)
    assert len(bundles) > 1
    topic = f"persistent://{NAMESPACE}/parts"
    with closing(mixed.client("app")) as client:
        consumer = client.subscribe(topic, "sub")
        for turn in range(2):
            for number, name in enumerate(bundles.values()):
                mixed.bring(name, mixed.brokers[(number + turn) % 2])
            producer = client.create_producer(
                topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution
            )
            for number in range(MESSAGES):
                producer.send(b"%d" % number)
            producer.close()
            found = []
            for _ in range(MESSAGES):
                message = consumer.receive(30_000)
                consumer.acknowledge(message)
                found.append(int(message.data()))
            assert sorted(found) == [*range(MESSAGES)]
            for asked in mixed.brokers:
                told = partial(_messages_count, mixed, asked)
                assert until(told, MESSAGES), f"asked {asked.web_service_url}: {told()}"


def _messages_count(mixed: SecureMixed, asked: Broker) -> int:
    """Of all partitions since they were opened, as a broker says that has some of them."""
    path = f"persistent/{NAMESPACE}/parts/partitioned-stats?perPartition=true"
    found = mixed.ask(asked, "GET", path)
    assert len(found["partitions"]) == PARTITIONS
    return int(found["msgInCounter"])


def test_policies_of_topics_wherever_their_events_are(mixed: SecureMixed) -> None:
    for number, events_at in enumerate(mixed.brokers):
        mixed.bring("__change_events", events_at)
        name = f"limited-{number}"
        path = f"persistent/{NAMESPACE}/{name}"
        mixed.ask(mixed.brokers[1 - number], "PUT", path)
        mixed.bring(name, mixed.brokers[1 - number])
        for limit, asked in enumerate(mixed.brokers, start=1):
            mixed.ask(asked, "POST", f"{path}/maxConsumers", limit)
            for broker in mixed.brokers:
                told = partial(mixed.ask, broker, "GET", f"{path}/maxConsumers")
                assert until(told, limit), broker.web_service_url


def test_namespaces_as_a_whole_are_unloaded_by_either(mixed: SecureMixed) -> None:
    """The asked broker has the other one unload what that one has."""
    with closing(mixed.client("app")) as client:
        for asked in mixed.brokers:
            mixed.ask(asked, "PUT", f"namespaces/{NAMESPACE}/unload")
            producer = client.create_producer(f"persistent://{NAMESPACE}/parts")
            producer.send(b"after it")
            producer.close()


def test_who_proves_nothing_or_is_not_allowed_is_refused_by_both(mixed: SecureMixed) -> None:
    topic = f"persistent://{NAMESPACE}/parts"
    for broker in mixed.brokers:
        for role, kinds, status in (
            # The official client tries a connection again that was refused, for as long as it may.
            (None, (pulsar.AuthenticationError, pulsar.Timeout), HTTPStatus.UNAUTHORIZED),
            ("stranger", (pulsar.AuthorizationError,), HTTPStatus.FORBIDDEN),
        ):
            with closing(mixed.client(role, broker)) as client, pytest.raises(kinds):
                client.create_producer(topic)
            with pytest.raises(urllib.error.HTTPError) as refused:
                ask(mixed.context, broker, "GET", f"namespaces/{NAMESPACE}", role=role)
            assert refused.value.code == status, broker.web_service_url
        with (
            closing(mixed.client("app", broker, trusts=False)) as client,
            pytest.raises(pulsar.PulsarException),
        ):
            client.create_producer(topic)


def test_bundles_know_both_kinds(mixed: SecureMixed) -> None:
    """Each tells what it has itself."""
    edges = mixed.ask(mixed.brokers[0], "GET", f"namespaces/{NAMESPACE}/bundles")["boundaries"]
    assert len([*pairwise(edges)]) == BUNDLES
    ids = {each.web_service_url.removeprefix("https://") for each in mixed.brokers}
    for broker in mixed.brokers:
        assert set(mixed.ask(broker, "GET", "brokers/standalone")) == ids
