"""The world of two brokers: one hostile metadata service, one hostile ledger service, a network.

Each broker is a `Node`: a whole `Broker`, and its clients of both services, by which it is paused.
A paused broker hears and says nothing to the services, and where its connections stall neither to
its clients; nobody is told. What the brokers tell their clients is looked at as it leaves.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from pulsar_py.client.client import Client
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.common.position_ranges import PositionRange
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerOptions, LedgerStore, StoreLimits
from pulsar_py.managed_ledger.cursors.state import CursorChanges, CursorState
from pulsar_py.managed_ledger.log.ledger_state import State
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata import paths
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.connection.server_cnx import ServerCnx
from pulsar_py.server.handlers import handle_consume
from pulsar_py.server.namespaces.bundles import in_bundle
from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.hostile_ledger_client import HostileLedgerStore
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults
from pulsar_py.testing.hostile_metadata import HostileClient, HostileMetadata
from pulsar_py.testing.hostile_service import HostileSettings
from pulsar_py.testing.network import SimulatedLoop
from tests.simulation.brokers_model import Place

if TYPE_CHECKING:
    from tests.simulation.cluster_world import ClusterWorld

NAMES = ("one", "two")
NAMESPACE = NamespaceName("public", "default")
SESSION_SECONDS = 6.0
LATENCY_SECONDS = 0.0005

BROKER = {
    "keepAliveIntervalSeconds": 10,
    "managedLedgerMaxEntriesPerLedger": 40,
    "managedLedgerCursorMaxEntriesPerLedger": 30,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "brokerDeleteInactiveTopicsEnabled": False,
}

CLIENT: dict[str, Any] = {  # Any: options have their own types
    "operation_timeout_seconds": 10.0,
    "keep_alive_interval_seconds": 3.0,
    "max_backoff_interval_ms": 1_000,
    "connection_timeout_ms": 3_000,
    "stats_interval_in_seconds": 0,
}

CALM = HostileSettings(
    session_timeout_seconds=SESSION_SECONDS, delay_seconds=(0.001, 0.01), lag_seconds=0.2
)
STORM = replace(
    CALM,
    delay_seconds=(0.001, 0.03),
    unavailable_share=0.03,
    unknown_share=0.03,
    late_seconds=(0.1, 4.0),
    lost_watch_share=0.05,
    partial_delete_share=0.2,
)
LEDGER_OPTIONS = LedgerOptions(
    ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, password=b"secret"
)
LIMITS = StoreLimits(
    max_entry_bytes=8 * 1024 * 1024, max_pinned_bytes=64 * 1024 * 1024, answer_timeout_seconds=4.0
)


FEATURE_SHARE = 0.25
"""The seeds with each of: bundles that are split, unloads in which the session ends, a configuration
store of its own, many lost answers."""


class Node:
    """One broker; implements the factories of its stores."""

    def __init__(
        self,
        world: World | ClusterWorld,
        name: str,
        config: dict[str, Any],
        *,
        is_of_cluster: bool = False,
    ) -> None:
        self.name = name
        self.broker = Broker(
            config=config,
            host=name,
            port=6650,
            web_port=8080,
            clock=world.clock,
            chance=world.chance(f"broker {name}"),
            metadata_store_factory=self._open_metadata,
            ledger_store_factory=self,
            ledger_options=LEDGER_OPTIONS,
            is_of_cluster=is_of_cluster,
        )
        self.metadata: HostileClient
        self.configuration: HostileClient  # the same, unless it has a service of its own
        self.ledgers: HostileLedgerStore
        self._world = world

    async def _open_metadata(self, clock: Clock) -> MetadataStores:
        world = self._world
        self.metadata = self.configuration = world.metadata.connect(self.name, clock)
        if world.configuration is not world.metadata:
            self.configuration = world.configuration.connect(self.name, clock)
        return MetadataStores(local=self.metadata, configuration=self.configuration)

    @property
    def clients(self) -> tuple[HostileClient, ...]:
        """Its clients of the metadata."""
        is_one = self.configuration is self.metadata
        return (self.metadata,) if is_one else (self.metadata, self.configuration)

    async def prepare(self) -> None:
        """There is no disk."""

    async def __call__(
        self, metadata: MetadataStore, ledger_ids: LedgerIds, clock: Clock
    ) -> LedgerStore:
        """The client of the ledgers."""
        self.ledgers = self._world.ledgers.connect(self.name, ledger_ids)
        return self.ledgers

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"pulsar://{self.name}:6650"

    @property
    def is_in_doubt(self) -> bool:
        """Whether somebody else may have what it owns."""
        return not self.metadata._session.is_good

    def pause(self, *, stalls: bool) -> None:
        """Stand still, as far as the stores see, and with `stalls` as the clients do."""
        for client in self.clients:
            client.freeze()
        self.ledgers.freeze()
        if stalls:
            _network().stall(self.name)

    def wake(self) -> None:
        """Go on, with everything that came meanwhile."""
        _network().unstall(self.name)
        for client in self.clients:
            client.thaw()
        self.ledgers.thaw()

    def cut(self, seconds: float) -> None:
        """Have no connection to the metadata for so long."""
        for client in self.clients:
            client.cut(seconds)

    def miss(self, seconds: float, busy_seconds: float) -> None:
        """Miss changes of the metadata, as `HostileClient.miss` does."""
        for client in self.clients:
            client.miss(seconds, busy_seconds)


def _network() -> Any:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop.network


class World:
    """Two brokers over one pair of services; any number of clients."""

    def __init__(self, seed: object) -> None:
        self._seed = seed
        self.clock = VirtualClock()
        draw = self.chance("world")
        self.is_deduplicating = draw.random() < 0.5
        parents = draw.random() < 0.5
        self._calm = replace(CALM, are_parents_keys=parents)
        self._storm = replace(STORM, are_parents_keys=parents)
        if self.is_one_of("answers lost"):
            self._storm = replace(self._storm, unknown_share=0.15)
        self.is_splitting = self.is_one_of("splits")
        self.is_cutting_unloads = self.is_one_of("unloads cut short")
        self.metadata = HostileMetadata(self.chance("metadata"), self.clock, self._calm)
        self.configuration = self.metadata
        if self.is_one_of("configuration"):
            self.configuration = HostileMetadata(
                self.chance("configuration"), self.clock, self._calm
            )
        self.ledgers = HostileLedgers(
            self.chance("ledgers"), LedgerFaults(delay_seconds=0.01), limits=LIMITS
        )
        config = {
            **BROKER,
            "brokerDeduplicationEnabled": self.is_deduplicating,
            "brokerDeduplicationEntriesInterval": draw.choice((10, 50, 1000)),
            "defaultNumberOfNamespaceBundles": draw.choice((1, 4)),
        }
        self.nodes = [Node(self, name, config) for name in NAMES]

    def chance(self, name: str) -> random.Random:
        """A generator for one part: what others draw doesn't change it."""
        return random.Random(f"{self._seed} {name}")

    def is_one_of(self, feature: str) -> bool:
        """Whether this seed has something that only some have, so that others stay as they are."""
        return self.chance(feature).random() < FEATURE_SHARE

    def client(self, name: str, *hosts: str) -> Client:
        """A client that begins at these brokers."""
        url = "pulsar://" + ",".join(f"{host}:6650" for host in hosts)
        return Client(url, clock=self.clock, chance=self.chance(f"client {name}"), **CLIENT)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        """Both brokers, in fair weather."""
        async with self.nodes[0].broker, self.nodes[1].broker:
            yield self

    def storm(self) -> None:
        """Let everything go wrong now and then."""
        self._set_weather(self._storm)
        self.ledgers.faults = LedgerFaults.storm()

    def lose_answers(self) -> None:
        """Let half of all changes of the metadata have no answer, until the next `storm`."""
        self._set_weather(replace(self._storm, unknown_share=0.5))

    def _set_weather(self, settings: HostileSettings) -> None:
        for each in (self.metadata, self.configuration):
            each.service.settings = settings

    def calm(self) -> None:
        """No faults any more; everybody is awake."""
        for node in self.nodes:
            node.wake()
        for each in (self.metadata, self.configuration):
            each.calm()
        self.ledgers.faults = LedgerFaults(delay_seconds=0.01, lag_share=0.3, short_read_share=0.3)

    def refuse_ledgers(self, seconds: float) -> None:
        """Let the ledger service be unavailable for so long, to all but appends."""
        before = self.ledgers.faults
        self.ledgers.faults = replace(before, unavailable_share=1.0)

        def end() -> None:
            self.ledgers.faults = before

        asyncio.get_running_loop().call_later(seconds, end)

    def owners(self, bundle: str) -> list[Node]:
        """Who says that a bundle is its own."""
        return [
            node
            for node in self.nodes
            if node.broker.service.namespaces._ownership.owns(NAMESPACE, bundle)
        ]

    @contextmanager
    def answers_watched(self, on_success: Callable[[Node, str], None]) -> Iterator[None]:
        """Tell `on_success` of each LOOKUP, PRODUCER and SUBSCRIBE that succeeds, as it does."""
        nodes = {id(node.broker.service.connections): node for node in self.nodes}
        send, subscribe = ServerCnx.send, handle_consume._subscribe

        def watched_send(cnx: ServerCnx, frame: bytes) -> None:
            if frame[_TYPE_AT] in _WATCHED:
                command = BaseCommand.FromString(frame[_COMMAND_AT:])
                answer = command.lookupTopicResponse
                if not command.HasField("lookupTopicResponse") or not answer.HasField("error"):
                    on_success(nodes[id(cnx.connections)], _WATCHED[command.type])
            send(cnx, frame)

        async def watched_subscribe(cnx: Any, name: Any, request: Any, *others: Any) -> None:
            await subscribe(cnx, name, request, *others)
            if request.consumer_id in cnx.consumers:
                on_success(nodes[id(cnx.connections)], "SUBSCRIBE")

        with (
            patch.object(ServerCnx, "send", watched_send),
            patch.object(handle_consume, "_subscribe", watched_subscribe),
        ):
            yield


