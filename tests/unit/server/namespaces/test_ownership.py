from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    ServiceNotReadyError,
    SessionInDoubtError,
)
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import (
    MUST_NOT_EXIST,
    Notification,
    NotificationType,
    Session,
    SessionEvent,
    SessionListener,
    Versioned,
)
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.owner_record import OwnerRecord
from pulsar_py.server.namespaces.ownership import BundleOwnership
from pulsar_py.testing.clock import VirtualClock

NAMESPACE = NamespaceName("public", "default")
BUNDLE = "0x00000000_0x40000000"
PATH = paths.bundle_owner(NAMESPACE, BUNDLE)


def addresses(host: str) -> LocalAddresses:
    return LocalAddresses(
        default=BrokerAddresses(broker_url=f"pulsar://{host}:1", http_url=f"http://{host}:2"),
        by_listener={"in": BrokerAddresses(broker_url=f"pulsar://{host}:3")},
    )


@pytest.fixture
async def store(virtual_clock: VirtualClock) -> MemoryMetadataStore:
    return MemoryMetadataStore(virtual_clock)


async def broker(store: MemoryMetadataStore) -> BundleOwnership:
    ownership = BundleOwnership(store, lambda *_: None)
    await ownership.start()
    return ownership


async def test_the_first_who_asks_owns_the_bundle(store: MemoryMetadataStore) -> None:
    first, second = await broker(store), await broker(store)
    mine = await first.acquire(NAMESPACE, BUNDLE, addresses("a"))
    other = await second.acquire(NAMESPACE, BUNDLE, addresses("b"))
    assert mine.addresses == other.addresses == addresses("a")
    assert first.owns(NAMESPACE, BUNDLE)
    assert not second.owns(NAMESPACE, BUNDLE)


async def test_of_many_who_ask_at_once_one_wins(store: MemoryMetadataStore) -> None:
    brokers = [await broker(store) for _ in range(3)]
    records = await asyncio.gather(
        *(each.acquire(NAMESPACE, BUNDLE, addresses(str(n))) for n, each in enumerate(brokers))
    )
    assert len({record.addresses.default for record in records}) == 1
    assert sum(each.owns(NAMESPACE, BUNDLE) for each in brokers) == 1


async def test_the_end_of_a_session_frees_its_bundles(store: MemoryMetadataStore) -> None:
    first, second = await broker(store), await broker(store)
    await first.acquire(NAMESPACE, BUNDLE, addresses("a"))
    await first.close()
    record = await second.acquire(NAMESPACE, BUNDLE, addresses("b"))
    assert record.addresses == addresses("b")


async def test_a_bundle_being_unloaded_says_so_and_can_be_released(
    store: MemoryMetadataStore,
) -> None:
    first, second = await broker(store), await broker(store)
    await first.acquire(NAMESPACE, BUNDLE, addresses("a"))
    await first.disable(NAMESPACE, BUNDLE)
    assert not first.owns(NAMESPACE, BUNDLE)
    assert (await second.acquire(NAMESPACE, BUNDLE, addresses("b"))).is_disabled
    await first.release(NAMESPACE, BUNDLE)
    assert first.owned_bundles() == []
    assert not await store.exists(PATH)


async def test_what_is_not_owned_can_be_disabled_and_released(store: MemoryMetadataStore) -> None:
    ownership = await broker(store)
    await ownership.disable(NAMESPACE, BUNDLE)
    await ownership.release(NAMESPACE, BUNDLE)
    assert ownership.owned_bundles() == []


async def test_records_have_pulsars_keys(store: MemoryMetadataStore) -> None:
    ownership = await broker(store)
    await ownership.acquire(NAMESPACE, BUNDLE, addresses("a"))
    stored = await store.get(PATH)
    assert stored is not None
    assert stored.is_ephemeral
    assert json.loads(stored.value) == {
        "nativeUrl": "pulsar://a:1",
        "httpUrl": "http://a:2",
        "disabled": False,
        "advertisedListeners": {"in": {"brokerServiceUrl": "pulsar://a:3"}},
    }
    assert OwnerRecord.decode(stored.value) == OwnerRecord(addresses("a"))


