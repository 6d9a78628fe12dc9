"""A broker's topics under a scripted life, a crash at one of its steps, and what must hold then.

Steps are counted over both stores: each write point of the simulated disk, and for each write of the
metadata the moment before it and the moment after it, when it is done but nobody heard of it. So a
crash falls between the metadata's and the ledger's step, too, of every creation, deletion and
rollover.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Session, Versioned, Watcher
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.storage.bookie import Bookie
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.disk import SimulatedDisk
from pulsar_py.wire.payload import split_entry
from tests.crash.storage.harness import SETTINGS, InvariantError, end_tasks
from tests.unit.server.topics.rig import Rig, entry, name_of, send

CONFIG = BrokerConfig(
    defaultRetentionTimeInMinutes=-1,
    defaultRetentionSizeInMB=-1,
    managedLedgerMaxEntriesPerLedger=4,
    managedLedgerMinLedgerRolloverTimeMinutes=0,
)


class CrashingMetadataStore(MetadataStore):
    """Passes everything on until the disk crashes; then nothing returns any more."""

    def __init__(self, inner: MetadataStore, disk: SimulatedDisk) -> None:
        self.limits = inner.limits
        self._inner = inner
        self._disk = disk
        self._sessions: list[Session] = []

    async def _write(self, work: Callable[[], Awaitable[object]]) -> object:
        if self._disk.count_write_point():
            await self._disk.alive()
        result = await work()
        if self._disk.count_write_point():
            await self._disk.alive()
        return result

    async def get(self, path: str) -> Versioned | None:
        await self._disk.alive()
        return await self._inner.get(path)

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        result = await self._write(
            lambda: self._inner.put(path, value, expected_version=expected_version, session=session)
        )
        assert isinstance(result, int)
        return result

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self._write(lambda: self._inner.delete(path, expected_version=expected_version))

    async def delete_recursive(self, path: str) -> None:
        await self._write(lambda: self._inner.delete_recursive(path))

    async def exists(self, path: str) -> bool:
        await self._disk.alive()
        return await self._inner.exists(path)

    async def children(self, path: str) -> list[str]:
        await self._disk.alive()
        return await self._inner.children(path)

    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        result = await self._write(lambda: self._inner.create_sequential(prefix, value, session))
        assert isinstance(result, str)
        return result

    async def sync(self, path: str) -> None:
        await self._disk.alive()
        await self._inner.sync(path)

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        return self._inner.watch(prefix, watcher)

    async def open_session(self) -> Session:
        session = await self._inner.open_session()
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        """The stores outlive the process in these tests."""

    async def end_sessions(self) -> None:
        """What the next start would do."""
        for session in self._sessions:
            with suppress(MetadataError):
                await session.close()


@dataclass
class Model:
    """Everything that clients were told."""

    confirmed: dict[str, list[bytes]] = field(default_factory=dict)  # payloads, by topic
    positions: dict[str, list[Position]] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    deletions_asked: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    partitions: dict[str, int] = field(default_factory=dict)
    subscriptions: set[str] = field(default_factory=set)  # of the topic "a"
    terminated: Position | None = None  # of the topic "c"


class Life:
    """The script; every promise goes into the model when it is made."""

    def __init__(self, rig: Rig, model: Model) -> None:
        self._rig = rig
        self._model = model
        self._payloads = itertools.count()

    async def run(self) -> None:
        await self._create("a")
        await self._subscribe("a")
        await self._publish("a", 3)
        await self._create("b")
        await self._publish("b", 5)
        await self._roll("a")
        await self._publish("a", 6)
        await self._delete("b")
        await self._partition("p", 2)
        await self._publish("p-partition-1", 2)
        await self._unload("a")
        await self._publish("a", 2)
        await self._create("c")
        await self._publish("c", 1)
        await self._terminate("c")
        await self._create("b")
        await self._publish("b", 1)
        await self._rig.broker.close()

    async def _topic(self, name: str) -> PersistentTopic:
        return await self._rig.persistent(name)

    async def _create(self, name: str) -> None:
        self._model.deletions_asked.discard(name)
        self._model.deleted.discard(name)
        await self._topic(name)
        self._model.created.add(name)

    async def _subscribe(self, name: str) -> None:
        await (await self._topic(name)).create_subscription("sub", starts_at_earliest=True)
        self._model.subscriptions.add("sub")

    async def _publish(self, name: str, count: int) -> None:
        topic, cnx = await self._topic(name), self._rig.cnx()
        producer = await self._rig.producer(topic, cnx)
        for sequence_id in range(count):
            payload = b"%s %d" % (name.encode(), next(self._payloads))
            send(producer, sequence_id, entry(sequence_id, payload))
            await producer.close()
            producer = await self._rig.producer(topic, cnx)
            [answer] = [each.send_receipt for each in cnx.received]
            cnx.received.clear()
            where = Position(answer.message_id.ledgerId, answer.message_id.entryId)
            self._model.confirmed.setdefault(name, []).append(payload)
            self._model.positions.setdefault(name, []).append(where)
        await producer.close()

    async def _roll(self, name: str) -> None:
        await (await self._topic(name)).ledger.roll_ledger()

    async def _delete(self, name: str) -> None:
        self._model.deletions_asked.add(name)
        self._model.created.discard(name)
        self._model.confirmed.pop(name)
        self._model.positions.pop(name)
        await self._rig.broker.topics.delete(name_of(name), force=True)
        self._model.deleted.add(name)

    async def _partition(self, name: str, count: int) -> None:
        await self._rig.broker.topics.partitioned.create(name_of(name), count)
        self._model.partitions[name] = count

    async def _unload(self, name: str) -> None:
        await self._rig.broker.topics.unload(name_of(name))

    async def _terminate(self, name: str) -> None:
        self._model.terminated = await (await self._topic(name)).terminate()


class LedgerIds:
    """Counts in the metadata store, so that ids go on after a crash."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata

    async def next(self) -> int:
        """The next one."""
        path = await self._metadata.create_sequential("/ledgers/idgen/ID-", b"")
        return paths.sequence_number(path)


