from __future__ import annotations

import pytest

from pulsar_py.common.errors import MetadataOutcomeUnknownError
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import Session, Versioned
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.owner_record import OwnerRecord
from pulsar_py.server.namespaces.session_records import Bundle, SessionRecord, SessionRecords
from pulsar_py.testing.clock import VirtualClock

BUNDLE: Bundle = (NamespaceName("public", "default"), "0x00000000_0x40000000")
PATH = paths.bundle_owner(*BUNDLE)


def record_of(host: str) -> OwnerRecord:
    return OwnerRecord(LocalAddresses(default=BrokerAddresses(broker_url=f"pulsar://{host}:1")))


class Store(MemoryMetadataStore):
    """Loses the answers of the creations that it is told to lose."""

    answers_to_lose_count = 0

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        version = await super().put(path, value, expected_version=expected_version, session=session)
        if self.answers_to_lose_count:
            self.answers_to_lose_count -= 1
            raise MetadataOutcomeUnknownError("no answer")
        return version

    async def stored(self) -> Versioned:
        found = await self.get(PATH)
        assert found is not None
        return found


@pytest.fixture
async def store(virtual_clock: VirtualClock) -> Store:
    return Store(virtual_clock)


class Broker:
    """The records of one broker, whose sessions the test begins."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.sessions: list[Session] = []
        self.unanswered: list[Bundle] = []
        self.outlived: list[Bundle] = []
        self.records = SessionRecords(
            store,
            lambda: self.sessions[-1],
            on_unanswered=lambda bundle, _: self.unanswered.append(bundle),
            on_outlived=self.outlived.append,
        )

    async def begin_session(self) -> None:
        self.sessions.append(await self.store.open_session())


async def broker(store: Store) -> Broker:
    made = Broker(store)
    await made.begin_session()
    return made


async def test_a_record_is_created_where_there_is_none(store: Store) -> None:
    owner = await broker(store)
    taken = await owner.records.take(BUNDLE, None, record_of("a"))
    stored = await store.stored()
    session_id = owner.sessions[-1].session_id
    assert taken == SessionRecord(record_of("a"), stored.version, session_id)
    assert stored.owner == session_id
    assert await owner.records.find_ours(PATH) == stored


async def test_a_record_that_another_broker_created_meanwhile_stays(store: Store) -> None:
    first, second = await broker(store), await broker(store)
    assert await first.records.take(BUNDLE, None, record_of("a")) is not None
    assert await second.records.take(BUNDLE, None, record_of("b")) is None
    assert await second.records.find_ours(PATH) is None
    assert OwnerRecord.decode((await store.stored()).value) == record_of("a")


async def test_a_record_of_this_session_is_written_only_if_it_differs(store: Store) -> None:
    owner = await broker(store)
    await owner.records.take(BUNDLE, None, record_of("a"))
    before = await store.stored()
    same = await owner.records.take(BUNDLE, before, record_of("a"))
    assert same is not None
    assert (await store.stored()).version == before.version == same.version
    changed = await owner.records.take(BUNDLE, before, record_of("b"))
    assert changed is not None
    assert (await store.stored()).version == changed.version > before.version


async def test_a_former_sessions_record_is_replaced_by_one_of_this_session(store: Store) -> None:
    owner = await broker(store)
    await owner.records.take(BUNDLE, None, record_of("a"))
    await owner.begin_session()
    stored = await store.stored()
    assert owner.records.may_be_ours(stored, record_of("a").addresses)
    assert not owner.records.may_be_ours(stored, record_of("b").addresses)
    assert await owner.records.take(BUNDLE, stored, record_of("a")) is not None
    assert (await store.stored()).owner == owner.sessions[-1].session_id


async def test_the_next_owners_record_with_the_same_version_is_left_alone(store: Store) -> None:
    owner, other = await broker(store), await broker(store)
    await owner.records.take(BUNDLE, None, record_of("a"))
    read = await store.stored()
    await owner.begin_session()
    await store.delete(PATH)
    await other.records.take(BUNDLE, None, record_of("b"))
    assert (await store.stored()).version == read.version
    assert await owner.records.take(BUNDLE, read, record_of("a")) is None
    assert OwnerRecord.decode((await store.stored()).value) == record_of("b")


async def test_a_creation_without_an_answer_is_told(store: Store) -> None:
    owner = await broker(store)
    store.answers_to_lose_count = 1
    assert await owner.records.take(BUNDLE, None, record_of("a")) is None
    assert owner.unanswered == [BUNDLE]
    assert not owner.outlived


async def test_a_record_whose_session_ended_while_it_was_created_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await broker(store)
    put = store.put

    async def put_across_sessions(path: str, value: bytes, **options: object) -> int:
        version = await put(path, value, **options)  # type: ignore[arg-type]
        await owner.begin_session()
        return version

    monkeypatch.setattr(store, "put", put_across_sessions)
    taken = await owner.records.take(BUNDLE, None, record_of("a"))
    assert taken is not None
    assert taken.session_id == owner.sessions[0].session_id
    assert owner.outlived == [BUNDLE]


async def test_refreshed_has_the_version_that_is_stored(store: Store) -> None:
    owner, other = await broker(store), await broker(store)
    taken = await owner.records.take(BUNDLE, None, record_of("a"))
    assert taken is not None
    await store.put(PATH, record_of("a").encode())
    refreshed = await owner.records.refreshed(PATH, taken)
    assert refreshed is not None
    assert refreshed.version == (await store.stored()).version > taken.version
    assert await other.records.refreshed(PATH, taken) is None