class Fickle(MemoryMetadataStore):
    """One client whose session gets in doubt or ends, and whose answers get lost, when told to."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.session = FickleSession(self)
        self.outcomes: list[str] = []  # of the next changes: "made" or "lost", without an answer
        self.is_reachable = True
        # Puts that may yet be made.
        self.late: list[tuple[str, bytes, int | None, Session | None]] = []
        self.before_change: Callable[[str], Awaitable[None]] | None = None

    async def _prepare(self, change: str) -> None:
        if self.before_change is not None:
            await self.before_change(change)

    async def make_late(self) -> None:
        """What is late is made now, where it is not refused."""
        late, self.late = self.late, []
        for path, value, expected_version, session in late:
            with suppress(MetadataError):
                await super().put(path, value, expected_version=expected_version, session=session)

    async def sync(self, path: str) -> None:
        if not self.is_reachable:
            raise MetadataUnavailableError("not connected")
        await self.make_late()
        await super().sync(path)

    async def open_session(self) -> Session:
        await self.session.begin(await super().open_session())
        return self.session

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        await self._prepare("put")
        real = self.session.real if session is self.session else session
        if self.outcomes:
            outcome = self.outcomes.pop(0)
            if outcome == "late":
                self.late.append((path, value, expected_version, real))
            if outcome == "made":
                await super().put(path, value, expected_version=expected_version, session=real)
            raise MetadataOutcomeUnknownError("no answer")
        return await super().put(path, value, expected_version=expected_version, session=real)

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self._prepare("delete")
        if self.outcomes:
            if self.outcomes.pop(0) == "made":
                await super().delete(path, expected_version=expected_version)
            raise MetadataOutcomeUnknownError("no answer")
        if not self.is_reachable:
            raise MetadataUnavailableError("not connected")
        await super().delete(path, expected_version=expected_version)

    async def get(self, path: str) -> Versioned | None:
        if not self.is_reachable:
            raise MetadataUnavailableError("not connected")
        return await super().get(path)


class FickleSession(Session):
    """Stands for a real one, and for the next."""

    def __init__(self, store: Fickle) -> None:
        self._store = store
        self._listeners: list[SessionListener] = []
        self._is_good = True
        self._has_overslept = False

    @property
    def has_overslept(self) -> bool:
        return self._has_overslept

    def oversleep(self) -> None:
        self._is_good, self._has_overslept = False, True

    async def begin(self, real: Session) -> None:
        self.real = real
        self.session_id = real.session_id

    @property
    def is_good(self) -> bool:
        return self._is_good

    def listen(self, listener: SessionListener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def lose_connection(self) -> None:
        self._tell(SessionEvent.CONNECTION_LOST)

    async def get_in_doubt(self, *, is_told: bool = True) -> None:
        self._is_good = False
        if is_told:
            self._tell(SessionEvent.IN_DOUBT)

    async def come_back(self) -> None:
        self._is_good, self._has_overslept = True, False
        self._tell(SessionEvent.RECONNECTED)

    async def end(self) -> None:
        self._is_good = False
        await self.real.close()

    async def begin_anew(self) -> None:
        await self.begin(await MemoryMetadataStore.open_session(self._store))
        self._is_good = True
        self._tell(SessionEvent.NEW_SESSION)

    def _tell(self, event: SessionEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    async def close(self) -> None:
        await self.real.close()


class Owner:
    """A broker's ownership on a fickle store, and what it lost."""

    def __init__(self, clock: VirtualClock) -> None:
        self.store = Fickle(clock)
        self.session = self.store.session
        self.lost: list[str] = []
        self.is_current: bool | MetadataError = True  # what the namespace's bundles say
        self.asked_count = 0
        self.ownership = BundleOwnership(
            self.store,
            lambda _, bundle: self.lost.append(bundle),
            is_current=self._is_current,
        )

    async def _is_current(self, namespace: NamespaceName, bundle: str) -> bool:
        assert (namespace, bundle) == (NAMESPACE, BUNDLE)
        assert not self.owns(), "it counts before that is known"
        self.asked_count += 1
        if isinstance(self.is_current, MetadataError):
            raise self.is_current
        return self.is_current

    def owns(self) -> bool:
        return self.ownership.owns(NAMESPACE, BUNDLE)

    async def acquire(self) -> OwnerRecord:
        return await self.ownership.acquire(NAMESPACE, BUNDLE, addresses("a"))

    async def somebody_else_takes_it(self) -> bytes:
        value = OwnerRecord(addresses("b")).encode()
        session = await MemoryMetadataStore.open_session(self.store)
        await MemoryMetadataStore.put(
            self.store, PATH, value, expected_version=MUST_NOT_EXIST, session=session
        )
        return value

    async def stored(self) -> Versioned | None:
        return await MemoryMetadataStore.get(self.store, PATH)