@contextmanager
def cursors_watched(on_kept: Callable[[Place, Sequence[PositionRange]], None]) -> Iterator[None]:
    """Tell `on_kept` of each state of a subscription that its cursor knows to be durable."""
    changes_due, persisted = CursorState.changes_due, CursorState.persisted
    written: dict[CursorState, tuple[Place, Sequence[PositionRange]]] = {}

    def watched_changes_due(state: CursorState, now: float, **how: bool) -> CursorChanges | None:
        changes = changes_due(state, now, **how)
        if changes is not None and not state.properties:  # deduplication's cursor has some
            ranges = tuple(state.individual_deleted_messages.ranges())
            written[state] = (state.mark_delete_position, ranges)
        return changes

    def watched_persisted(state: CursorState, changes: CursorChanges) -> None:
        persisted(state, changes)
        if state in written:
            on_kept(*written.pop(state))

    with (
        patch.object(CursorState, "changes_due", watched_changes_due),
        patch.object(CursorState, "persisted", watched_persisted),
    ):
        yield


class Owners:
    """Whom the records said to own each topic, at each moment, whatever brokers believe."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._owners: dict[str, str] = {}  # by bundle: URLs
        # Loads and open managed ledgers: whose, of which topic, and whether it was ever another's.
        self._loads: dict[tuple[int, str], _Held] = {}
        self._opened: dict[Any, _Held] = {}

    def _on_owner_changed(self, change: Any) -> tuple[str, str | None]:
        """Note it; returns the bundle, and who owned it before."""
        bundle = change.path.rpartition("/")[2]
        owner = self._owners.pop(bundle, None)
        if change.versioned and change.versioned.value:
            self._owners[bundle] = json.loads(change.versioned.value)["nativeUrl"]
        for held in (*self._loads.values(), *self._opened.values()):
            held.is_lost |= self._is_of_another(held)
        return bundle, owner

    def _is_of_another(self, held: _Held) -> bool:
        """Whether not all bundles with its topic are its broker's, or there is none."""
        topic = TopicName.from_managed_ledger_name(held.name)
        urls = {url for bundle, url in self._owners.items() if in_bundle(bundle)(topic)}
        return urls != {held.node.url}

    @contextmanager
    def watched(
        self,
        on_given_up: Callable[[str, bool, Exception], None],
        on_record_deleted: Callable[[str, str, str], None],
    ) -> Iterator[None]:
        """Tell of each managed ledger that is given up, and whether it was lost.

        And of each owner's record that a broker deletes: the bundle, its owner, and who does it.
        """
        service = self._world.metadata.service
        nodes = {id(node.broker.service.managed_ledgers): node for node in self._world.nodes}
        commit, load = service._commit, ManagedLedgerOpener._load
        made, fence = ManagedLedger.__init__, ManagedLedger.fence
        serve, make = HostileClient._serve, HostileClient._make
        acting: list[Node] = []  # whose request is being handled
        of_client = {id(client): node for node in self._world.nodes for client in node.clients}

        def watched_request(handle: Any, client: HostileClient, request: Any) -> None:
            acting.append(of_client[id(client)])
            handle(client, request)
            acting.pop()

        def watched_commit(changes: Any) -> None:
            for change in changes:
                if change.path.startswith(paths.bundle_owners(NAMESPACE)):
                    bundle, owner = self._on_owner_changed(change)
                    if owner and acting and change.versioned is None:
                        on_record_deleted(bundle, owner, acting[-1].url)
            commit(changes)

        async def watched_load(opener: Any, name: str, *how: Any, **more: Any) -> Any:
            held = self._loads[id(opener), name] = _Held(nodes[id(opener)], name)
            held.is_lost = self._is_of_another(held)
            return await load(opener, name, *how, **more)

        def watched_made(ledger: Any, name: str, config: Any, opener: Any, *how: Any, **more: Any):
            made(ledger, name, config, opener, *how, **more)
            self._opened[ledger] = self._loads[id(opener), name]

        def watched_fence(ledger: Any, error: Exception) -> None:
            if ledger.ledgers.state not in (State.FENCED, State.CLOSED):
                on_given_up(ledger.name, self._opened[ledger].is_lost, error)
            fence(ledger, error)

        with (
            patch.object(HostileClient, "_serve", lambda *of: watched_request(serve, *of)),
            patch.object(HostileClient, "_make", lambda *of: watched_request(make, *of)),
            patch.object(service, "_commit", watched_commit),
            patch.object(ManagedLedgerOpener, "_load", watched_load),
            patch.object(ManagedLedger, "__init__", watched_made),
            patch.object(ManagedLedger, "fence", watched_fence),
        ):
            yield