async def start(disk: SimulatedDisk, metadata: MetadataStore) -> Rig:
    ledgers = await Bookie.start(
        disk, clock=VirtualClock(), ledger_ids=LedgerIds(metadata), settings=SETTINGS
    )
    rig = Rig(VirtualClock(), config=CONFIG, metadata=metadata, ledgers=ledgers)
    return await rig.__aenter__()


async def crash_run(inner: MetadataStore, crash_at: int | None) -> tuple[SimulatedDisk, Model]:
    """Run the life until its end or the crash."""
    disk = SimulatedDisk(random.Random(str(crash_at)), crash_at=crash_at)
    metadata = CrashingMetadataStore(inner, disk)
    model = Model()
    crashed = asyncio.Event()
    disk.on_crash = crashed.set
    before = asyncio.all_tasks()

    async def live() -> None:
        await Life(await start(disk, metadata), model).run()

    loop = asyncio.get_running_loop()
    life, waiting = loop.create_task(live()), loop.create_task(crashed.wait())
    await asyncio.wait((life, waiting), return_when=asyncio.FIRST_COMPLETED)
    if life.done():
        life.result()
    disk.bury()
    await end_tasks(before)
    await metadata.end_sessions()
    return disk, model


async def check(disk: SimulatedDisk, inner: MetadataStore, model: Model) -> Counter[str]:
    """Start again on what the crash left, and compare with what was promised."""
    held: Counter[str] = Counter()
    rig = await start(disk.after_crash(), CrashingMetadataStore(inner, disk_without_crash()))
    for name in ("a", "b", "c", "p-partition-0", "p-partition-1"):
        await _check_topic(rig, name, model, held)
    for name, count in model.partitions.items():
        if await rig.broker.topics.partitioned.count(name_of(name)) != count:
            raise InvariantError(f"created implies recovered: partitions of {name}")
        held["created implies recovered"] += 1
    if model.subscriptions:
        subscriptions = set((await rig.persistent("a")).subscriptions)
        if not model.subscriptions <= subscriptions:
            raise InvariantError(f"subscriptions are {subscriptions}")
        held["subscriptions stay"] += 1
    await rig.broker.close()
    await rig.ledgers.close()
    return held


def disk_without_crash() -> SimulatedDisk:
    return SimulatedDisk(random.Random(0))


async def _check_topic(rig: Rig, name: str, model: Model, held: Counter[str]) -> None:
    full = name_of(name)
    exists = await rig.broker.topics.exists(full)
    if name in model.deleted and exists:
        raise InvariantError(f"deleted stays deleted: {name}")
    held["deleted stays deleted"] += name in model.deleted
    if name in model.created and not exists:
        raise InvariantError(f"created implies recovered: {name}")
    held["created implies recovered"] += name in model.created
    if not exists:
        return
    topic = await rig.persistent(name)
    await _check_messages(topic, model.confirmed.get(name, []), held)
    await _check_goes_on(rig, topic, name, model, held)


async def _check_messages(
    topic: PersistentTopic, confirmed: list[bytes], held: Counter[str]
) -> None:
    """What was confirmed is there in order; what was not may be, once."""
    cursor = topic.ledger.new_non_durable_cursor("check", InitialPosition.EARLIEST)
    found: list[bytes] = []
    while entries := await cursor.read(100, 1_000_000):
        found += [split_entry(bytes(each.data)).payload for each in entries]
    await cursor.close()
    if len(found) != len(set(found)):
        raise InvariantError(f"stored once: {topic.name} has {found}")
    if [payload for payload in found if payload in confirmed] != confirmed:
        raise InvariantError(f"confirmed implies recovered: {topic.name} has {found}")
    held["confirmed implies recovered"] += len(confirmed)


async def _check_goes_on(
    rig: Rig, topic: PersistentTopic, name: str, model: Model, held: Counter[str]
) -> None:
    if name == "c" and topic.ledger.is_terminated:
        held["terminated stays terminated"] += model.terminated is not None
        return
    if name == "c" and model.terminated is not None:
        raise InvariantError("terminated stays terminated")
    cnx = rig.cnx()
    producer = await rig.producer(topic, cnx, "again")
    send(producer, 0)
    await producer.close()
    [answer] = [each.send_receipt.message_id for each in cnx.received]
    where = Position(answer.ledgerId, answer.entryId)
    if any(where <= before for before in model.positions.get(name, [])):
        raise InvariantError(f"positions are never reused: {name} got {where}")
    held["positions are never reused"] += 1