@pytest.fixture
async def owner(virtual_clock: VirtualClock) -> Owner:
    made = Owner(virtual_clock)
    await made.ownership.start()
    return made


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("outcome", ["made", "lost"])
async def test_an_answer_that_is_missing_is_found_out(owner: Owner, outcome: str) -> None:
    owner.store.outcomes = [outcome]
    await owner.acquire()
    assert owner.owns()
    stored = await owner.stored()
    assert stored is not None
    assert stored.owner == owner.session.session_id


async def test_what_can_wait_does_not_begin_while_the_store_is_away(owner: Owner) -> None:
    await owner.acquire()
    assert owner.ownership.may_change
    owner.session.lose_connection()
    assert not owner.ownership.may_change
    assert owner.owns(), "a lost connection is no doubt"
    await owner.session.get_in_doubt()
    assert not owner.ownership.may_change
    await owner.session.come_back()
    assert not owner.ownership.may_change, "not before the record was seen"
    await settle()
    assert owner.ownership.may_change
    await owner.session.get_in_doubt(is_told=False)
    assert not owner.ownership.may_change


async def test_who_overslept_delivers_nothing_before_the_records_were_seen(owner: Owner) -> None:
    settled: list[bool] = []
    owner.ownership.on_settled = lambda: settled.append(owner.ownership.must_hold())
    await owner.acquire()
    await owner.session.get_in_doubt()
    assert not owner.ownership.must_hold(), "it saw the doubt come"
    await owner.session.come_back()
    await settle()
    assert settled == [False]
    owner.session.oversleep()
    assert owner.ownership.must_hold()
    assert not owner.owns()
    await owner.session.get_in_doubt()
    await owner.session.come_back()
    assert owner.ownership.must_hold(), "not before the record was seen"
    await settle()
    assert settled == [False, False]
    assert owner.owns()


async def test_nothing_is_owned_while_the_session_is_in_doubt(owner: Owner) -> None:
    await owner.acquire()
    await owner.session.get_in_doubt(is_told=False)  # a process that slept: the clock says so
    assert not owner.owns()
    with pytest.raises(SessionInDoubtError, match="in doubt"):
        await owner.acquire()
    with pytest.raises(SessionInDoubtError):
        await owner.ownership.still_owns(NAMESPACE, BUNDLE)
    await owner.session.get_in_doubt()
    await owner.session.come_back()
    assert not owner.owns(), "not before the record was seen"
    await settle()
    assert owner.owns()
    assert not owner.lost


async def test_a_new_session_takes_back_what_is_free(owner: Owner) -> None:
    await owner.acquire()
    await owner.session.end()
    await owner.session.begin_anew()
    assert not owner.owns()
    await settle()
    assert owner.owns()
    stored = await owner.stored()
    assert stored is not None
    assert stored.owner == owner.session.session_id


async def test_what_was_split_while_the_session_was_away_is_lost(owner: Owner) -> None:
    """Another broker owned it meanwhile, and gave the whole up after it took the parts."""
    await owner.acquire()
    await owner.session.end()
    owner.is_current = False
    await owner.session.begin_anew()
    await settle()
    assert owner.lost == [BUNDLE]
    assert owner.ownership.owned_bundles() == []
    assert await owner.stored() is None


async def test_what_was_split_is_not_taken(owner: Owner) -> None:
    owner.is_current = False
    with pytest.raises(ServiceNotReadyError, match="was split"):
        await owner.acquire()
    assert owner.ownership.owned_bundles() == []
    assert await owner.stored() is None
    assert not owner.lost, "it had no topics"


async def test_a_bundle_counts_once_it_is_known_to_be_one(owner: Owner) -> None:
    owner.is_current = MetadataUnavailableError("not now")
    with pytest.raises(MetadataUnavailableError):
        await owner.acquire()
    assert not owner.owns()
    assert await owner.stored() is not None
    owner.is_current = True
    await asyncio.sleep(1)
    assert owner.owns(), "its record sends clients here, although nobody asked for it again"
    asked_count = owner.asked_count
    await owner.acquire()
    await owner.session.get_in_doubt()
    await owner.session.come_back()
    await settle()
    assert owner.asked_count == asked_count, "nobody else had it meanwhile"


