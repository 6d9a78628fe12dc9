"""When clients move between clusters: the decider step by step, the providers in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pulsar_py.client.brokers.cluster_failover import (
    AutoClusterFailover,
    ControlledClusterFailover,
    FailoverDecider,
    ServiceInfo,
    parse_document,
)
from pulsar_py.client.security.authentication import (
    Authentication,
    AuthenticationToken,
    NoAuthentication,
)
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from tests.http_server import Answer, HttpServer

# --- the decider -------------------------------------------------------------------------------


def probe(decider: FailoverDecider, now: float, **clusters: bool) -> tuple[int, ...]:
    """Tell what was probed (`c0=True`), and get where to go."""
    for name, is_available in clusters.items():
        decider.on_probe(int(name[1:]), is_available=is_available, now=now)
    return decider.candidates(now)


def test_it_stays_while_the_primary_answers() -> None:
    decider = FailoverDecider(3)

    assert decider.watched == (0,)
    assert probe(decider, 0, c0=True) == ()


def test_a_failure_leads_to_the_others_by_preference() -> None:
    assert probe(FailoverDecider(3), 0, c0=False) == (1, 2)


def test_failures_count_only_in_a_row() -> None:
    decider = FailoverDecider(2, failover_threshold=2)

    assert probe(decider, 0, c0=False) == ()
    assert probe(decider, 1, c0=True) == ()
    assert probe(decider, 2, c0=False) == ()
    assert probe(decider, 3, c0=False) == (1,)


def test_failures_have_to_last() -> None:
    decider = FailoverDecider(2, failover_delay_seconds=10)

    assert probe(decider, 5, c0=False) == ()
    assert probe(decider, 14, c0=False) == ()
    assert probe(decider, 15, c0=False) == (1,)


def test_it_goes_back_when_the_primary_has_been_there_for_long_enough() -> None:
    decider = FailoverDecider(2, switch_back_threshold=2, switch_back_delay_seconds=10)
    decider.switched(1)

    assert decider.watched == (1, 0)
    assert probe(decider, 0, c1=True, c0=True) == ()
    assert probe(decider, 5, c1=True, c0=True) == ()
    assert probe(decider, 10, c1=True, c0=True) == (0,)


def test_a_secondary_that_fails_is_left_too() -> None:
    decider = FailoverDecider(3)
    decider.switched(1)

    assert probe(decider, 0, c1=False, c0=False) == (0, 2)


def test_counts_begin_anew_after_a_switch() -> None:
    decider = FailoverDecider(2, failover_threshold=2, switch_back_threshold=2)
    probe(decider, 0, c0=False)
    probe(decider, 1, c0=False)

    decider.switched(1)

    assert decider.candidates(2) == ()
    assert probe(decider, 3, c1=False, c0=True) == ()


# --- the providers -----------------------------------------------------------------------------


@dataclass
class Control:
    """What a provider sees of the client: it only writes down what is asked of it."""

    service_url: str = ""
    updates: list[tuple[str, Authentication | None, str | None]] = field(default_factory=list)

    async def update_service_url(
        self,
        service_url: str,
        *,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        self.service_url = service_url
        self.updates.append((service_url, authentication, tls_trust_certs_file_path))


@dataclass
class Context:
    """What a provider uses of a ClientContext."""

    clock: Clock = field(default_factory=VirtualClock)


class Clusters:
    """Ports that can be switched on and off."""

    def __init__(self) -> None:
        self._servers: dict[int, asyncio.AbstractServer] = {}

    async def start(self, port: int) -> None:
        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        self._servers[port] = await asyncio.start_server(serve, "localhost", port)

    def stop(self, port: int) -> None:
        self._servers.pop(port).close()


def info(port: int, **options: Any) -> ServiceInfo:
    return ServiceInfo(f"pulsar://localhost:{port}", **options)


def with_provider(
    provider: AutoClusterFailover | ControlledClusterFailover,
    work: Callable[[Control, Clusters], Awaitable[None]],
) -> None:
    async def run() -> None:
        control, clusters = Control(provider.initial_service_url()), Clusters()
        await clusters.start(1)
        await clusters.start(2)
        await provider.start(control, Context())  # type: ignore[arg-type]
        await work(control, clusters)
        await provider.close()
        assert len(asyncio.all_tasks()) == 1

    run_simulated(run())


def test_the_client_leaves_a_cluster_and_comes_back() -> None:
    provider = AutoClusterFailover(info(1), [info(3), info(2)], failover_threshold=2)

    async def work(control: Control, clusters: Clusters) -> None:
        await asyncio.sleep(21)
        assert control.updates == []
        clusters.stop(1)
        await asyncio.sleep(5.1)
        assert control.updates == []
        await asyncio.sleep(5)
        assert control.service_url == "pulsar://localhost:2"
        assert provider.current == info(2)
        await clusters.start(1)
        await asyncio.sleep(5.1)
        assert control.service_url == "pulsar://localhost:1"
        assert len(control.updates) == 2

    with_provider(provider, work)


def test_it_stays_where_it_is_if_nobody_answers() -> None:
    provider = AutoClusterFailover(info(1), [info(2)], check_interval_ms=1000)

    async def work(control: Control, clusters: Clusters) -> None:
        clusters.stop(1)
        clusters.stop(2)
        await asyncio.sleep(60)
        assert control.updates == []
        await clusters.start(2)
        await asyncio.sleep(1.1)
        assert control.service_url == "pulsar://localhost:2"

    with_provider(provider, work)


def test_one_of_several_hosts_is_enough() -> None:
    primary = ServiceInfo("pulsar://localhost:3,localhost:1")

    async def work(control: Control, clusters: Clusters) -> None:
        await asyncio.sleep(60)
        assert control.updates == []

    with_provider(AutoClusterFailover(primary, [info(2)]), work)


def test_each_cluster_has_credentials_of_its_own() -> None:
    token = AuthenticationToken("t")
    provider = AutoClusterFailover(
        info(1), [info(2, authentication=token, tls_trust_certs_file_path="ca")]
    )

    async def work(control: Control, clusters: Clusters) -> None:
        clusters.stop(1)
        await asyncio.sleep(5.1)
        assert control.updates == [("pulsar://localhost:2", token, "ca")]
        await clusters.start(1)
        await asyncio.sleep(5.1)
        assert isinstance(control.updates[1][1], NoAuthentication)

    with_provider(provider, work)


def test_the_primary_s_credentials_are_used_from_the_start() -> None:
    token = AuthenticationToken("t")

    async def work(control: Control, clusters: Clusters) -> None:
        assert control.updates == [("pulsar://localhost:1", token, None)]

    with_provider(AutoClusterFailover(info(1, authentication=token), [info(2)]), work)


@pytest.mark.parametrize(
    "option",
    [
        "check_interval_ms",
        "failover_threshold",
        "switch_back_threshold",
        "failover_delay_ms",
        "switch_back_delay_ms",
    ],
)
@pytest.mark.parametrize("value", [-1, 1.5, True, None])
def test_options_out_of_bounds_are_named(option: str, value: object) -> None:
    with pytest.raises(InvalidConfigurationError, match=f"{option}={value}"):
        AutoClusterFailover(info(1), [info(2)], **{option: value})  # type: ignore[arg-type]


def test_there_has_to_be_somewhere_to_go() -> None:
    with pytest.raises(InvalidConfigurationError, match="secondary"):
        AutoClusterFailover(info(1), [])


def test_a_service_info_has_a_url() -> None:
    assert ServiceInfo("pulsar+ssl://a").use_tls
    assert not info(1).use_tls
    with pytest.raises(InvalidConfigurationError):
        ServiceInfo("nonsense")


def test_a_document_says_where_to_be() -> None:
    async def run() -> None:
        document: dict[str, Any] = {"serviceUrl": "pulsar://localhost:1"}
        server = HttpServer(lambda _: Answer.json(document))
        async with server.running():
            provider = ControlledClusterFailover(
                "pulsar://localhost:1",
                server.url + "/where",
                url_provider_headers={"Authorization": "Bearer x"},
            )
            assert provider.initial_service_url() == "pulsar://localhost:1"
            control = Control()
            await provider.start(control, Context())  # type: ignore[arg-type]
            await asyncio.sleep(61)
            assert control.updates == []
            assert [asked.target for asked in server.asked] == ["/where"] * 3
            assert server.asked[0].headers["authorization"] == "Bearer x"
            document |= {
                "serviceUrl": "pulsar://localhost:2",
                "tlsTrustCertsFilePath": "/ca.pem",
                "authPluginClassName": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
                "authParamsString": "token:abc",
            }
            await asyncio.sleep(60)
            ((url, authentication, certificates),) = control.updates
            assert (url, certificates) == ("pulsar://localhost:2", "/ca.pem")
            assert authentication is not None
            assert await authentication.authenticate() == b"abc"
            await provider.close()

    run_simulated(run())


@pytest.mark.parametrize(
    "answer",
    [
        Answer.json({}, 500),
        Answer(200, b"nonsense"),
        Answer.json({"serviceUrl": "nonsense"}),
        Answer.json({"serviceUrl": "pulsar://a", "authPluginClassName": "what"}),
        Answer(raw=b""),
    ],
)
def test_without_a_good_document_the_client_stays(answer: Answer) -> None:
    async def run() -> None:
        server = HttpServer(lambda _: answer)
        async with server.running():
            provider = ControlledClusterFailover("pulsar://localhost:1", server.url, 1000)
            control = Control()
            await provider.start(control, Context())  # type: ignore[arg-type]
            await asyncio.sleep(2.5)
            assert control.updates == []
            good = "pulsar://localhost:2"
            server.answer = lambda _: Answer.json({"serviceUrl": good})
            await asyncio.sleep(1)
            assert control.service_url == good
            await provider.close()

    run_simulated(run())


def test_documents_are_read_with_care() -> None:
    url = {"serviceUrl": "pulsar://a:1"}
    assert parse_document(json.dumps(url | {"other": 1, "authParamsString": ""}).encode()) == url
    for wrong in (b"", b"[]", b"{}", b'{"serviceUrl": 1}', b'{"serviceUrl": "ftp://x"}'):
        with pytest.raises(InvalidConfigurationError):
            parse_document(wrong)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("nonsense", "http://x"), "service_url"),
        (("pulsar://a", "pulsar://x"), "url_provider"),
        (("pulsar://a", "http://x", 0), "check_interval_ms=0"),
    ],
)
def test_bad_options_are_named(arguments: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=problem):
        ControlledClusterFailover(*arguments)
