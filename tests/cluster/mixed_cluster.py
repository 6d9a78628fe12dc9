"""One cluster with brokers of both kinds, as tests start it and ask its administration."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import pulsar

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.our_broker import OurBroker

NAMESPACE: Final = "public/mixed"
MOVE_SECONDS: Final = 60.0
ASKED_SECONDS: Final = 8.0
MAX_REDIRECTS: Final = 5
SETTINGS: Final = {
    "managedLedgerMaxEntriesPerLedger": 50,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "brokerDeduplicationEntriesInterval": 10,
    "delayedDeliveryTrackerFactoryClassName": (
        "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"
    ),
    "delayedDeliveryMinIndexCountPerBucket": 20,
    "loadBalancerSheddingEnabled": "false",
    "loadBalancerAutoBundleSplitEnabled": "false",
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl",
}

Broker = OurBroker | ApacheBroker


@dataclass
class Mixed:
    """Both brokers, in the order in which they were started."""

    brokers: list[Broker]
    moves: list[tuple[float, float]] = field(default_factory=list)
    """When each was begun, and when both said that it is through."""

    @property
    def url(self) -> str:
        hosts = ",".join(each.service_url.removeprefix("pulsar://") for each in self.brokers)
        return f"pulsar://{hosts}"

    def client(self) -> Any:  # Any: the official client has no types
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        return pulsar.Client(self.url, operation_timeout_seconds=60, logger=logger)

    def owners(self, local_name: str) -> set[str]:
        """Where each of the brokers says that a topic is."""
        topic = f"persistent/{NAMESPACE}/{local_name}"
        return {lookup(broker.web_service_url, topic) for broker in self.brokers}

    def move(self, to: Broker, asked: Broker) -> None:
        """Have the bundle served by one of them; another, or the same, is asked for it.

        An Apache Pulsar that leads remembers the destination for the first lookup only. The next
        one, at the same moment, may find another choice, and that broker be faster: then it is
        asked for again, as operators would.
        """
        broker_id = advertised(to, to.web_service_url).removeprefix("http://")
        path = f"namespaces/{NAMESPACE}/0x00000000_0xffffffff/unload?destinationBroker={broker_id}"
        begun = time.monotonic()
        while not self._has_moved(to, asked, path):
            assert time.monotonic() < begun + MOVE_SECONDS, f"not moved to {to.service_url}"
        self.moves.append((begun, time.monotonic()))

    def _has_moved(self, to: Broker, asked: Broker, path: str) -> bool:
        """Whether both say so within some seconds after it was asked for."""
        ask_on(asked, "PUT", path)
        deadline = time.monotonic() + ASKED_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError):
                if self.owners("holes") == {advertised(to, to.service_url)}:
                    return True
            time.sleep(0.2)
        return False


def ask_on(broker: Broker, method: str, path: str, body: object = None) -> Any:  # Any: JSON
    """What administration answers, redirects followed for all methods.

    Raises:
        OSError: Nobody answers, or with an error; its text has the answer.
    """
    url = f"{broker.web_service_url}/admin/v2/{path}"
    data = None if body is None else json.dumps(body).encode()
    headers = {} if body is None else {"Content-Type": "application/json"}
    for _ in range(MAX_REDIRECTS):
        request = urllib.request.Request(url, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.TEMPORARY_REDIRECT:
                text = f"{method} {url}: {error.code} {error.read()[:500]!r}"
                raise OSError(text) from error
            url = error.headers["Location"]
        else:
            return json.loads(content) if content else None
    raise OSError(f"{method} {path}: {MAX_REDIRECTS} redirects, the last one to {url}")


def advertised(broker: Broker, url: str) -> str:
    """An address as others know it: isolation policies tell both kinds by their hosts."""
    return url.replace("127.0.0.1", "localhost") if isinstance(broker, OurBroker) else url


def lookup(web_service_url: str, topic: str) -> str:
    """Where a broker says that a topic is; it may send us to another one."""
    with urllib.request.urlopen(f"{web_service_url}/lookup/v2/topic/{topic}", timeout=30) as answer:
        return str(json.load(answer)["brokerUrl"])


def until(ask: Callable[[], object], wanted: object) -> bool:
    """Whether it is answered within some seconds: one of them may still read the change."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(OSError):
            if ask() == wanted:
                return True
        time.sleep(0.2)
    return False