async def test_what_was_split_goes_also_where_it_can_not_be_deleted_at_once(owner: Owner) -> None:
    owner.is_current = False

    async def fail_to_delete(change: str) -> None:
        if change == "delete":
            owner.store.before_change = None
            raise MetadataUnavailableError("not now")

    owner.store.before_change = fail_to_delete
    with pytest.raises(MetadataUnavailableError):
        await owner.acquire()
    await asyncio.sleep(1)
    assert owner.ownership.owned_bundles() == []
    assert await owner.stored() is None


async def test_a_new_session_replaces_the_record_of_the_old_one(owner: Owner) -> None:
    await owner.acquire()
    old = owner.session.real
    await owner.session.begin_anew()  # the old one has not ended for the server as yet
    await settle()
    assert owner.owns()
    await old.close()
    assert await owner.stored() is not None, "the old session's end takes nothing of ours"


async def test_what_somebody_else_owns_by_then_is_lost_and_left_alone(owner: Owner) -> None:
    await owner.acquire()
    await owner.session.end()
    value = await owner.somebody_else_takes_it()
    await owner.session.begin_anew()
    await settle()
    assert owner.lost == [BUNDLE]
    assert not owner.owns()
    await owner.ownership.release(NAMESPACE, BUNDLE)
    await owner.ownership.disable(NAMESPACE, BUNDLE)
    stored = await owner.stored()
    assert stored is not None
    assert (stored.value, stored.version) == (value, 0)


@pytest.mark.parametrize("work", ["disable", "release"])
async def test_unloading_never_touches_somebody_elses_record(owner: Owner, work: str) -> None:
    await owner.acquire()
    await owner.session.real.close()  # nobody has told us
    value = await owner.somebody_else_takes_it()
    await MemoryMetadataStore.put(owner.store, PATH, value)  # version 1
    await getattr(owner.ownership, work)(NAMESPACE, BUNDLE)
    stored = await owner.stored()
    assert stored is not None
    assert stored.value == value


async def test_a_deletion_that_was_made_without_an_answer_is_not_repeated_on_the_next_owners(
    owner: Owner,
) -> None:
    await owner.acquire()
    assert owner.ownership._stop_watching is not None
    owner.ownership._stop_watching()  # the news of it is lost, too
    owner.store.outcomes = ["made"]
    delete = owner.store.delete

    async def delete_and_go(path: str, *, expected_version: int | None = None) -> None:
        try:
            await delete(path, expected_version=expected_version)
        finally:
            owner.store.is_reachable = False  # what became of it can't be read

    with patch.object(owner.store, "delete", delete_and_go), pytest.raises(MetadataError):
        await owner.ownership.release(NAMESPACE, BUNDLE)
    value = await owner.somebody_else_takes_it()
    owner.store.is_reachable = True
    await asyncio.sleep(1)
    stored = await owner.stored()
    assert stored is not None
    assert (stored.value, stored.version) == (value, 0)
    assert owner.ownership.owned_bundles() == []


@pytest.mark.parametrize("outcome", ["made", "lost"])
async def test_what_can_not_be_given_up_now_goes_as_soon_as_it_can(
    owner: Owner, outcome: str
) -> None:
    await owner.acquire()
    await owner.ownership.disable(NAMESPACE, BUNDLE)
    owner.store.outcomes = [outcome]
    owner.store.is_reachable = False
    with pytest.raises(MetadataUnavailableError):
        await owner.ownership.release(NAMESPACE, BUNDLE)
    await asyncio.sleep(3)
    assert owner.ownership.owned_bundles() == [(NAMESPACE, BUNDLE)]
    assert (await owner.acquire()).is_disabled, "not taken back before it is gone"
    owner.store.is_reachable = True
    await asyncio.sleep(1)
    assert owner.ownership.owned_bundles() == []
    assert await owner.stored() is None
    assert not (await owner.acquire()).is_disabled


