"""Parses service URLs such as `pulsar://a:6650,b:6650`, and chooses among their hosts.

`ServiceUrl` is a parsed value, `BrokerAddress` the result of a lookup. `ServiceUrlHosts` stays with
one host until it fails, then takes the next. A `ServiceUrlProvider` watches clusters and switches
the client between them at run time.

Source: ServiceURI, PulsarServiceNameResolver and ServiceUrlProvider in Pulsar's client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from pulsar_py.common.errors import InvalidServiceUrlError

if TYPE_CHECKING:
    from pulsar_py.client.security.authentication import Authentication

__all__ = [
    "BrokerAddress",
    "ServiceUrl",
    "ServiceUrlControl",
    "ServiceUrlHosts",
    "ServiceUrlProvider",
]

DEFAULT_PORTS: Final = {"pulsar": 6650, "pulsar+ssl": 6651, "http": 80, "https": 443}
"""Schemes that can be asked for topics, with the ports they have if the URL names none."""

# A name, or an IPv6 address in brackets, maybe with its zone; then a port; then a query or
# fragment, which is ignored. The ASCII characters of a name are letters, digits and `-._`; others
# are left to the resolver. It is matched with the text as given: urlsplit drops tabs and newlines.
_HOST: Final = re.compile(
    r"(?:\[[\w:.%~-]+\]|[^\x00-,/:-@\[-^`{-\x9f\s]+)(?::[^\s?#]*)?(?:[?#].*)?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where the broker of a topic is; the result of a lookup."""

    logical: str
    """The broker's `host:port`."""
    physical: str
    """The `host:port` that TCP goes to: the broker itself, or the proxy before it."""
    is_tls: bool = False
    """Whether the connection is encrypted."""

    @property
    def is_proxied(self) -> bool:
        """Whether the broker is reached through the service URL (`proxy_through_service_url`)."""
        return self.logical != self.physical


@dataclass(frozen=True, slots=True)
class ServiceUrl:
    """The address of a cluster: a scheme and at least one host."""

    scheme: str
    """A key of `DEFAULT_PORTS`."""
    hosts: tuple[str, ...]
    """Each `host:port`; an IPv6 address stands in brackets."""

    @classmethod
    def parse(cls, text: str) -> ServiceUrl:
        """Read a URL; several hosts are separated by commas.

        Raises:
            InvalidServiceUrlError: Scheme, host or port is not valid; the message says which.
        """
        scheme, separator, rest = text.partition("://")
        scheme = scheme.lower()
        if not separator or scheme not in DEFAULT_PORTS:
            raise InvalidServiceUrlError(
                f"service_url={text!r}: expected one of {', '.join(DEFAULT_PORTS)} and ://"
            )
        hosts = rest.partition("/")[0].replace(";", ",").split(",")
        return cls(
            scheme, tuple(_host(text, each.strip(), DEFAULT_PORTS[scheme]) for each in hosts)
        )

    @property
    def is_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.scheme in {"pulsar+ssl", "https"}

    @property
    def is_http(self) -> bool:
        """Whether topics are looked up over HTTP."""
        return self.scheme in {"http", "https"}

    def __str__(self) -> str:
        return f"{self.scheme}://{','.join(self.hosts)}"


def _host(url: str, text: str, default_port: int) -> str:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidServiceUrlError(f"service_url={url!r}: {text!r}: {error}") from None
    if not host or _HOST.fullmatch(text) is None or parts.username is not None or port == 0:
        raise InvalidServiceUrlError(f"service_url={url!r}: {text!r}: expected host:port")
    return f"{f'[{host}]' if ':' in host else host}:{port or default_port}"


def host_and_port(address: str) -> tuple[str, int]:
    """`host:port` as a socket wants it, without brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


class ServiceUrlHosts:
    """Chooses a host of the service URL (pure); the first one is random.

    Invariant: `_index` is below the count of hosts.
    """

    __slots__ = ("_index", "_url")

    def __init__(self, url: ServiceUrl, chance: Random) -> None:
        self._url = url
        self._index = int(chance.random() * len(url.hosts))

    @property
    def url(self) -> ServiceUrl:
        """The whole URL."""
        return self._url

    @property
    def current(self) -> str:
        """The host to use, `host:port`."""
        return self._url.hosts[self._index]

    def on_failure(self, host: str) -> None:
        """That host does not answer, or serves nothing: the next one has its turn.

        News of a host that is not the current one is old, and changes nothing.
        """
        if host == self.current:
            self._index = (self._index + 1) % len(self._url.hosts)

    def replace(self, url: ServiceUrl, chance: Random) -> None:
        """Go on with another URL."""
        self._url = url
        self._index = int(chance.random() * len(url.hosts))


class ServiceUrlControl(Protocol):
    """The calls that a ServiceUrlProvider may make to its client."""

    @property
    def service_url(self) -> str:
        """The service URL that the client uses now."""

    async def update_service_url(
        self,
        service_url: str,
        *,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        """Close all connections; producers and consumers come back at the new URL."""


class ServiceUrlProvider(Protocol):
    """Chooses the cluster that a client uses, also later: hand it to `Client` as its URL."""

    def initial_service_url(self) -> str:
        """The service URL that the client begins with."""

    async def start(self, client: ServiceUrlControl, context: Any) -> None:  # Any: see docstring
        """The client works now: begin to watch. `context` is its ClientContext (clock, tasks)."""

    async def close(self) -> None:
        """The client closes; end what `start` began."""
