"""Results of lookups: the addresses of brokers, by advertised listener (values).

The module also parses `advertisedListeners`; `NamespaceService` finds the owner of a topic.

Source: LookupResult, MultipleListenerValidator in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from pulsar_py.common.errors import ConfigurationError, UnknownListenerError
from pulsar_py.common.network.hosts import is_loopback

_CLEAR_TEXT_SCHEMES: Final = frozenset({"pulsar", "http"})


class LookupType(Enum):
    """The client's next step after a lookup."""

    CONNECT = "connect"
    REDIRECT = "redirect"


class BrokerAddresses(Struct, frozen=True, kw_only=True):
    """Addresses of a broker; None where it does not listen."""

    broker_url: str | None
    broker_url_tls: str | None = None
    http_url: str | None = None
    http_url_tls: str | None = None


class LookupResult(Struct, frozen=True, kw_only=True):
    """A LOOKUP_RESPONSE, or the REST lookup's answer."""

    type: LookupType
    addresses: BrokerAddresses
    is_authoritative: bool
    proxy_through_service_url: bool


class LocalAddresses(Struct, frozen=True, kw_only=True):
    """The broker's own addresses, set when its listeners are bound, and those by listener name.

    `is_loopback`: other hosts can't reach the addresses, so lookups tell clients to go on using
    their service URL (which may be a port forwarded from a container, for example).
    `bound_urls`: the ports that are open, by the address that each is bound to, whatever clients
    are told.
    """

    default: BrokerAddresses
    by_listener: Mapping[str, BrokerAddresses] = field(default_factory=dict)
    is_loopback: bool = False
    bound_urls: tuple[str, ...] = ()

    @property
    def outside_urls(self) -> list[str]:
        """Open ports that other machines can connect with."""
        return [url for url in self.bound_urls if not is_loopback(urlsplit(url).hostname or "")]

    @property
    def outside_clear_text_urls(self) -> list[str]:
        """Those of them without TLS: whoever is on the way reads credentials and messages."""
        return [url for url in self.outside_urls if urlsplit(url).scheme in _CLEAR_TEXT_SCHEMES]


def select_listener(addresses: LocalAddresses, listener_name: str | None) -> BrokerAddresses:
    """The addresses under a listener's name; the default ones without a name.

    A listener that has no address of the HTTP service has the broker's own: whoever looks up by
    HTTP is sent on by it.

    Raises:
        UnknownListenerError: The broker has no such listener.
    """
    if not listener_name:
        return addresses.default
    found = addresses.by_listener.get(listener_name)
    if found is None:
        known = ", ".join(sorted(addresses.by_listener)) or "none"
        raise UnknownListenerError(
            f"the broker do not have {listener_name} listener: its advertisedListeners are {known}"
        )
    return with_http_of(addresses.default, found)


def with_http_of(own: BrokerAddresses, listener: BrokerAddresses) -> BrokerAddresses:
    """A listener's addresses, with the broker's own of HTTP where the listener has none."""
    if listener.http_url is not None or listener.http_url_tls is not None:
        return listener
    return replace(listener, http_url=own.http_url, http_url_tls=own.http_url_tls)


_SCHEMES = {
    "pulsar": "broker_url",
    "pulsar+ssl": "broker_url_tls",
    "http": "http_url",
    "https": "http_url_tls",
}


def parse_advertised_listeners(text: str) -> dict[str, BrokerAddresses]:
    """Read `name:pulsar://host:port,name:pulsar+ssl://host:port,…`.

    Raises:
        ConfigurationError: A part has no name, or an unknown scheme.
    """
    found: dict[str, BrokerAddresses] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, separator, url = part.partition(":")
        scheme = url.partition("://")[0]
        if not (name and separator and scheme in _SCHEMES):
            raise ConfigurationError(
                f"advertisedListeners={text}: {part!r} is not <name>:<scheme>://<host>:<port>"
            )
        addresses = found.get(name, BrokerAddresses(broker_url=None))
        changed: dict[str, str] = {_SCHEMES[scheme]: url}
        found[name] = replace(addresses, **changed)
    return found
