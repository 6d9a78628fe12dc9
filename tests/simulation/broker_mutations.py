"""Bugs put in on purpose that two brokers over hostile stores have to show.

Each mutation puts back what a broker did before it knew that sessions end under it, that answers
get lost, and that there are others. It lasts as long as its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataError,
    MetadataNotFoundError,
    ServiceMetadataError,
    StorageError,
)
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.log.appender import Appender
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.ledger_list_store import LedgerListStore
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.metadata import paths
from pulsar_py.metadata.cache import MetadataCache
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.resources import Resources
from pulsar_py.metadata.store import MUST_NOT_EXIST, NotificationType
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.dispatch import dispatcher
from pulsar_py.server.namespaces.owner_record import OwnerRecord
from pulsar_py.server.namespaces.ownership import BundleOwnership
from pulsar_py.server.namespaces.service import NamespaceService
from pulsar_py.server.namespaces.session_records import SessionRecord, SessionRecords
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.registry import TopicRegistry
from pulsar_py.server.topics.topic_watch import TopicWatch

Mutation = Callable[[], Any]
"""A context manager."""


@contextmanager
def _replaced(owner: type, **functions: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for name, function in functions.items():
            stack.enter_context(patch.object(owner, name, function))
        yield


# --- ownership: sessions end under living processes --------------------------------------------


@contextmanager
def owned_until_given_up() -> Iterator[None]:
    """What was taken once is owned, whatever became of the session."""
    with _replaced(
        BundleOwnership, _counts=lambda self, owned: True, check_session=lambda self: None
    ):
        yield


@contextmanager
def doubt_only_when_told() -> Iterator[None]:
    """The session's clock is not asked: a process that slept believes that it owns."""

    def counts(self: Any, owned: SessionRecord) -> bool:
        return self._is_validated and owned.session_id == self._owner.session_id

    with _replaced(BundleOwnership, _counts=counts, check_session=lambda self: None):
        yield


@contextmanager
def nothing_is_refused_in_doubt() -> Iterator[None]:
    """LOOKUP, PRODUCER and SUBSCRIBE succeed while nobody knows who owns the topic."""
    with _replaced(BundleOwnership, check_session=lambda self: None):
        yield


@contextmanager
def doubt_is_not_asked_again() -> Iterator[None]:
    """What is granted after a wait is granted by what was known before it."""
    with _replaced(NamespaceService, check_session=lambda self: None):
        yield


@contextmanager
def a_new_session_owns_what_the_old_one_did() -> Iterator[None]:
    """Nothing is looked at after a doubt."""

    async def validate(self: Any) -> None:
        self._is_validating = False
        self._settled_count = self._doubts_count
        for key, owned in self._owned.items():
            self._owned[key] = SessionRecord(owned.record, owned.version, self._owner.session_id)

    with _replaced(BundleOwnership, _validate=validate):
        yield


@contextmanager
def session_events_are_ignored() -> Iterator[None]:
    """Nobody validates: what was owned under an old session is neither owned nor lost."""
    with _replaced(BundleOwnership, _on_session_event=lambda self, event: None):
        yield


@contextmanager
def a_lost_bundles_topics_stay() -> Iterator[None]:
    """Who loses a bundle goes on serving its topics' clients."""
    with _replaced(NamespaceService, _on_bundle_lost=lambda self, namespace, bundle: None):
        yield


@contextmanager
def a_lost_topic_is_written_down() -> Iterator[None]:
    """Who loses a topic closes it as one that is unloaded: cursors, ledger and list are written."""
    with (
        _replaced(PersistentTopic, lose=lambda self: self.context.on_topic_lost(self)),
        cursors_are_written_before_it_is_known_who_owns(),
    ):
        yield


# --- records of owners --------------------------------------------------------------------------


@contextmanager
def a_former_sessions_record_is_somebody_elses() -> Iterator[None]:
    """A record that is not remembered is another broker's, also where an answer was lost."""

    def may_be_ours(self: Any, stored: Any, addresses: Any) -> bool:
        return False

    with _replaced(SessionRecords, may_be_ours=may_be_ours):
        yield


@contextmanager
def a_record_without_an_answer_is_forgotten() -> Iterator[None]:
    """A creation that got no answer is left to whoever asks next; the broker may own unknowingly."""
    with _replaced(BundleOwnership, _unsettle=lambda self, key, record: None):
        yield


@contextmanager
def who_gave_a_bundle_up_writes_on() -> Iterator[None]:
    """A good session alone says that a topic's metadata may be written."""

    def check_owner(self: Any, managed_ledger_name: str) -> None:
        self._ownership.check_session()

    with _replaced(NamespaceService, check_owner=check_owner):
        yield