async def test_a_late_change_is_decided_before_the_bundle_is_given_up(owner: Owner) -> None:
    await owner.acquire()
    owner.store.outcomes = ["late"]
    owner.store.is_reachable = False
    with pytest.raises(MetadataUnavailableError):
        await owner.ownership.disable(NAMESPACE, BUNDLE)
    owner.store.is_reachable = True
    await owner.ownership.release(NAMESPACE, BUNDLE)
    value = await owner.somebody_else_takes_it()
    await owner.store.make_late()
    stored = await owner.stored()
    assert stored is not None
    assert (stored.value, stored.version) == (value, 0)


async def test_a_record_of_ours_that_nobody_unloads_serves_again(owner: Owner) -> None:
    value = OwnerRecord(addresses("a"), is_disabled=True).encode()
    await owner.store.put(PATH, value, expected_version=MUST_NOT_EXIST, session=owner.session)
    assert not (await owner.acquire()).is_disabled
    assert owner.owns()
    stored = await owner.stored()
    assert stored is not None
    assert not OwnerRecord.decode(stored.value).is_disabled


async def test_a_new_session_does_not_forget_that_a_bundle_is_being_unloaded(
    owner: Owner,
) -> None:
    await owner.acquire()
    owner.store.outcomes = ["lost"]
    owner.store.is_reachable = False
    with pytest.raises(MetadataUnavailableError):
        await owner.ownership.disable(NAMESPACE, BUNDLE)
    owner.store.is_reachable = True
    await owner.session.get_in_doubt()
    await owner.session.come_back()
    await settle()
    assert not owner.owns()
    stored = await owner.stored()
    assert stored is not None
    assert OwnerRecord.decode(stored.value).is_disabled


async def test_records_that_can_not_be_looked_at_are_looked_at_again(owner: Owner) -> None:
    await owner.acquire()
    owner.store.is_reachable = False
    await owner.session.get_in_doubt()
    await owner.session.come_back()
    await asyncio.sleep(3)
    assert not owner.owns()
    owner.store.is_reachable = True
    await asyncio.sleep(1)
    assert owner.owns()


async def test_asked_whether_it_still_owns_it_looks(owner: Owner) -> None:
    assert not await owner.ownership.still_owns(NAMESPACE, BUNDLE)
    await owner.acquire()
    assert await owner.ownership.still_owns(NAMESPACE, BUNDLE)
    owner.store.is_reachable = False
    with pytest.raises(MetadataUnavailableError):
        await owner.ownership.still_owns(NAMESPACE, BUNDLE)
    owner.store.is_reachable = True
    await owner.session.real.close()
    await owner.somebody_else_takes_it()
    assert not await owner.ownership.still_owns(NAMESPACE, BUNDLE)
    assert owner.lost == [BUNDLE]


async def test_a_restarted_broker_takes_over_its_own_record(virtual_clock: VirtualClock) -> None:
    owner = Owner(virtual_clock)
    former = await MemoryMetadataStore.open_session(owner.store)
    await MemoryMetadataStore.put(
        owner.store,
        PATH,
        OwnerRecord(addresses("a")).encode(),
        expected_version=MUST_NOT_EXIST,
        session=former,
    )
    await owner.ownership.start()
    await owner.acquire()
    assert owner.owns()
    await former.close()
    assert await owner.stored() is not None


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_record_that_somebody_meddled_with_is_put_right(
    owner: Owner,
    is_deleted: bool,  # noqa: FBT001
) -> None:
    await owner.acquire()
    if is_deleted:
        await MemoryMetadataStore.delete(owner.store, PATH)
    else:
        await MemoryMetadataStore.put(owner.store, PATH, OwnerRecord(addresses("x")).encode())
    await settle()
    assert owner.owns()
    stored = await owner.stored()
    assert stored is not None
    assert stored.owner == owner.session.session_id
    assert OwnerRecord.decode(stored.value) == OwnerRecord(addresses("a"))
    assert await owner.ownership.still_owns(NAMESPACE, BUNDLE)
    assert not owner.lost


async def test_who_watches_hears_that_another_has_taken_its_bundle(owner: Owner) -> None:
    await owner.acquire()
    owner.store.is_reachable = False
    await MemoryMetadataStore.delete(owner.store, PATH)
    value = await owner.somebody_else_takes_it()
    await settle()
    owner.store.is_reachable = True
    await asyncio.sleep(1)
    assert owner.lost == [BUNDLE]
    stored = await owner.stored()
    assert stored is not None
    assert stored.value == value


