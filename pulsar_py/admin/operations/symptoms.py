"""`symptoms`: finds what an operator of this broker should look at (edge).

Each symptom has a code that stays, how bad it is, the thing, one sentence with the values, and what
helps. A broker without symptoms may still be slow for one topic: `standstill` tells about those.

    DISK_FULL, DISK_NEARLY_FULL        free space of the data directory
    SLOW_SYNC                          a key takes long until it is durable
    SLOW_LOOP                          the event loop is late, so everybody waits
    FEW_DESCRIPTORS                    open files and sockets near the limit of the process
    CERTIFICATE_EXPIRED, …_EXPIRES     certificates of listening ports and of authorities
    TOKEN_EXPIRED, TOKEN_EXPIRES       the token by which the broker proves its role to others
    OPEN_TO_ALL                        reachable from other machines, and nobody proves who they are
    CLEAR_TEXT                         reachable from other machines without TLS, with credentials
    SETTING_WITHOUT_EFFECT             given another value than the default, in vain
    TOPICS_ABOUT_TO_GO                 unused topics that are deleted soon
    SESSION_IN_DOUBT                   ZooKeeper does not answer: nothing is opened or looked up
    LEAVING                            drained, or another broker has its id: it takes no bundle
    NO_LEADER, ALONE_IN_CLUSTER        nobody chooses who takes bundles; nobody would take over
    BROKER_UNREACHABLE                 registered, and refuses connections
    BROKER_BUSY                        its busiest resource is used above what gets it bundles
    NOT_BALANCED                       the last move or split of this leader failed

Source: ours; the limits are chosen, and stand below.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pulsar_py.admin.http_messages import Request, Response, json_response
from pulsar_py.admin.operations.symptom import Symptom, Urgency
from pulsar_py.admin.operations.symptoms_of_cluster import cluster_symptoms
from pulsar_py.admin.router import Route, get
from pulsar_py.common.errors import ConfigurationError, PulsarError
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.network.hosts import is_loopback
from pulsar_py.common.token_end import SOON_DAYS, token_end
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.broker_settings import call_settings
from pulsar_py.server.load.other_brokers import own_token
from pulsar_py.server.security.actions import Action
from pulsar_py.server.upkeep.topic_upkeep import seconds_until_deletion

__all__ = ["Symptom", "Symptoms", "Urgency", "symptoms"]

NEARLY_FULL_BYTES: Final = 5 * 1024**3
SLOW_SYNC_SECONDS: Final = 0.1
SLOW_LOOP_SECONDS: Final = 0.05
DESCRIPTORS_SHARE: Final = 0.8
EXPIRY_DAYS: Final = 30
SOON_SECONDS: Final = 3600
NAMED: Final = 10
"""Things that a symptom names; it counts all of them."""

_LOOKS: Final = 20
_LOOK_SECONDS: Final = 0.01
_PEM_END: Final = b"-----END CERTIFICATE-----"


class Symptoms:
    """The call `GET /admin/v2/brokers/symptoms`, of our own."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                "/admin/v2/brokers/symptoms",
                self.all,
                Action.READ_BROKERS,
                answer="list[SymptomAnswer]",
            ),
        )

    async def all(self, request: Request) -> Response:  # noqa: ARG002
        """Return what an operator should look at; it takes about a fifth of a second."""
        return json_response([each.json() for each in await symptoms(self._broker)])


async def symptoms(broker: BrokerService) -> list[Symptom]:
    """All symptoms, the worst first."""
    found = [*_of_disk(broker), *_of_descriptors(), *_of_reach(broker), *_of_settings(broker)]
    found += await _of_certificates(broker)
    found += await _of_own_token(broker)
    found += await _of_loop(broker)
    found += await _of_sync(broker)
    found += await _of_topics(broker)
    found += await cluster_symptoms(broker)
    order = list(Urgency)
    return sorted(found, key=lambda each: order.index(each.urgency))


