"""Makes the report with which a broker registers when it joins its cluster (pure)."""

from __future__ import annotations

from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.namespaces.lookup import LocalAddresses
from pulsar_py.server.namespaces.owner_record import encode_listeners


def broker_id_of(addresses: LocalAddresses) -> str:
    """The id of a broker: `host:port` of its HTTP service; source: PulsarService.getBrokerId."""
    url = addresses.default.http_url or addresses.default.http_url_tls or ""
    return url.partition("://")[2]


def first_report(addresses: LocalAddresses, *, start_millis: int) -> BrokerReport:
    """The report of a broker that owns nothing yet.

    Raises:
        ValueError: It has no HTTP service, so no name.
    """
    broker_id = broker_id_of(addresses)
    if not broker_id:
        raise ValueError("a broker of a cluster is named by its HTTP address: it needs a web port")
    default = addresses.default
    return BrokerReport(
        broker_id=broker_id,
        start_millis=start_millis,
        update_millis=start_millis,
        web_url=default.http_url,
        web_url_tls=default.http_url_tls,
        pulsar_url=default.broker_url,
        pulsar_url_tls=default.broker_url_tls,
        advertised_listeners=encode_listeners(addresses),
    )