async def test_missed_changes_are_looked_for(owner: Owner) -> None:
    await owner.acquire()
    await owner.session.real.close()
    await owner.somebody_else_takes_it()
    owner.ownership._on_notification(Notification(NotificationType.ANYTHING, "/namespace"))
    await settle()
    assert owner.lost == [BUNDLE]


async def refused_with_a_late_record(owner: Owner) -> None:
    """Whoever asked for the bundle was told that the store can't be reached."""
    owner.store.outcomes = ["late"]

    async def goes_away(_: str) -> None:
        owner.store.is_reachable = False

    owner.store.before_change = goes_away
    with pytest.raises(MetadataUnavailableError):
        await owner.acquire()
    owner.store.before_change = None
    assert not owner.owns()


async def test_a_record_that_is_made_late_is_taken_up(owner: Owner) -> None:
    await refused_with_a_late_record(owner)
    await owner.store.make_late()
    stored = await owner.stored()
    assert stored is not None
    assert stored.owner == owner.session.session_id, "others are sent here from now on"
    await asyncio.sleep(3)
    owner.store.is_reachable = True
    await asyncio.sleep(1)
    assert owner.owns()
    assert await owner.stored() == stored
    await owner.ownership.disable(NAMESPACE, BUNDLE)
    await owner.ownership.release(NAMESPACE, BUNDLE)
    await asyncio.sleep(1)
    assert await owner.stored() is None


async def test_a_record_that_was_not_made_is_not_asked_for_again(owner: Owner) -> None:
    await refused_with_a_late_record(owner)
    owner.store.late.clear()
    value = await owner.somebody_else_takes_it()
    owner.store.is_reachable = True
    await asyncio.sleep(1)
    assert owner.ownership.owned_bundles() == []
    assert not owner.ownership._unsettled
    stored = await owner.stored()
    assert stored is not None
    assert stored.value == value
    owner.store.is_reachable = False
    owner.ownership._on_notification(Notification(NotificationType.MODIFIED, PATH))
    assert not owner.ownership._suspects


async def test_who_asked_and_did_not_wait_leaves_a_bundle_that_is_owned(owner: Owner) -> None:
    """A client goes while its LOOKUP creates the record."""
    asked = asyncio.get_running_loop().create_task(owner.acquire())
    is_made = asyncio.Event()
    put = owner.store.put

    async def unanswered(path: str, value: bytes, **how: Any) -> int:
        await put(path, value, **how)
        is_made.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("it is cancelled")

    with patch.object(owner.store, "put", unanswered):
        await is_made.wait()
        asked.cancel()
        await asyncio.wait((asked,))
    await asyncio.sleep(1)
    assert owner.owns()


async def test_a_bundle_whose_session_ended_while_it_was_taken_is_taken_again(
    owner: Owner,
) -> None:
    put = owner.store.put

    async def slowly_answered(path: str, value: bytes, **how: Any) -> int:
        version = await put(path, value, **how)
        await owner.session.end()
        await owner.session.begin_anew()
        await settle()
        return version

    with patch.object(owner.store, "put", slowly_answered):
        await owner.acquire()
    await asyncio.sleep(1)
    assert owner.owns()
    stored = await owner.stored()
    assert stored is not None
    assert stored.owner == owner.session.session_id


async def test_who_closes_leaves_no_record_that_was_made_late(owner: Owner) -> None:
    await refused_with_a_late_record(owner)
    owner.store.is_reachable = True
    await owner.ownership.close()
    await owner.store.make_late()
    assert await owner.stored() is None


async def test_who_closes_while_a_record_is_made_leaves_none(owner: Owner) -> None:
    """Our record is gone, and the look at it, which makes a new one, is cut off."""
    await owner.acquire()
    is_made = asyncio.Event()
    put = owner.store.put

    async def unanswered(path: str, value: bytes, **how: Any) -> int:
        await put(path, value, **how)
        is_made.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("it is cancelled")

    with patch.object(owner.store, "put", unanswered):
        await MemoryMetadataStore.delete(owner.store, PATH)
        await is_made.wait()
        await owner.ownership.close()
    assert await owner.stored() is None


@pytest.mark.parametrize("path", ["/namespace/t", "/namespace/t/n/a/b", "/namespace/ /n/0x0_0x1"])
async def test_changes_of_other_keys_are_nothing_to_look_at(owner: Owner, path: str) -> None:
    await owner.acquire()
    await settle()
    owner.store.is_reachable = False  # a look would fail, and be tried again
    owner.ownership._on_notification(Notification(NotificationType.CREATED, path))
    assert not owner.ownership._suspects