def _of_disk(broker: BrokerService) -> Iterator[Symptom]:
    figures = broker.ledger_store.figures()
    free = figures.get("disk_free_bytes")
    if not figures.get("is_taking_writes", True):
        yield Symptom(
            "DISK_FULL",
            Urgency.ERROR,
            "disk",
            f"The disk is full ({free or 0:,.0f} bytes free), and nothing is written.",
            "Make room; writing goes on by itself.",
        )
    elif free and free < NEARLY_FULL_BYTES:
        yield Symptom(
            "DISK_NEARLY_FULL",
            Urgency.WARNING,
            "disk",
            f"{free:,.0f} bytes are free on the disk of the data directory.",
            "Make room, shorten retention, or set backlog quotas.",
        )


def _of_descriptors() -> Iterator[Symptom]:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_files = Path("/proc/self/fd")
    if not open_files.exists():
        return  # no Linux
    used = sum(1 for _ in open_files.iterdir())
    if used > limit * DESCRIPTORS_SHARE:
        yield Symptom(
            "FEW_DESCRIPTORS",
            Urgency.WARNING,
            "descriptors",
            f"{used} files and sockets are open, and the process may have {limit}.",
            "Raise the limit (ulimit -n, LimitNOFILE=), or close clients.",
        )


def _of_reach(broker: BrokerService) -> Iterator[Symptom]:
    addresses = broker.addresses
    if broker.config.authenticationEnabled:
        in_clear = addresses.outside_clear_text_urls
        if in_clear:
            yield Symptom(
                "CLEAR_TEXT",
                Urgency.WARNING,
                ", ".join(in_clear),
                "Other machines can connect without TLS: whoever is on the way reads tokens, "
                "passwords and messages, and may use them.",
                "Leave brokerServicePort and webServicePort empty, and set brokerServicePortTls "
                "and webServicePortTls, or listen on 127.0.0.1.",
            )
        return
    told = addresses.default
    urls = (told.broker_url, told.broker_url_tls, told.http_url, told.http_url_tls)
    hosts = {urlsplit(url).hostname or "" for url in (*urls, *addresses.bound_urls) if url}
    outside = sorted(host for host in hosts if not is_loopback(host))
    if outside:
        yield Symptom(
            "OPEN_TO_ALL",
            Urgency.ERROR,
            ", ".join(outside),
            "Other machines can connect, and authentication is off: everybody may read, write and "
            "delete everything.",
            "Set authenticationEnabled and authorizationEnabled (pulsar-py secure init), or listen "
            "on 127.0.0.1.",
        )


def _of_settings(broker: BrokerService) -> Iterator[Symptom]:
    for name, reason in sorted(broker.config.without_effect.items()):
        yield Symptom(
            "SETTING_WITHOUT_EFFECT",
            Urgency.NOTICE,
            name,
            f"{name} was given, and has no effect: {reason}",
            "Remove it, or leave it for brokers that know it.",
        )


async def _of_certificates(broker: BrokerService) -> list[Symptom]:
    config = broker.config
    paths = {config.tlsCertificateFilePath, config.tlsTrustCertsFilePath} - {""}
    found: list[Symptom] = []
    for path in sorted(paths):
        found += await asyncio.to_thread(certificate_symptoms, Path(path), _now(broker))
    return found


def _now(broker: BrokerService) -> datetime:
    return datetime.fromtimestamp(broker.clock.wall_time_millis() / 1000, UTC)


def certificate_symptoms(path: Path, now: datetime) -> list[Symptom]:
    """The certificates of a PEM file that are not valid for long, or not any more."""
    from cryptography import x509  # noqa: PLC0415 - 40 ms, for brokers with TLS

    try:
        pem = path.read_bytes()
        each_pem = [part + _PEM_END for part in pem.split(_PEM_END)[:-1]]
        certificates = [x509.load_pem_x509_certificate(each.lstrip()) for each in each_pem]
    except (OSError, ValueError) as error:
        text = f"{path} can't be read: {error}"
        return [Symptom("CERTIFICATE_UNREADABLE", Urgency.ERROR, str(path), text, "Replace it.")]
    found = []
    for each in certificates:
        end = each.not_valid_after_utc
        if end > now + timedelta(days=EXPIRY_DAYS):
            continue
        is_over = end <= now
        found.append(
            Symptom(
                "CERTIFICATE_EXPIRED" if is_over else "CERTIFICATE_EXPIRES",
                Urgency.ERROR if is_over else Urgency.WARNING,
                str(path),
                f"The certificate of {each.subject.rfc4514_string()} in {path} "
                f"{'ended' if is_over else 'ends'} at {end.isoformat(timespec='seconds')}.",
                "Replace the file; the broker takes the new one by itself.",
            )
        )
    return found


