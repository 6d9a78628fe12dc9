"""Moves a client between clusters, by its own probes or by a document at a URL.

    provider = AutoClusterFailover(ServiceInfo("pulsar://a:6650"), [ServiceInfo("pulsar://b:6650")])
    async with Client(provider) as client: ...

`AutoClusterFailover` probes the cluster in use every `check_interval_ms`, goes to the first other
one that answers when it has failed, and back to the primary when that has come back;
`FailoverDecider` decides, and is pure. `ControlledClusterFailover` reads the service URL from a
document at a URL. Both hand their decisions to the client, whose producers and consumers then
reconnect.

Source: AutoClusterFailover and ServiceInfo in the official Python client; AutoClusterFailover and
ControlledClusterFailover in Java's (PIP-121).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.client.brokers.service_url import ServiceUrl, ServiceUrlControl, host_and_port
from pulsar_py.client.security.authentication import Authentication, NoAuthentication
from pulsar_py.client.security.authentication_plugins import authentication_from_plugin
from pulsar_py.common.errors import InvalidConfigurationError, PulsarError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.network.http_client import HttpRequest, http_request

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext

__all__ = [
    "AutoClusterFailover",
    "ControlledClusterFailover",
    "FailoverDecider",
    "ServiceInfo",
]

PRIMARY: Final = 0
PROBE_TIMEOUT_SECONDS: Final = 30.0
"""Limit of one probe, and of one request for a document."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A cluster's service URL and credentials."""

    service_url: str
    authentication: Authentication | None = None
    """None: no credentials if another cluster of the provider has some, else the client's."""
    tls_trust_certs_file_path: str | None = None
    """None: the client's."""

    def __post_init__(self) -> None:
        """Check the URL.

        Raises:
            InvalidServiceUrlError: It is not a service URL.
        """
        ServiceUrl.parse(self.service_url)

    @property
    def use_tls(self) -> bool:
        """Whether connections are encrypted."""
        return ServiceUrl.parse(self.service_url).is_tls


class FailoverDecider:
    """Chooses the cluster to use from the results of probes. Pure: `now` is in seconds.

    Clusters are known by their number; 0 is the primary, the others follow by preference.
    Invariant: `current` is one of them.
    """

    def __init__(
        self,
        clusters_count: int,
        *,
        failover_threshold: int = 1,
        switch_back_threshold: int = 1,
        failover_delay_seconds: float = 0.0,
        switch_back_delay_seconds: float = 0.0,
    ) -> None:
        self._clusters_count = clusters_count
        self._failures = _Streak(failover_threshold, failover_delay_seconds)
        self._recoveries = _Streak(switch_back_threshold, switch_back_delay_seconds)
        self.current = PRIMARY

    @property
    def watched(self) -> tuple[int, ...]:
        """The clusters to probe each time: the one in use, and the primary, which might be back."""
        return (PRIMARY,) if self.current == PRIMARY else (self.current, PRIMARY)

    def on_probe(self, cluster: int, *, is_available: bool, now: float) -> None:
        """A watched cluster answered, or did not."""
        if cluster == self.current:
            self._failures.add(is_hit=not is_available, now=now)
        elif cluster == PRIMARY:
            self._recoveries.add(is_hit=is_available, now=now)

    def candidates(self, now: float) -> tuple[int, ...]:
        """The clusters to try now, the best first; the first that answers is used. Empty: stay."""
        if self._recoveries.is_complete(now):
            return (PRIMARY,)
        if self._failures.is_complete(now):
            return tuple(each for each in range(self._clusters_count) if each != self.current)
        return ()

    def switched(self, cluster: int) -> None:
        """The client uses this one from now on."""
        assert 0 <= cluster < self._clusters_count
        self.current = cluster
        self._failures.clear()
        self._recoveries.clear()


class _Streak:
    """Equal results one after the other: complete when they are enough and old enough."""

    def __init__(self, threshold: int, delay_seconds: float) -> None:
        self._threshold = threshold
        self._delay_seconds = delay_seconds
        self._count = 0
        self._began_at = 0.0

    def add(self, *, is_hit: bool, now: float) -> None:
        if not is_hit:
            self._count = 0
            return
        if self._count == 0:
            self._began_at = now
        self._count += 1

    def is_complete(self, now: float) -> bool:
        return self._count >= self._threshold and now - self._began_at >= self._delay_seconds

    def clear(self) -> None:
        self._count = 0


