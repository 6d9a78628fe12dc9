"""`BrokerReport`: a broker's addresses and load, as the other brokers read it; its stored form.

It is stored as JSON, with the keys of Apache Pulsar's brokers, whose leader balances by it. Brokers
send all lookups to those that have the load manager of the broker that started last, so its class
name has to be theirs.

Source: LocalBrokerData, NamespaceBundleStats, ResourceUsage in Pulsar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from pulsar_py.common.foreign_json import parse_json

MODULAR: Final = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
"""The load manager that our brokers take part in."""
VERSION: Final = "4.2.4"
"""The version of Pulsar whose behaviour this broker has."""
HEARTBEAT_TENANT: Final = "pulsar"
"""Has a namespace for each broker, named by its id (NamespaceService.getHeartbeatNamespace)."""
OURS: Final = "pulsar_py"
"""Among the protocols that a broker offers: it is of our kind."""
UNKNOWN_LIMIT: Final = -1000.0
"""The limit of what has none that is known."""


class ResourceUsage(Struct, frozen=True):
    """How much of a resource is in use, in the unit of its limit."""

    usage: float = 0.0
    limit: float = UNKNOWN_LIMIT

    @property
    def share(self) -> float:
        """The part that is in use, 0 to 1; 0 where no limit is known."""
        return self.usage / self.limit if self.limit > 0 else 0.0


class BundleStats(Struct, frozen=True, kw_only=True):
    """The load of one bundle; rates are a second's."""

    messages_in_rate: float = 0.0
    bytes_in_rate: float = 0.0
    messages_out_rate: float = 0.0
    bytes_out_rate: float = 0.0
    consumers_count: int = 0
    producers_count: int = 0
    topics_count: int = 0


