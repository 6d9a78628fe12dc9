"""Settings of proxies in front of a broker: which are trusted, and how they name their clients.

Source: haProxyProtocolEnabled and others of ServiceConfiguration in Pulsar.
"""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.server.settings.declaring import Settings, setting

PROXIES: Final = "Proxies"


class ProxySettings(Settings):
    """Which proxies are trusted to name the addresses of their clients."""

    haProxyProtocolEnabled: bool = setting(
        default=False,
        category=PROXIES,
        doc="Whether connections of the binary protocol may begin with a header of the PROXY "
        "protocol (version 1 or 2), which names the client's address.",
    )
    webServiceHaProxyProtocolEnabled: bool = setting(
        default=False,
        category=PROXIES,
        doc="The same for connections of HTTP.",
    )
    webServiceTrustXForwardedFor: bool = setting(
        default=False,
        category=PROXIES,
        doc="Whether the header `X-Forwarded-For` of an HTTP request names the client's address.",
    )
    trustedProxyAddresses: frozenset[str] = setting(
        default=frozenset(),
        category=PROXIES,
        doc="The proxies of the three settings above: addresses, and networks as `10.0.0.0/8`. "
        "From others a header counts for nothing. Apache Pulsar has no such list and believes "
        "everybody; here a broker with one of the three does not start without it.",
    )