async def _of_own_token(broker: BrokerService) -> list[Symptom]:
    """Whether `brokerClientAuthenticationParameters` has a token that ends soon, or can't be read.

    Without it other brokers refuse what this one asks of them, and its own clients are refused.
    """
    setting = "brokerClientAuthenticationParameters"
    try:
        token = await own_token(call_settings(broker.config))
    except ConfigurationError as error:
        return [
            Symptom("TOKEN_UNREADABLE", Urgency.ERROR, setting, f"{error}.", "Put the file back.")
        ]
    end = token_end(token or "")
    now = broker.clock.wall_time_millis() / 1000
    if end is None or end > now + timedelta(days=SOON_DAYS).total_seconds():
        return []
    is_over = end <= now
    moment = datetime.fromtimestamp(end, UTC).isoformat(timespec="seconds")
    return [
        Symptom(
            "TOKEN_EXPIRED" if is_over else "TOKEN_EXPIRES",
            Urgency.ERROR if is_over else Urgency.WARNING,
            setting,
            "The token by which this broker proves its role to other brokers "
            f"{'ended' if is_over else 'ends'} at {moment}.",
            "Make another one (pulsar-py tokens create); a file is read again at each use, a text "
            "in broker.conf at the next start.",
        )
    ]


async def _of_loop(broker: BrokerService) -> list[Symptom]:
    """The symptom of a slow loop: its largest lag within a fifth of a second."""
    clock, worst = broker.clock, 0.0
    for _ in range(_LOOKS):
        due = clock.monotonic_seconds() + _LOOK_SECONDS
        await clock.sleep(_LOOK_SECONDS)
        worst = max(worst, clock.monotonic_seconds() - due)
    if worst < SLOW_LOOP_SECONDS:
        return []
    return [
        Symptom(
            "SLOW_LOOP",
            Urgency.WARNING,
            "event loop",
            f"The event loop was {worst * 1000:.0f} ms late, so everybody waited for it.",
            "Look at the machine's CPU, and with pulsar-py top at what is busy; one process uses "
            "one core.",
        )
    ]


async def _of_sync(broker: BrokerService) -> list[Symptom]:
    began = broker.clock.monotonic_seconds()
    try:
        await broker.check_health()
    except PulsarError as error:
        text = f"A key could not be stored: {error}"
        return [Symptom("NOT_HEALTHY", Urgency.ERROR, "metadata store", text, "See the log.")]
    seconds = broker.clock.monotonic_seconds() - began
    if seconds < SLOW_SYNC_SECONDS:
        return []
    return [
        Symptom(
            "SLOW_SYNC",
            Urgency.WARNING,
            "metadata store",
            f"It took {seconds * 1000:.0f} ms until a key was stored durably.",
            "Look at the disk: what else writes to it, and whether it is a network disk.",
        )
    ]


async def _of_topics(broker: BrokerService) -> list[Symptom]:
    turns = Turns()
    about_to_go: list[tuple[float, str]] = []
    for topic in list(broker.topics.topics.values()):
        await turns.take()
        left = seconds_until_deletion(topic)
        if left is not None and left <= SOON_SECONDS:
            about_to_go.append((left, str(topic.name)))
    if not about_to_go:
        return []
    about_to_go.sort()
    names = ", ".join(name for _, name in about_to_go[:NAMED])
    return [
        Symptom(
            "TOPICS_ABOUT_TO_GO",
            Urgency.NOTICE,
            names,
            f"{len(about_to_go)} unused topics are deleted within an hour, the first in "
            f"{max(about_to_go[0][0], 0):.0f} s.",
            "Nothing, or keep them: pulsar-py admin namespaces set-inactive-topic-policies, or "
            "brokerDeleteInactiveTopicsEnabled=false.",
        )
    ]