@dataclass(eq=False)
class _Held:
    """What a broker opens, or has open."""

    node: Node
    name: str
    is_lost: bool = False


_COMMAND_AT = 8  # behind both sizes
_TYPE_AT = 9  # and the tag of the command's type
_WATCHED = {BaseCommand.LOOKUP_RESPONSE: "LOOKUP", BaseCommand.PRODUCER_SUCCESS: "PRODUCER"}


class Failures(logging.Handler):
    """What the code under test says of errors that are nobody's: tasks and callbacks that died."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if record.getMessage() in ("task failed", "request failed") or record.name == "asyncio":
            task = getattr(record, "task", "")
            self.errors.append(f"{record.getMessage()} {task}: {error!r}")

    @contextmanager
    def listening(self) -> Iterator[Failures]:
        """Take errors in; anything less is not even made."""
        loggers = [logging.getLogger("pulsar_py"), logging.getLogger("asyncio")]
        before = [(each.level, each.propagate) for each in loggers]
        for each in loggers:
            each.addHandler(self)
            each.setLevel(logging.ERROR)
            each.propagate = False
        try:
            yield self
        finally:
            for each, (level, propagate) in zip(loggers, before, strict=True):
                each.removeHandler(self)
                each.setLevel(level)
                each.propagate = propagate