async def test_a_bundle_is_unloaded_although_its_session_has_ended(owner: Owner) -> None:
    """The record went with the session: the new session's says that it is being unloaded."""
    await owner.acquire()
    await owner.session.end()
    owner.store.is_reachable = False  # so that nothing is looked at before
    await owner.session.begin_anew()
    await settle()
    owner.store.is_reachable = True
    await owner.ownership.disable(NAMESPACE, BUNDLE)
    assert not owner.owns()
    stored = await owner.stored()
    assert stored is not None
    assert OwnerRecord.decode(stored.value).is_disabled
    await asyncio.sleep(1)
    assert not owner.owns(), "looking at the record does not take the mark away"
    await owner.ownership.release(NAMESPACE, BUNDLE)
    assert await owner.stored() is None
    assert not owner.lost


async def test_taking_over_a_former_record_leaves_the_next_owners(
    virtual_clock: VirtualClock,
) -> None:
    """The former session ends, and somebody takes the bundle, right before the deletion."""
    owner = Owner(virtual_clock)
    former = await MemoryMetadataStore.open_session(owner.store)
    await MemoryMetadataStore.put(
        owner.store,
        PATH,
        OwnerRecord(addresses("a")).encode(),
        expected_version=MUST_NOT_EXIST,
        session=former,
    )
    other = BundleOwnership(owner.store, lambda *_: None)
    await other.start()
    other._session = await MemoryMetadataStore.open_session(owner.store)
    await owner.ownership.start()
    changes: list[str] = []

    async def before_changes(change: str) -> None:
        changes.append(change)
        if len(changes) == 1:
            await former.close()
            await other.acquire(NAMESPACE, BUNDLE, addresses("b"))

    owner.store.before_change = before_changes
    record = await owner.acquire()
    assert not owner.owns()
    assert record.addresses != addresses("a")
    await settle()
    assert other.owns(NAMESPACE, BUNDLE)
    assert await other.still_owns(NAMESPACE, BUNDLE)
    stored = await owner.stored()
    assert stored is not None
    assert OwnerRecord.decode(stored.value) == OwnerRecord(addresses("b"))


async def test_a_record_that_could_not_be_deleted_goes_later(owner: Owner) -> None:
    await owner.acquire()
    await owner.ownership.disable(NAMESPACE, BUNDLE)
    owner.store.outcomes = ["lost"]
    owner.store.is_reachable = False
    with pytest.raises(MetadataUnavailableError):
        await owner.ownership.release(NAMESPACE, BUNDLE)
    assert not owner.owns()
    await asyncio.sleep(2)
    assert await owner.stored() is not None
    owner.store.is_reachable = True
    await asyncio.sleep(1)
    assert await owner.stored() is None
    assert not owner.ownership._leaving


async def test_a_record_that_could_not_be_deleted_goes_before_the_bundle_is_taken_again(
    owner: Owner,
) -> None:
    await owner.acquire()
    await owner.ownership.disable(NAMESPACE, BUNDLE)
    owner.store.outcomes = ["lost"]
    owner.store.is_reachable = False
    with pytest.raises(MetadataUnavailableError):
        await owner.ownership.release(NAMESPACE, BUNDLE)
    owner.store.is_reachable = True
    assert (await owner.acquire()).is_disabled
    await asyncio.sleep(1)
    assert await owner.acquire() == OwnerRecord(addresses("a"))
    assert owner.owns()
    await asyncio.sleep(2)
    assert owner.owns()
    stored = await owner.stored()
    assert stored is not None
    assert OwnerRecord.decode(stored.value) == OwnerRecord(addresses("a"))


async def test_a_record_that_is_as_it_should_be_is_not_written_again(owner: Owner) -> None:
    """What is not stored of it, such as that it is this machine alone, makes no difference."""
    local = replace(addresses("a"), is_loopback=True)
    await owner.ownership.acquire(NAMESPACE, BUNDLE, local)
    await owner.ownership.disable(NAMESPACE, BUNDLE)
    await asyncio.sleep(1)
    stored = await owner.stored()
    assert stored is not None
    assert stored.version == 1