class AutoClusterFailover:
    """A ServiceUrlProvider that leaves a cluster which does not answer. Owned by one client."""

    def __init__(
        self,
        primary: ServiceInfo,
        secondary: Sequence[ServiceInfo],
        check_interval_ms: int = 5000,
        failover_threshold: int = 1,
        switch_back_threshold: int = 1,
        *,
        failover_delay_ms: int = 0,
        switch_back_delay_ms: int = 0,
    ) -> None:
        """Thresholds count probes in a row; delays have to pass besides, as in Java.

        Args:
            primary: The cluster to use while it answers.
            secondary: The clusters to go to when it does not, by preference; at least one.
            check_interval_ms: How often clusters are probed.
            failover_threshold: Probes that must fail before the client leaves.
            switch_back_threshold: Probes the primary must answer before the client goes back.
            failover_delay_ms: How long the cluster must have failed.
            switch_back_delay_ms: How long the primary must have answered.

        Raises:
            InvalidConfigurationError: A number is out of bounds, or no secondary.
        """
        if not secondary:
            raise InvalidConfigurationError("secondary: expected at least one ServiceInfo")
        for name, value, minimum in (
            ("check_interval_ms", check_interval_ms, 1),
            ("failover_threshold", failover_threshold, 1),
            ("switch_back_threshold", switch_back_threshold, 1),
            ("failover_delay_ms", failover_delay_ms, 0),
            ("switch_back_delay_ms", switch_back_delay_ms, 0),
        ):
            _check(name, value, minimum)
        self._clusters = (primary, *secondary)
        self._interval_seconds = check_interval_ms / 1000
        self._decider = FailoverDecider(
            len(self._clusters),
            failover_threshold=failover_threshold,
            switch_back_threshold=switch_back_threshold,
            failover_delay_seconds=failover_delay_ms / 1000,
            switch_back_delay_seconds=switch_back_delay_ms / 1000,
        )
        self._tasks = TaskOwner("cluster failover")

    def initial_service_url(self) -> str:
        """The service URL of the primary."""
        return self._clusters[PRIMARY].service_url

    @property
    def current(self) -> ServiceInfo:
        """The cluster in use."""
        return self._clusters[self._decider.current]

    async def start(self, client: ServiceUrlControl, context: ClientContext) -> None:
        """See `ServiceUrlProvider`."""
        # The client begins with its own options: the primary's may differ.
        primary = self._clusters[PRIMARY]
        if primary.authentication is not None or primary.tls_trust_certs_file_path is not None:
            await self._use(client, primary)
        self._tasks.spawn(self._watch(client, context), "watch")

    async def close(self) -> None:
        """See `ServiceUrlProvider`."""
        await self._tasks.close()

    async def _watch(self, client: ServiceUrlControl, context: ClientContext) -> None:
        while True:
            await context.clock.sleep(self._interval_seconds)
            for cluster in self._decider.watched:
                is_available = await self._answers(cluster)
                now = context.clock.monotonic_seconds()
                self._decider.on_probe(cluster, is_available=is_available, now=now)
            for cluster in self._decider.candidates(context.clock.monotonic_seconds()):
                if await self._answers(cluster):
                    await self._switch(client, cluster)
                    break

    async def _switch(self, client: ServiceUrlControl, cluster: int) -> None:
        before, after = self.current, self._clusters[cluster]
        logger.warning(
            "cluster switched from %s to %s",
            before.service_url,
            after.service_url,
            extra={"before": before.service_url, "after": after.service_url},
        )
        self._decider.switched(cluster)
        await self._use(client, after)

    async def _use(self, client: ServiceUrlControl, cluster: ServiceInfo) -> None:
        authentication = cluster.authentication
        # None would keep the authentication of the cluster before.
        if authentication is None and any(each.authentication for each in self._clusters):
            authentication = NoAuthentication()
        await client.update_service_url(
            cluster.service_url,
            authentication=authentication,
            tls_trust_certs_file_path=cluster.tls_trust_certs_file_path,
        )

    async def _answers(self, cluster: int) -> bool:
        """Whether one of the cluster's hosts takes connections."""
        for address in ServiceUrl.parse(self._clusters[cluster].service_url).hosts:
            try:
                async with asyncio.timeout(min(PROBE_TIMEOUT_SECONDS, self._interval_seconds)):
                    _, writer = await asyncio.open_connection(*host_and_port(address))
            except OSError:  # TimeoutError is one, too
                continue
            writer.close()
            return True
        return False

    def __repr__(self) -> str:
        urls = ", ".join(each.service_url for each in self._clusters)
        return f"AutoClusterFailover({urls})"