class BrokerReport(Struct, frozen=True, kw_only=True):
    """One broker: addresses, what it serves, how busy it is."""

    broker_id: str
    """`host:port` of its HTTP service, the name of its key; not part of the value."""
    start_millis: int
    web_url: str | None = None
    web_url_tls: str | None = None
    pulsar_url: str | None = None
    pulsar_url_tls: str | None = None
    advertised_listeners: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    load_manager: str | None = MODULAR
    bundles: Mapping[str, BundleStats] = field(default_factory=dict)
    """By `tenant/namespace/range`."""
    cpu: ResourceUsage = field(default_factory=ResourceUsage)
    """In percent of a core."""
    memory: ResourceUsage = field(default_factory=ResourceUsage)
    """In MiB."""
    bandwidth_in: ResourceUsage = field(default_factory=ResourceUsage)
    """In kbit/s."""
    bandwidth_out: ResourceUsage = field(default_factory=ResourceUsage)
    """In kbit/s."""
    update_millis: int = 0
    gains: tuple[str, ...] = ()
    """Bundles that it has since the report before."""
    losses: tuple[str, ...] = ()
    """Bundles that it has no more since the report before."""
    is_ours: bool = True
    """Whether it is a broker of this program, of a version that says so."""

    @property
    def messages_rate(self) -> float:
        """Messages in and out a second."""
        stats = self.bundles.values()
        return sum(each.messages_in_rate + each.messages_out_rate for each in stats)

    @property
    def topics_count(self) -> int:
        """Loaded topics."""
        return sum(each.topics_count for each in self.bundles.values())

    def without_heartbeat(self) -> BrokerReport:
        """The report without the bundle of the broker's heartbeat namespace, which never moves."""
        prefix = f"{HEARTBEAT_TENANT}/{self.broker_id}/"
        movable = {
            name: stats for name, stats in self.bundles.items() if not name.startswith(prefix)
        }
        return replace(self, bundles=movable)

    @property
    def usage(self) -> float:
        """The share of its busiest resource that is in use, 0 to 1 or above."""
        return max(self.cpu.share, self.bandwidth_in.share, self.bandwidth_out.share)

    def encode(self) -> bytes:
        """The stored form; absent addresses are left out."""
        stats = list(self.bundles.values())
        urls = {
            "webServiceUrl": self.web_url,
            "webServiceUrlTls": self.web_url_tls,
            "pulsarServiceUrl": self.pulsar_url,
            "pulsarServiceUrlTls": self.pulsar_url_tls,
        }
        document: dict[str, object] = {
            **{key: url for key, url in urls.items() if url is not None},
            "persistentTopicsEnabled": True,
            "nonPersistentTopicsEnabled": True,
            "cpu": _encode_usage(self.cpu),
            "memory": _encode_usage(self.memory),
            "directMemory": _encode_usage(ResourceUsage(0.0, self.memory.limit)),
            "bandwidthIn": _encode_usage(self.bandwidth_in),
            "bandwidthOut": _encode_usage(self.bandwidth_out),
            "msgThroughputIn": sum(each.bytes_in_rate for each in stats),
            "msgThroughputOut": sum(each.bytes_out_rate for each in stats),
            "msgRateIn": sum(each.messages_in_rate for each in stats),
            "msgRateOut": sum(each.messages_out_rate for each in stats),
            "lastUpdate": self.update_millis,
            "lastStats": {name: _encode_stats(each) for name, each in self.bundles.items()},
            "numTopics": self.topics_count,
            "numBundles": len(stats),
            "numConsumers": sum(each.consumers_count for each in stats),
            "numProducers": sum(each.producers_count for each in stats),
            "bundles": list(self.bundles),
            "lastBundleGains": list(self.gains),
            "lastBundleLosses": list(self.losses),
            "brokerVersionString": VERSION,
            "protocols": {OURS: ""} if self.is_ours else {},
            "advertisedListeners": self.advertised_listeners,
            "loadManagerClassName": self.load_manager,
            "startTimestamp": self.start_millis,
            "maxResourceUsage": self.usage,
            "loadReportType": "LocalBrokerData",
        }
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, broker_id: str, value: bytes) -> BrokerReport:
        """Read the stored form; what is missing or has another form counts as not said.

        Raises:
            ValueError: The bytes are no JSON object.
        """
        document = parse_json(value)
        if not isinstance(document, dict):
            raise ValueError(  # noqa: TRY004 - as what can't be read at all
                f"{broker_id}: a broker's report is a JSON object"
            )
        stats = _dict(document.get("lastStats"))
        names = document.get("bundles")
        listeners = _dict(document.get("advertisedListeners"))
        return cls(
            broker_id=broker_id,
            start_millis=int(_number(document.get("startTimestamp"))),
            web_url=_text(document.get("webServiceUrl")),
            web_url_tls=_text(document.get("webServiceUrlTls")),
            pulsar_url=_text(document.get("pulsarServiceUrl")),
            pulsar_url_tls=_text(document.get("pulsarServiceUrlTls")),
            advertised_listeners={name: _dict(each) for name, each in listeners.items()},
            load_manager=_text(document.get("loadManagerClassName")),
            bundles={
                str(name): _decode_stats(stats.get(name))
                for name in (names if isinstance(names, list) else [])
            },
            cpu=_decode_usage(document.get("cpu")),
            memory=_decode_usage(document.get("memory")),
            bandwidth_in=_decode_usage(document.get("bandwidthIn")),
            bandwidth_out=_decode_usage(document.get("bandwidthOut")),
            update_millis=int(_number(document.get("lastUpdate"))),
            is_ours=OURS in _dict(document.get("protocols")),
        )


def _encode_usage(usage: ResourceUsage) -> dict[str, float]:
    return {"usage": usage.usage, "limit": usage.limit}


def _encode_stats(stats: BundleStats) -> dict[str, float]:
    return {
        "msgRateIn": stats.messages_in_rate,
        "msgThroughputIn": stats.bytes_in_rate,
        "msgRateOut": stats.messages_out_rate,
        "msgThroughputOut": stats.bytes_out_rate,
        "consumerCount": stats.consumers_count,
        "producerCount": stats.producers_count,
        "topics": stats.topics_count,
        "cacheSize": 0,
    }


def _decode_usage(value: object) -> ResourceUsage:
    found = _dict(value)
    return ResourceUsage(_number(found.get("usage")), _number(found.get("limit"), UNKNOWN_LIMIT))


def _decode_stats(value: object) -> BundleStats:
    found = _dict(value)
    return BundleStats(
        messages_in_rate=_number(found.get("msgRateIn")),
        bytes_in_rate=_number(found.get("msgThroughputIn")),
        messages_out_rate=_number(found.get("msgRateOut")),
        bytes_out_rate=_number(found.get("msgThroughputOut")),
        consumers_count=int(_number(found.get("consumerCount"))),
        producers_count=int(_number(found.get("producerCount"))),
        topics_count=int(_number(found.get("topics"))),
    )


def _dict(value: object) -> dict[str, Any]:  # Any: JSON
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object, default: float = 0.0) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else default  # type: ignore[arg-type]  # it is one