@contextmanager
def owners_are_deleted_without_version() -> Iterator[None]:
    """Giving up deletes whatever record is there."""

    async def delete(self: Any, key: Any) -> None:
        try:
            await self._metadata.delete(paths.bundle_owner(*key))
        except MetadataNotFoundError:
            return

    with _replaced(BundleOwnership, _delete=delete):
        yield


@contextmanager
def an_unload_stops_where_it_fails() -> Iterator[None]:
    """What can't be given up at once is forgotten, and its record stays."""

    async def release(self: Any, namespace: Any, bundle: str, reason: str = "") -> None:
        key = (namespace, bundle)
        owned = self._owned.pop(key, None)
        if owned is not None:
            await self._metadata.delete(paths.bundle_owner(*key), expected_version=owned.version)

    original = SessionRecords.take

    async def take(self: Any, key: Any, stored: Any, record: OwnerRecord) -> SessionRecord | None:
        session_id = self._session().session_id
        if stored is not None and stored.owner == session_id:
            return SessionRecord(OwnerRecord.decode(stored.value), stored.version, session_id)
        return await original(self, key, stored, record)

    with _replaced(BundleOwnership, release=release), _replaced(SessionRecords, take=take):
        yield


@contextmanager
def a_topic_that_fails_to_close_ends_the_unload() -> Iterator[None]:
    """A list that can't be written now leaves the bundle marked as unloading."""

    async def close_topic(self: Any, topic: Any) -> None:
        try:
            await topic.close()
        except (ManagedLedgerFencedError, StorageError):
            return
        finally:
            self._drop(topic)

    with _replaced(TopicRegistry, _close_topic=close_topic):
        yield


# --- lists and cursors --------------------------------------------------------------------------


@contextmanager
def a_stale_owner_takes_over_the_version() -> Iterator[None]:
    """Who finds another version goes on from it: a woken broker overwrites the next owner's.

    A fence or a lost bundle does not stop it either: each of the two would, before it writes.
    """

    async def adopt(self: Any, refusal: Exception) -> bytes | None:
        stored = await self._read()
        self._is_now(MUST_NOT_EXIST if stored is None else stored.version, None)
        return None

    async def confirm(self: Any) -> None:
        return None

    with (
        _replaced(OwnedRecord, _adopt=adopt, confirm=confirm),
        _replaced(ManagedLedger, prove_ownership=confirm),
        a_lost_topic_is_written_down(),
    ):
        yield


@contextmanager
def cursors_are_written_before_it_is_known_who_owns() -> Iterator[None]:
    """A new session writes what the old one left, as long as nobody else has written it.

    Neither the session is asked nor the list of ledgers, which every new owner writes; each of the
    two sees nearly all that the other one does.
    """

    async def confirm(self: Any) -> None:
        return None

    with (
        _replaced(ManagedLedger, check_owner=lambda self: None),
        _replaced(LedgerListStore, confirm=confirm),
    ):
        yield


@contextmanager
def one_s_own_write_is_another_owners() -> Iterator[None]:
    """Where an answer was lost, the version that is found says that somebody else wrote it."""

    async def own_write(self: Any) -> None:
        return None

    with _replaced(OwnedRecord, _own_write=own_write):
        yield


@contextmanager
def a_fence_is_another_owner() -> Iterator[None]:
    """Whoever fences a ledger owns the topic, also who repairs a lost replica."""

    async def prove_ownership(self: Any) -> None:
        error = ManagedLedgerFencedError(f"{self.name}: a ledger was fenced")
        self.fence(error)
        raise error

    with _replaced(ManagedLedger, prove_ownership=prove_ownership):
        yield


@contextmanager
def ids_are_leased_in_blocks() -> Iterator[None]:
    """Each broker gives ids of a block of its own: they are unique, and don't grow."""
    blocks: dict[int, list[int]] = {}

    async def next_id(self: Any) -> int:
        block = blocks.get(id(self._metadata))
        if block is None or not block:
            first = await self._number() * 100
            block = blocks[id(self._metadata)] = list(range(first, first + 100))
        return block.pop(0)

    with _replaced(MetadataLedgerIds, next=next_id):
        yield


@contextmanager
def what_follows_a_refused_append_is_stored() -> Iterator[None]:
    """A busy store refuses one entry; those behind it overtake it."""
    original = Appender.append

    def append(self: Any, data: bytes, context: Any) -> None:
        refused, self._refused = self._refused, []
        try:
            original(self, data, context)
        finally:
            self._refused = refused + self._refused

    with _replaced(Appender, append=append):
        yield


