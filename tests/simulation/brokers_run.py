"""Two whole brokers over one hostile pair of stores, clients, and what happens to them, from a seed.

    python -m tests.simulation --brokers FIRST COUNT --processes 1

For half a minute and more of virtual time producers and consumers of both brokers go on, while
topics are unloaded and moved, a broker stands still and wakes up, a session expires, connections to
the stores are cut. Then the weather is fair: everything that was confirmed has to be where it was
said to be, through either broker. A seed that did not have enough of each fails, too.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from pulsar_py.client.client import Client
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition
from pulsar_py.common.errors import MetadataExistsError, ProducerQueueFullError, PulsarError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.managed_ledger.log.ledger_format import (
    LedgerList,
    decode_ledger_list,
    encode_ledger_list,
    ledger_path,
)
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.metadata.paths import CLUSTERS, POLICIES, broker_health
from pulsar_py.metadata.store import MUST_NOT_EXIST
from pulsar_py.server.namespaces.bundles import bundle_range, topic_hash
from pulsar_py.testing.network import SimulatedLoop, run_simulated
from tests.simulation import brokers_model as model
from tests.simulation.brokers_model import Group, Model, Place, Sender
from tests.simulation.brokers_world import (
    LATENCY_SECONDS,
    LEDGER_OPTIONS,
    NAMES,
    NAMESPACE,
    SESSION_SECONDS,
    Failures,
    Node,
    Owners,
    World,
    cursors_watched,
)
from tests.simulation.client_model import Log

Opened = TypeVar("Opened")

TOPICS = [f"persistent://public/default/t{number}" for number in range(3)]
SENDERS = {"p0": TOPICS[0], "p1": TOPICS[1], "p2": TOPICS[2], "p3": TOPICS[0]}
GROUPS = ((TOPICS[0], ConsumerType.Shared, 2), (TOPICS[1], ConsumerType.Failover, 2))

SHARED = (CLUSTERS, POLICIES)
"""Above what clusters share."""

STORM_SECONDS = 30.0
PATIENCE_SECONDS = 90.0
"""By when a storm has had enough of everything."""
HEAL_SECONDS = 60.0
"""By when everything works again in fair weather."""
QUIET_SECONDS = 3.0
OUTAGE_SECONDS = 1.0
"""For so long no ledger can be read when a reader begins."""
SOON_SECONDS = 8.0
"""By when it has everything: in fair weather that takes 1 to 2 seconds and the outage."""
MINIMA = {"virtual seconds": 30, "moves": 3, "expired": 1, "unknown": 1, "confirmed": 500}
EACH_SENDER_A_SECOND = 5.5


@dataclass(frozen=True)
class Outcome:
    """What a seed came to."""

    held: Counter[str]
    met: Counter[str]
    digest: str


class Run:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.model = Model(is_deduplicating=self.world.is_deduplicating)
        self.log = Log()
        self.met: Counter[str] = Counter()
        self.is_stopping = False  # no more messages
        self._is_done = False  # no more receiving
        self._tasks = TaskOwner("run")
        self._failed: asyncio.Future[None]
        self._clients: dict[str, Client] = {}
        self._limit = 100  # newest that somebody wanted
        self._added: set[str] = set()  # topics made behind the brokers' backs
        self._told: dict[str, set[str]] = {name: set() for name in NAMES}  # ... they know of
        self._changes: list[asyncio.Task[Any]] = []

    async def run(self) -> Outcome:
        """Play it."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self._failed = loop.create_future()
        failures = Failures()
        with failures.listening():
            async with self.world.running():
                with (
                    self.world.answers_watched(self._on_success),
                    cursors_watched(self.model.on_kept),
                    Owners(self.world).watched(self._on_given_up, self._on_record_deleted),
                ):
                    await self._or_failed(self._play())
            await asyncio.sleep(1)
        self.world.ledgers.check()
        self.model.require(model.ENDED, holds=not failures.errors, detail=failures.errors[:3])
        left = [
            each.get_name() for each in asyncio.all_tasks() if each is not asyncio.current_task()
        ]
        self.model.require(model.ENDED, holds=not left, detail=left)
        for name, count in self.world.ledgers.counts.items():
            self.met[f"ledgers: {name}"] = count
        return Outcome(self.model.held, self.met, f"{self.log.digest}-{loop.network.digest:08x}")

    async def _play(self) -> None:
        try:
            await self._live()
        except BaseException as error:
            self._fail(error)  # first: what it takes down with it fails, too
            raise

    async def _live(self) -> None:
        async with AsyncExitStack() as stack:
            for name, hosts in (("a", NAMES), ("b", NAMES[::-1])):
                self._clients[name] = await stack.enter_async_context(
                    self.world.client(name, *hosts)
                )
            try:
                await self._storm()
            except BaseException as error:
                self._fail(error)  # first: what it takes down with it fails, too
                raise
        await self._check_all()
        await self._tasks.drain()

    async def _storm(self) -> None:
        senders = [self._spawn(self._send(name), f"send {name}") for name in SENDERS]
        self._spawn(self._watch_owners(), "watch owners")
        receivers = [
            self._spawn(self._receive(group, kind, number), f"receive {group.name} {number}")
            for group, kind, count in self._groups()
            for number in range(count)
        ]
        for node in self.world.nodes:
            node.broker.service.topics.watch(
                NAMESPACE, partial(self._on_topics_changed, self._told[node.name])
            )
        await asyncio.sleep(1)
        self.world.storm()
        await self._weather()
        self.is_stopping = True
        self.world.calm()
        async with asyncio.timeout(HEAL_SECONDS):
            await asyncio.gather(*senders, *self._changes)
        await self._all_arrived()
        self._is_done = True
        await asyncio.gather(*receivers)

    async def _all_arrived(self) -> None:
        """Whoever consumed all the time gets everything, wherever the topic is by now."""
        until = self.now() + HEAL_SECONDS
        while (missing := self.model.missing()) and self.now() < until:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(0.5)
        self.model.require(model.ARRIVES, holds=not missing, detail=missing[:5])

    def _groups(self) -> Iterator[tuple[Group, ConsumerType, int]]:
        for topic, kind, count in GROUPS:
            group = Group(f"{kind.name}", topic)
            self.model.groups.append(group)
            yield group, kind, count

    # Failing at once

    def _spawn(self, work: Any, name: str) -> asyncio.Task[Any]:
        task = self._tasks.spawn(work, name)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            error.add_note(f"in {task.get_name()} at {self.now():.3f} s")
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    async def _or_failed(self, work: Any) -> None:
        main = asyncio.get_running_loop().create_task(work, name="main")
        await asyncio.wait((self._failed, main), return_when=asyncio.FIRST_COMPLETED)
        if self._failed.done():
            main.cancel()
            await asyncio.wait((main,))
            await self._tasks.close()
            self._failed.result()
        try:
            await main
        except BaseException:
            await self._tasks.close()
            raise
        self._failed.cancel()

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    def _note(self, *what: object) -> None:
        self.log.note(self.now(), *what)

    def _on_success(self, node: Node, what: str) -> None:
        try:
            self.model.require(
                model.SURE, holds=not node.is_in_doubt, detail=(node.name, what, self.now())
            )
        except AssertionError as error:
            self._fail(error)

    def _on_given_up(self, name: str, is_lost: bool, error: Exception) -> None:  # noqa: FBT001
        self._note("given up", name, repr(error))
        self.met["given up"] += 1
        try:
            self.model.require(model.RIGHTLY, holds=is_lost, detail=(name, repr(error), self.now()))
        except AssertionError as failure:
            self._fail(failure)

    def _on_record_deleted(self, bundle: str, owner: str, by: str) -> None:
        try:
            detail = (bundle, owner, "by", by, self.now())
            self.model.require(model.OWN_RECORD, holds=owner == by, detail=detail)
        except AssertionError as failure:
            self._fail(failure)

    # Weather

    async def _weather(self) -> None:
        """Half a minute of scripted mishaps at random times, and on until there was enough."""
        chance = self.world.chance("weather")
        plan: list[tuple[float, Callable[[random.Random], Any]]] = []
        for act, counts in (
            (self._move, (4, 6)),
            (self._pause, (1, 3)),
            (self._expire, (1, 2)),
            (self._cut, (1, 3)),
            (self._change_policies, (2, 4)),
            (self._add_topic, (1, 3)),
        ):
            plan += [
                (chance.uniform(2, STORM_SECONDS - 4), act) for _ in range(chance.randint(*counts))
            ]
        if self.world.is_splitting:
            splits = self.world.chance("places of splits")
            plan += [
                (splits.uniform(2, STORM_SECONDS - 4), lambda _: self._split(splits))
                for _ in range(splits.randint(2, 4))
            ]
        plan.sort(key=lambda each: each[0])
        for at, act in plan:
            await asyncio.sleep(at - self.now())
            act(chance)
        await asyncio.sleep(STORM_SECONDS - self.now())
        self._miss(chance)
        while (missing := self._missing()) and self.now() < PATIENCE_SECONDS:
            if "moves" in missing:
                self._move(chance)
            if "expired" in missing:
                self._expire(chance)
            if "unknown" in missing:
                self.world.lose_answers()
                self._change_policies(chance)
            else:
                self.world.storm()
            await asyncio.sleep(2)
        self.model.require(model.MINIMA, holds=not missing, detail=missing)

    def _missing(self) -> list[str]:
        service = self.world.metadata.service
        self.met["virtual seconds"] = int(self.now())
        self.met["expired"] = service.expired_count
        self.met["unknown"] = service.unknown_count
        self.met["confirmed"] = self.model.confirmed_count
        return [name for name, least in MINIMA.items() if self.met[name] < least]

    def _move(self, chance: random.Random) -> None:
        node = chance.choice(self.world.nodes)
        bundles = node.broker.service.namespaces.owned_bundles()
        bundles = [each for each in bundles if each[0] == NAMESPACE]
        if not bundles:
            node = self._other(node)
            bundles = node.broker.service.namespaces.owned_bundles()
        if bundles:
            _, bundle = chance.choice(bundles)
            takes = chance.random() < 0.7
            self._spawn(self._unload(node, bundle, takes=takes), f"unload {bundle}")
            if chance.random() < 0.25:  # stands still in the middle of it
                asyncio.get_running_loop().call_later(chance.uniform(0, 0.4), self._sleep, node, 9)

    def _split(self, chance: random.Random) -> None:
        """Cut a bundle in two, where its topics part if they do."""
        node = chance.choice(self.world.nodes)
        service = node.broker.service.namespaces
        owned = [bundle for namespace, bundle in service.owned_bundles() if namespace == NAMESPACE]
        if not owned:
            return
        bundle = chance.choice(owned)
        lower, upper = bundle_range(bundle)
        hashes = sorted(each for each in map(topic_hash, TOPICS) if lower < each < upper)
        place = chance.choice(hashes or [(lower + upper) // 2])
        self._spawn(self._split_at(node, bundle, place), f"split {bundle}")

    async def _split_at(self, node: Node, bundle: str, place: int) -> None:
        self._note("split", node.name, bundle, place)
        try:
            await node.broker.service.namespaces.split_bundle(NAMESPACE, bundle, [place])
        except (PulsarError, ValueError) as error:  # it may have been split, or lost
            self._note("not split", node.name, bundle, repr(error))
            self.met["splits failed"] += 1
        else:
            self.met["splits"] += 1

    def _other(self, node: Node) -> Node:
        return self.world.nodes[self.world.nodes[0] is node]

    async def _unload(self, node: Node, bundle: str, *, takes: bool) -> None:
        """As an administrator does; with `takes` a topic is then looked up at the other broker."""
        self._note("unload", node.name, bundle)
        try:
            await node.broker.service.namespaces.unload_bundle(NAMESPACE, bundle)
        except PulsarError as error:
            self._note("not unloaded", node.name, bundle, repr(error))
            self.met["unloads failed"] += 1
            return
        self.met["moves"] += 1
        if takes:
            await self._take(self._other(node), bundle)

    async def _take(self, node: Node, bundle: str) -> None:
        """Look up a topic of a bundle at one broker until somebody owns it."""
        namespaces = node.broker.service.namespaces
        until = self.now() + SESSION_SECONDS
        while self.now() < until:
            try:
                for topic in map(TopicName.parse, TOPICS):
                    if await namespaces.bundle_of(topic) == bundle:
                        await namespaces.lookup(topic)
                        self._on_success(node, "LOOKUP")
            except PulsarError as error:
                self._note("not looked up", bundle, repr(error))
                await asyncio.sleep(0.2)
            else:
                return

    def _pause(self, chance: random.Random) -> None:
        node = chance.choice(self.world.nodes)
        seconds = chance.choice((chance.uniform(0.2, 3), chance.uniform(4, 14)))
        self._sleep(node, seconds, stalls=chance.random() < 0.6)

    def _sleep(self, node: Node, seconds: float, *, stalls: bool = True) -> None:
        self._note("pause", node.name, seconds, stalls)
        self.met["pauses"] += 1
        node.pause(stalls=stalls)
        asyncio.get_running_loop().call_later(seconds, self._wake, node)

    def _wake(self, node: Node) -> None:
        self._note("wake", node.name)
        self.met["woken after its session"] += node.is_in_doubt
        node.wake()

    def _expire(self, chance: random.Random) -> None:
        node = chance.choice(self.world.nodes)
        self._note("expire", node.name)
        if self.world.is_cutting_unloads:
            for _, bundle in node.broker.service.namespaces.owned_bundles():
                self._spawn(self._unload(node, bundle, takes=False), f"unload {bundle}")
            asyncio.get_running_loop().call_later(0.01, node.metadata.expire)
        else:
            node.metadata.expire()
        self._spawn(self._visit(self._other(node), chance.random()), f"visit {node.name}'s topics")
        self._spawn(self._insist(node), f"change subscriptions at {node.name}")

    async def _insist(self, node: Node) -> None:
        """Change subscriptions' properties while a session begins again, as an administrator does.

        Each change writes a cursor's record at once, at a broker that may not own it any more.
        """
        await asyncio.sleep(SESSION_SECONDS * 1.1)  # `HostileClient.expire` cuts it for so long
        for number in range(10):
            for topic in list(node.broker.service.topics.topics.values()):
                for each in list(topic.subscriptions.values()):
                    change = each.set_properties({"asked": str(number)})
                    self._spawn(self._tried(change), f"change {each.name}")
            await asyncio.sleep(0.02)

    async def _tried(self, change: Awaitable[None]) -> None:
        try:
            await change
        except PulsarError as error:
            self._note("not changed", repr(error))

    async def _visit(self, node: Node, late: float) -> None:
        """Ask a broker for all topics until it has them: those of the other one, whose session ends.

        Their clients stay where they are, so the new owner opens topics and has nothing to write.
        `late` is how much of the last second before that session's end is let pass.
        """
        await asyncio.sleep(SESSION_SECONDS - 1 + late)
        until = self.now() + SESSION_SECONDS / 2
        waiting = [TopicName.parse(topic) for topic in TOPICS]
        service = node.broker.service
        while waiting and self.now() < until:
            try:
                await service.namespaces.lookup(waiting[0])
                self._on_success(node, "LOOKUP")
                if service.namespaces.is_owned(waiting[0]):
                    await service.topics.get_or_load(waiting.pop(0), create_if_missing=True)
                    self.met["visits"] += 1
                    continue
            except PulsarError as error:
                self._note("not visited", node.name, repr(error))
            await asyncio.sleep(0.1)

    def _cut(self, chance: random.Random) -> None:
        node = chance.choice(self.world.nodes)
        self._note("cut", node.name)
        self.met["cuts"] += 1
        node.cut(chance.uniform(0.1, SESSION_SECONDS))

    def _change_policies(self, chance: random.Random) -> None:
        """Through either broker, whose news the other one may miss."""
        node = chance.choice(self.world.nodes)
        self._limit += 1
        limit = self._limit

        def change(policies: NamespacePolicies) -> NamespacePolicies:
            return policies.replace(max_producers_per_topic=limit)

        namespaces = node.broker.service.resources.namespaces
        work = self._opened("policies", lambda: namespaces.update(NAMESPACE, change))
        self._changes.append(self._spawn(work, "change policies"))

    def _add_topic(self, chance: random.Random) -> None:
        node = chance.choice(self.world.nodes)
        name = TopicName.parse(f"persistent://public/default/new-{len(self._added)}")
        self._added.add(str(name))
        path = ledger_path(name.managed_ledger_name)
        metadata = node.metadata
        value = encode_ledger_list(LedgerList(properties={"made": "by hand"}))

        async def add() -> None:
            try:
                await metadata.put(path, value, expected_version=MUST_NOT_EXIST)
            except MetadataExistsError:
                return

        self._changes.append(self._spawn(self._opened(str(name), add), f"add {name}"))

    def _miss(self, chance: random.Random) -> None:
        """Last news that one broker is not told of, and can't ask for when it hears that."""
        deaf = chance.choice(self.world.nodes)
        self._note("miss", deaf.name)
        self.met["news missed"] += 1
        deaf.miss(chance.uniform(1, 3), chance.uniform(0.02, 0.5))
        self._change_policies(chance)
        self._add_topic(chance)

    async def _watch_owners(self) -> None:
        """Never two, by what each of them believes at the same moment."""
        before: dict[str, Node] = {}
        names = [TopicName.parse(topic) for topic in TOPICS]
        while not self._is_done:
            for name in names:
                owners = [
                    node
                    for node in self.world.nodes
                    if node.broker.service.namespaces.is_owned(name)
                ]
                detail = (str(name), [each.name for each in owners], self.now())
                self.model.require(model.ONE_OWNER, holds=len(owners) < 2, detail=detail)
                if owners:
                    last = before.setdefault(str(name), owners[0])
                    self.met["owner changes"] += last is not owners[0]
                    before[str(name)] = owners[0]
            await asyncio.sleep(0.1)

    # Clients

    async def _opened(self, what: str, open_it: Callable[[], Awaitable[Opened]]) -> Opened:
        until = self.now() + PATIENCE_SECONDS
        while True:
            try:
                return await open_it()
            except PulsarError as error:
                self._note("not opened", what, repr(error))
                if self.now() > until:
                    raise
                await asyncio.sleep(0.3)

    async def _producer(self, client: Client, name: str, topic: str) -> Any:
        return await self._opened(
            name,
            lambda: client.create_producer(
                topic, producer_name=name, send_timeout_millis=0, batching_enabled=False
            ),
        )

    async def _send(self, name: str) -> None:
        chance = self.world.chance(f"send {name}")
        sender = self.model.senders[name] = Sender(name, SENDERS[name])
        client = self._clients["ab"[int(name[1:]) % 2]]
        producer = await self._producer(client, name, sender.topic)
        outcomes: list[asyncio.Task[None]] = []
        while not self.is_stopping:
            count = chance.randint(1, 6)
            outcomes += [self._spawn(self._send_one(producer, sender), name) for _ in range(count)]
            await asyncio.sleep(chance.expovariate(EACH_SENDER_A_SECOND / count))
        await asyncio.gather(*outcomes)
        await producer.close()

    async def _send_one(self, producer: Any, sender: Sender) -> None:
        number = self.model.on_send(sender)
        try:
            message_id = await producer.send_nowait(sender.payload(number))
        except ProducerQueueFullError:
            return
        except PulsarError as error:
            self._note("failed", sender.name, number, repr(error))
            self.met["sends failed"] += 1
        else:
            self._note("confirmed", sender.name, number, message_id)
            self.model.on_confirmed(sender, number, _place(message_id))

    async def _consumer(self, client: Client, group: Group, kind: ConsumerType) -> Any:
        return await self._opened(
            f"{group.topic} {group.name}",
            lambda: client.subscribe(
                group.topic,
                group.name,
                consumer_type=kind,
                initial_position=InitialPosition.Earliest,
                receiver_queue_size=20,
                ack_receipt_enabled=True,
                ack_grouping_time_ms=50,
            ),
        )

    async def _receive(self, group: Group, kind: ConsumerType, number: int) -> None:
        chance = self.world.chance(f"receive {group.name} {number}")
        consumer = await self._consumer(self._clients["ab"[number]], group, kind)
        acks: list[asyncio.Task[None]] = []
        async with consumer:
            while not self._is_done:
                try:
                    message = await consumer.receive(timeout_millis=500)
                except TimeoutError:
                    continue
                group.delivered.add(_place(message.message_id()))
                if chance.random() < 0.1:
                    continue  # never acknowledged: it has to come again in the end
                acks.append(
                    self._spawn(self._acknowledge(consumer, group, kind, message), "acknowledge")
                )
            await asyncio.gather(*acks)

    async def _acknowledge(
        self, consumer: Any, group: Group, kind: ConsumerType, message: Any
    ) -> None:
        place = _place(message.message_id())
        is_cumulative = kind is ConsumerType.Failover
        try:
            if is_cumulative:
                group.tried_through = max(group.tried_through, place)
                await consumer.acknowledge_cumulative(message)
            else:
                group.tried.add(place)
                await consumer.acknowledge(message)
            group.answered.add(place)
        except PulsarError as error:
            self._note("not acknowledged", group.name, place, repr(error))
            self.met["acknowledgements failed"] += 1

    # The end

    async def _check_all(self) -> None:
        """In fair weather: everything is there and works, through one broker and the other."""
        await self._check_policies_learnt()
        nodes = list(self.world.nodes)
        self.world.chance("end").shuffle(nodes)
        read: dict[str, list[tuple[Place, bytes]]] = {}
        for node in nodes:
            await self._settle_on(node)
            async with self.world.client(f"end {node.name}", node.name) as client:
                for topic in TOPICS:
                    async with asyncio.timeout(HEAL_SECONDS):
                        now = await self._write_and_read(client, node, topic)
                    before = read.get(topic, [])
                    self.model.require(
                        model.SAME, holds=now[: len(before)] == before, detail=(topic, len(before))
                    )
                    self.model.on_read_all(topic, now)
                    read[topic] = now
        async with self.world.client("end", *NAMES) as client:
            for group in self.model.groups:
                await self._check_group(client, group, [place for place, _ in read[group.topic]])
        for topic in TOPICS:
            self._check_ledgers(topic)
        for node in self.world.nodes:
            await self._check_news(node)
            await self._check_health(node)
        self._check_roles()

    async def _settle_on(self, node: Node) -> None:
        """Let this broker own everything."""
        namespaces = node.broker.service.namespaces
        other = self._other(node).broker.service.namespaces
        until = self.now() + HEAL_SECONDS
        for topic in map(TopicName.parse, TOPICS):
            while not namespaces.is_owned(topic):
                try:
                    await other.unload_bundle(NAMESPACE, await other.bundle_of(topic))
                    await namespaces.lookup(topic)
                except PulsarError as error:
                    self._note("not settled", node.name, topic, repr(error))
                detail = (node.name, str(topic), "not owned")
                self.model.require(model.SERVES, holds=self.now() < until, detail=detail)
                await asyncio.sleep(0.5)

    async def _write_and_read(
        self, client: Client, node: Node, topic: str
    ) -> list[tuple[Place, bytes]]:
        name = f"end-{node.name}-{topic[-2:]}"
        sender = self.model.senders[name] = Sender(name, topic)
        producer = await self._producer(client, name, topic)
        await self._send_one(producer, sender)
        place = sender.confirmed.get(1)
        self.model.require(model.SERVES, holds=place is not None, detail=(node.name, topic, place))
        assert place is not None
        await producer.close()
        read: list[tuple[Place, bytes]] = []
        begun = self.now()
        self.world.refuse_ledgers(OUTAGE_SECONDS)
        reader = await self._opened(
            f"reader of {topic}", lambda: client.create_reader(topic, MessageId.earliest)
        )
        async with reader:
            while not read or read[-1][0] < place:
                message = await reader.read_next()
                read.append((_place(message.message_id()), message.data()))
        seconds = self.now() - begun
        detail = (node.name, topic, seconds)
        self.model.require(model.SOON, holds=seconds < SOON_SECONDS, detail=detail)
        self.model.held[model.SERVES] += 1
        return read

    async def _check_group(self, client: Client, group: Group, places: list[Place]) -> None:
        consumer = await self._consumer(client, group, ConsumerType.Exclusive)
        come: set[Place] = set()
        quiet_at = self.now() + QUIET_SECONDS
        async with consumer:
            while self.now() < quiet_at:
                try:
                    message = await consumer.receive(timeout_millis=1000)
                except TimeoutError:
                    continue
                come.add(_place(message.message_id()))
                quiet_at = self.now() + QUIET_SECONDS
        self.met["receipts lost"] += len(group.answered & come)
        self.model.on_drained(group, places, come)

    @staticmethod
    def _on_topics_changed(told: set[str], created: Sequence[str], deleted: Sequence[str]) -> None:
        told.update(created)
        told.difference_update(deleted)

    @property
    def _stored_limit(self) -> int:
        """What the store has: changes without an answer may come later than those after them."""
        path = f"{POLICIES}/{NAMESPACE}"
        stored = self.world.configuration.service._tree.get(path)
        self.model.require(model.ROLES, holds=stored is not None, detail=path)
        assert stored is not None
        return NamespacePolicies.from_bytes(stored.value).max_producers_per_topic or 0

    async def _check_policies_learnt(self) -> None:
        """Topics obey what was written last, also those that nobody opened since."""
        until = self.now() + HEAL_SECONDS
        while True:
            topics = [
                (node.name, name, each.settings.max_producers)
                for node in self.world.nodes
                for name, each in node.broker.service.topics.topics.items()
            ]
            stale = [each for each in topics if each[-1] != self._stored_limit]
            if not stale:
                return
            detail = (self._stored_limit, stale)
            self.model.require(model.LEARNT, holds=self.now() < until, detail=detail)
            await asyncio.sleep(0.5)

    async def _check_news(self, node: Node) -> None:
        service = node.broker.service
        unknown = self._added - self._told[node.name]
        self.model.require(model.LEARNT, holds=not unknown, detail=(node.name, unknown))
        policies = await service.resources.namespaces.get(NAMESPACE)
        assert policies is not None
        limits = {policies.max_producers_per_topic or 0}
        limits.update(each.settings.max_producers for each in service.topics.topics.values())
        is_learnt = limits == {self._stored_limit}
        detail = (node.name, limits, "not", self._stored_limit)
        self.model.require(model.LEARNT, holds=is_learnt, detail=detail)

    async def _check_health(self, node: Node) -> None:
        """Each broker's check leaves a record of its own."""
        now = self.world.clock.wall_time_millis()
        await node.broker.service.check_health()
        stored = self.world.metadata.service._tree.get(broker_health(f"{node.name}:6650"))
        holds = stored is not None and int(stored.value) >= now
        self.model.require(model.HEALTH, holds=holds, detail=(node.name, stored))

    def _check_roles(self) -> None:
        """What clusters share is in the configuration store, and nothing else is."""
        if self.world.configuration is self.world.metadata:
            return
        local, shared = (
            each.service._tree for each in (self.world.metadata, self.world.configuration)
        )
        misplaced = [each for each in SHARED if local.children(each)]
        self.model.require(model.ROLES, holds=not misplaced, detail=("local", misplaced))
        missing = [each for each in SHARED if not shared.children(each)]
        self.model.require(model.ROLES, holds=not missing, detail=("not shared", missing))
        others = set(shared.children("/")) - {"admin"}
        self.model.require(model.ROLES, holds=not others, detail=("shared", others))

    def _check_ledgers(self, topic: str) -> None:
        path = ledger_path(TopicName.parse(topic).managed_ledger_name)
        stored = self.world.metadata.service._tree.get(path)
        assert stored is not None, path
        ids = [each.ledger_id for each in decode_ledger_list(stored.value).ledgers]
        self.model.require(model.LEDGERS, holds=ids == sorted(set(ids)), detail=(topic, ids))
        self.met["ledgers"] += len(ids)
        for ledger_id in ids:
            options = self.world.ledgers.ledgers[ledger_id].options
            as_set = replace(options, custom_metadata={})
            detail = (topic, ledger_id, as_set)
            self.model.require(model.OPTIONS, holds=as_set == LEDGER_OPTIONS, detail=detail)


def _place(message_id: Any) -> Place:
    return (message_id.ledger_id, message_id.entry_id)


class SeedError(AssertionError):
    """A seed failed; the message has the command that shows it again."""


def run_seed(seed: int, *, notes: list[str] | None = None) -> Outcome:
    """Run a seed; `notes` takes what happened in it.

    Raises:
        SeedError: An invariant does not hold, or something raised what it may not.
    """

    async def main() -> Outcome:
        run = Run(seed)
        run.log.lines = notes
        return await run.run()

    try:
        return run_simulated(main(), latency_seconds=LATENCY_SECONDS)
    except Exception as error:
        notes_of = "; ".join(getattr(error, "__notes__", ()))
        again = f"python -m tests.simulation --brokers {seed} 1"
        raise SeedError(f"seed {seed}: {error!r} {notes_of}; again: {again}") from error