class ControlledClusterFailover:
    """A ServiceUrlProvider that asks a URL where the client should be. Owned by one client.

    The document is JSON. Only `serviceUrl` is required: without a plugin the authentication stays
    as it is, and without a file of authorities the client's own option is used.

        {"serviceUrl": .., "tlsTrustCertsFilePath": .., "authPluginClassName": ..,
         "authParamsString": ..}
    """

    def __init__(
        self,
        default_service_url: str,
        url_provider: str,
        check_interval_ms: int = 30_000,
        *,
        url_provider_headers: Mapping[str, str] | None = None,
    ) -> None:
        """Begin at `default_service_url`, until the document says something else.

        Args:
            default_service_url: Where the client begins.
            url_provider: Where the document is: an `http` or `https` URL.
            check_interval_ms: How often it is asked for.
            url_provider_headers: HTTP headers of the request, such as credentials.

        Raises:
            InvalidConfigurationError: A URL is not valid, or the interval out of bounds.
        """
        ServiceUrl.parse(default_service_url)
        if not url_provider.startswith(("http://", "https://")):
            raise InvalidConfigurationError(
                f"url_provider={url_provider!r}: expected http:// or https://"
            )
        _check("check_interval_ms", check_interval_ms, 1)
        self._default_service_url = default_service_url
        self._request = HttpRequest(url=url_provider, headers=dict(url_provider_headers or {}))
        self._interval_seconds = check_interval_ms / 1000
        # The document that the client follows now.
        self._document: Mapping[str, Any] = {"serviceUrl": default_service_url}
        self._tasks = TaskOwner("cluster failover")

    def initial_service_url(self) -> str:
        """`default_service_url`."""
        return self._default_service_url

    async def start(self, client: ServiceUrlControl, context: ClientContext) -> None:
        """See `ServiceUrlProvider`; the first document is asked for at once."""
        self._tasks.spawn(self._watch(client, context), "watch")

    async def close(self) -> None:
        """See `ServiceUrlProvider`."""
        await self._tasks.close()

    async def _watch(self, client: ServiceUrlControl, context: ClientContext) -> None:
        while True:
            try:
                await self._check(client)
            except PulsarError as error:
                # The client stays where it is; the next document may be better.
                logger.warning(
                    "no cluster document at %s: %s",
                    self._request.url,
                    error,
                    extra={"url": self._request.url, "error": str(error)},
                )
            await context.clock.sleep(self._interval_seconds)

    async def _check(self, client: ServiceUrlControl) -> None:
        answer = await http_request(
            self._request,
            timeout_seconds=PROBE_TIMEOUT_SECONDS,
            body_limit_bytes=1024 * 1024,
        )
        if not answer.is_success:
            raise InvalidConfigurationError(f"{answer.url}: HTTP status {answer.status}")
        document = parse_document(answer.body)
        if document == self._document:
            return
        plugin = document.get("authPluginClassName")
        params = document.get("authParamsString") or ""
        await client.update_service_url(
            document["serviceUrl"],
            authentication=authentication_from_plugin(plugin, params) if plugin else None,
            tls_trust_certs_file_path=document.get("tlsTrustCertsFilePath"),
        )
        logger.warning(
            "cluster switched from %s to %s",
            self._document["serviceUrl"],
            document["serviceUrl"],
            extra={"before": self._document["serviceUrl"], "after": document["serviceUrl"]},
        )
        self._document = document

    def __repr__(self) -> str:
        return f"ControlledClusterFailover({self._request.url!r})"


def parse_document(data: bytes) -> dict[str, str]:
    """Parse the document of a ControlledClusterFailover; unknown fields are ignored.

    Raises:
        InvalidConfigurationError: It is not a JSON object, or its service URL is not valid.
    """
    try:
        value = parse_json(data)
    except ValueError as error:
        raise InvalidConfigurationError(f"cluster document: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("serviceUrl"), str):
        raise InvalidConfigurationError(
            "cluster document: expected a JSON object with a serviceUrl"
        )
    ServiceUrl.parse(value["serviceUrl"])
    names = ("serviceUrl", "tlsTrustCertsFilePath", "authPluginClassName", "authParamsString")
    return {name: value[name] for name in names if isinstance(value.get(name), str) and value[name]}


def _check(name: str, value: object, minimum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise InvalidConfigurationError(
            f"{name}={value!r}: expected a whole number of at least {minimum}"
        )