@contextmanager
def copies_are_decoration() -> Iterator[None]:
    """The settings of ensemble and quorums have no effect on new ledgers."""

    def labelled(self: Any, own: Any) -> LedgerOptions:
        options = self.ledger_options
        labels = {**options.custom_metadata, **own}
        return LedgerOptions(password=options.password, custom_metadata=labels)

    with _replaced(ManagedLedgerConfig, _labelled=labelled):
        yield


@contextmanager
def a_store_that_can_not_be_read_now_is_left_alone() -> Iterator[None]:
    """A failed read is rare, and whatever it failed for, the next one is 15 seconds later."""
    with patch.object(dispatcher, "UNAVAILABLE_BACKOFF_MILLIS", 15_000):
        yield


# --- other brokers, other clusters ---------------------------------------------------------------


@contextmanager
def splits_elsewhere_are_not_seen() -> Iterator[None]:
    """Who cuts bundles is this broker alone: what it read once stays."""

    async def is_current(self: Any, namespace: Any, bundle: str) -> bool:
        return True

    with _replaced(
        NamespaceService,
        _on_bundles_changed=lambda self, namespace, policies: None,
        _is_current=is_current,
    ):
        yield


@contextmanager
def both_roles_are_one_store() -> Iterator[None]:
    """What clusters share is kept with what is this cluster's."""
    original = Resources.__init__

    def init(self: Any, local: Any, configuration: Any) -> None:
        original(self, local, local)

    with _replaced(Resources, __init__=init):
        yield


@contextmanager
def brokers_share_a_health_record() -> Iterator[None]:
    """There is one broker, and one record of its health."""

    async def check_health(self: Any) -> None:
        value = str(self.clock.wall_time_millis()).encode()
        await self.metadata.put(paths.HEALTH, value)
        if await self.metadata.get(paths.HEALTH) is None:
            raise ServiceMetadataError("the metadata store lost a key")

    with _replaced(BrokerService, check_health=check_health):
        yield


# --- watches ------------------------------------------------------------------------------------


@contextmanager
def a_cache_takes_no_news_for_none() -> Iterator[None]:
    """Caches ignore that anything may have changed."""
    original = MetadataCache._on_change

    def on_change(self: Any, notification: Any) -> None:
        if notification.type is not NotificationType.ANYTHING:
            original(self, notification)

    with _replaced(MetadataCache, _on_change=on_change):
        yield


@contextmanager
def topic_lists_take_no_news_for_none() -> Iterator[None]:
    """Who watches a namespace's topics is not told of what was missed."""

    async def compare(self: Any) -> None:
        return None

    with _replaced(TopicWatch, _compare=compare):
        yield


@contextmanager
def what_can_not_be_listed_now_is_never_listed() -> Iterator[None]:
    """Comparing a list of topics gives up where the store can't be asked."""

    async def compare(self: Any) -> None:
        for namespace in list(self._known):
            await self._compare_one(namespace)

    with _replaced(TopicWatch, _compare=compare):
        yield


@contextmanager
def what_can_not_be_read_now_is_never_read() -> Iterator[None]:
    """A cache gives a change up where the store can't be asked."""
    original = MetadataCache._refresh_next

    async def refresh_next(self: Any) -> None:
        stale = next(iter(self._stale), None)
        try:
            await original(self)
        except MetadataError:
            self._has_missed_changes = False
            self._stale.pop(stale, None)
            self._entries.pop(stale, None)

    with _replaced(MetadataCache, _refresh_next=refresh_next):
        yield


MUTATIONS: dict[str, Mutation] = {
    mutation.__name__: mutation
    for mutation in (
        owned_until_given_up,
        doubt_only_when_told,
        nothing_is_refused_in_doubt,
        doubt_is_not_asked_again,
        a_new_session_owns_what_the_old_one_did,
        session_events_are_ignored,
        a_lost_bundles_topics_stay,
        a_lost_topic_is_written_down,
        a_former_sessions_record_is_somebody_elses,
        a_record_without_an_answer_is_forgotten,
        who_gave_a_bundle_up_writes_on,
        owners_are_deleted_without_version,
        an_unload_stops_where_it_fails,
        a_topic_that_fails_to_close_ends_the_unload,
        a_stale_owner_takes_over_the_version,
        cursors_are_written_before_it_is_known_who_owns,
        one_s_own_write_is_another_owners,
        a_fence_is_another_owner,
        ids_are_leased_in_blocks,
        what_follows_a_refused_append_is_stored,
        copies_are_decoration,
        a_store_that_can_not_be_read_now_is_left_alone,
        splits_elsewhere_are_not_seen,
        both_roles_are_one_store,
        brokers_share_a_health_record,
        a_cache_takes_no_news_for_none,
        topic_lists_take_no_news_for_none,
        what_can_not_be_listed_now_is_never_listed,
        what_can_not_be_read_now_is_never_read,
    )
}
