"""`StickyKeyDispatcher`: sends all entries of one key to one consumer, in order (Key_Shared).

A selector maps the slot of an entry's sticky key to its consumer. An entry that can't be sent there
now waits in the redelivery set with its hash, and so do all newer ones of that hash; meanwhile
reading goes on, up to a look-ahead limit, to find entries for consumers that have permits. While a
hash drains at its former owner, no other consumer gets it (ordered AUTO_SPLIT only). In mode
STICKY, entries of slots without owner wait, too.

Invariant: of each hash, at most one consumer has unacknowledged entries that it was sent as the
slot's owner, unless `allow_out_of_order_delivery`.

Source: PersistentStickyKeyDispatcherMultipleConsumers in Pulsar's broker, PIP-379.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.dispatch.chunks import ChunkHolders
from pulsar_py.server.dispatch.dispatcher import DispatchConsumer, DispatchHost
from pulsar_py.server.dispatch.draining_hashes import DrainingHashes
from pulsar_py.server.dispatch.filtering import FilteredEntries, summary_of
from pulsar_py.server.dispatch.multiple import MultipleConsumersDispatcher, is_available
from pulsar_py.server.dispatch.pending_acks import PositionKey
from pulsar_py.server.dispatch.selectors import (
    ConsistentHashingSelector,
    HashRange,
    HashRangeAutoSplitSelector,
    HashRangeExclusiveSelector,
    StickyKeySelector,
)
from pulsar_py.server.dispatch.settings import DispatchSettings
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.dispatch.unacked_limits import BrokerUnackedLimit
from pulsar_py.wire.entry_summary import sticky_key

AUTO_SPLIT = KeySharedMeta()
"""The mode of a SUBSCRIBE without `keySharedMeta`: AUTO_SPLIT, in order."""

MAX_WAITING_HASHES = 2_000
"""Hashes with entries that wait that are looked at to say why they do."""


def new_selector(
    meta: KeySharedMeta, settings: DispatchSettings
) -> StickyKeySelector[DispatchConsumer]:
    """The selector for a mode and the broker's settings."""
    if meta.is_sticky:
        return HashRangeExclusiveSelector()
    if settings.uses_consistent_hashing:
        return ConsistentHashingSelector(settings.hashing_replica_points)
    return HashRangeAutoSplitSelector()


class _Allowances:
    """Messages that each consumer may still get in one round of sending."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: dict[DispatchConsumer, int] = {}

    def of(self, consumer: DispatchConsumer) -> int:
        """Messages that the consumer may still get; none if it is 0 or less."""
        left = self._left.get(consumer)
        if left is None:
            permits = consumer.permits
            left = (
                min(permits.available, permits.unacked_allowance) if is_available(consumer) else 0
            )
            self._left[consumer] = left
        return left

    def take(self, consumer: DispatchConsumer, messages_count: int) -> None:
        """Subtract the messages of an entry that the consumer will be sent."""
        self._left[consumer] -= messages_count


class StickyKeyDispatcher(MultipleConsumersDispatcher):
    """Owned by a PersistentSubscription while its type is Key_Shared."""

    subscription_type = SubscriptionType.KEY_SHARED

    def __init__(
        self,
        host: DispatchHost,
        meta: KeySharedMeta | None,
        broker_limit: BrokerUnackedLimit | None = None,
    ) -> None:
        super().__init__(host, broker_limit)
        self.meta = meta or AUTO_SPLIT
        self.selector = new_selector(self.meta, host.settings)
        self._keeps_order = not self.meta.allow_out_of_order_delivery
        self._drains = self._keeps_order and not self.meta.is_sticky
        self.draining: DrainingHashes[DispatchConsumer] = DrainingHashes()
        self.chunk_holders: ChunkHolders[DispatchConsumer] = ChunkHolders()

    def mismatch(self, key_shared_meta: KeySharedMeta | None) -> str | None:
        """The reason to refuse a consumer with another mode or order; None if both are equal."""
        theirs = key_shared_meta or AUTO_SPLIT
        ours = self.meta
        if ours.is_sticky != theirs.is_sticky:
            return (
                f"Active subscription key_shared mode of '{mode_name(ours)}' is different than "
                f"the connecting consumer's key_shared mode '{mode_name(theirs)}'."
            )
        if ours.allow_out_of_order_delivery != theirs.allow_out_of_order_delivery:
            return (
                "Active subscription allowOutOfOrderDelivery is "
                f"{ours.allow_out_of_order_delivery}, the connecting consumer's is "
                f"{theirs.allow_out_of_order_delivery}."
            )
        return None

    def ranges_of(self, consumer: DispatchConsumer) -> Sequence[HashRange]:
        """The slots a consumer owns; for stats."""
        return self.selector.ranges_of(consumer)

    # Consumers and hashes.

    def add_consumer(self, consumer: DispatchConsumer) -> None:
        """Add a consumer and give it slots; those with unacknowledged entries elsewhere drain."""
        self.selector.add(consumer)
        super().add_consumer(consumer)
        self._reassign()

    def _on_consumer_left(self, consumer: DispatchConsumer) -> None:
        """Give its slots to others; its entries are sent before newer ones of the same hash."""
        self.selector.remove(consumer)
        self.chunk_holders.forget_consumer(consumer)
        self.draining.on_consumer_removed(consumer)
        self._reassign()

    def _reassign(self) -> None:
        if self._drains and self.draining.reassign(self.consumers, self.selector.select):
            self._on_unblocked()

    def _on_hash_released(self, consumer: DispatchConsumer, sticky_hash: int) -> None:
        if self._drains and self.draining.on_released(consumer, sticky_hash):
            self._on_unblocked()

    def _on_hashes_released(self, consumer: DispatchConsumer, sticky_hashes: Sequence[int]) -> None:
        if self._drains and self.draining:
            for sticky_hash in dict.fromkeys(sticky_hashes):
                if sticky_hash:
                    self._on_hash_released(consumer, sticky_hash)

    def _settle_together(
        self, holder: DispatchConsumer, positions: Sequence[PositionKey]
    ) -> tuple[int, Sequence[PositionKey]]:
        if self.chunk_holders:  # each entry may be a chunk
            return 0, positions
        return super()._settle_together(holder, positions)

    def _settle(self, holder: DispatchConsumer, position: PositionKey) -> int:
        messages_count = super()._settle(holder, position)
        if self.chunk_holders and self.chunk_holders.forget(position):
            # Chunks that had to be sent to this consumer may now be sent to the slot's owner.
            self._on_unblocked()
        return messages_count

    def on_mark_delete_moved(self, position: Position) -> None:
        """Remove entries up to `position` from all pending ones: they were expired or skipped."""
        self.chunk_holders.forget_up_to(position)
        super().on_mark_delete_moved(position)

    def _on_gone(self, position: PositionKey) -> None:
        self.chunk_holders.forget(position)

    def _on_unblocked(self) -> None:
        """Read soon: entries of a drained hash may be sent. Several hashes share one read."""
        self._may_replay = True
        self._schedule_read(self._host.settings.unblocking_interval_millis / 1000)

    def _forget_state(self) -> None:
        super()._forget_state()
        self.draining.clear()
        self.chunk_holders.clear()

    def close(self) -> None:
        """Stop reading, and clear the slots."""
        super().close()
        self.selector = new_selector(self.meta, self._host.settings)

    # Reading.

    def _select_replay(self, limit: int) -> list[PositionKey]:
        """Positions whose consumer can be sent them; those with an unknown hash have to be read."""
        allowances = _Allowances()
        takers = {each for each in self.redelivery.hashes if self._taker(each, allowances)}
        takers.add(0)

        def accepts(position: PositionKey, sticky_hash: int) -> bool:
            holder = self._former_owner(self.chunk_holders.uuid_of(position), sticky_hash)
            return sticky_hash in takers if holder is None else allowances.of(holder) > 0

        if not self.chunk_holders:
            return self.redelivery.select(limit, lambda _, sticky_hash: sticky_hash in takers)
        return self.redelivery.select(limit, accepts)

    def _former_owner(self, uuid: str | None, sticky_hash: int) -> DispatchConsumer | None:
        """The consumer that must get a chunk, as it has others of its message but not the slot."""
        holder = self.chunk_holders.holder(uuid)
        return None if holder is self.selector.select(sticky_hash) else holder

    def _taker(self, sticky_hash: int, allowances: _Allowances) -> DispatchConsumer | None:
        """The consumer that can be sent an entry of a hash now."""
        consumer = self.selector.select(sticky_hash)
        if consumer is None:
            return None
        if self._drains and self.draining.refuses(sticky_hash, consumer):
            return None
        return consumer if allowances.of(consumer) > 0 else None

    def _is_reading_ahead_forbidden(self) -> bool:
        limit = self.look_ahead_limit
        if limit and len(self.redelivery) >= limit:
            return True
        return super()._is_reading_ahead_forbidden()

    @property
    def look_ahead_limit(self) -> int:
        """Waiting entries from which on no new ones are read; 0: no limit."""
        settings = self._host.settings
        limit = settings.look_ahead_per_subscription
        if settings.look_ahead_per_consumer:
            per_consumers = settings.look_ahead_per_consumer * len(self.consumers)
            limit = min(limit or per_consumers, per_consumers)
        return limit

    @property
    def look_ahead_setting(self) -> str:
        """The setting that this limit comes from."""
        is_of_all = self.look_ahead_limit == self._host.settings.look_ahead_per_subscription
        name = "keySharedLookAheadMsgInReplayThresholdPer"
        return name + ("Subscription" if is_of_all else "Consumer")

    # Hashes that wait.

    def waiting_hashes(self) -> list[int]:
        """Hashes of entries that wait, the first `MAX_WAITING_HASHES`."""
        return list(islice(self.redelivery.hashes, MAX_WAITING_HASHES))

    def awaited_consumers(self) -> list[DispatchConsumer]:
        """The consumers that can't be sent entries that wait for them."""
        if not any(map(is_available, self.consumers)):
            return list(self.consumers)
        owners = {
            owner: None
            for sticky_hash in self.waiting_hashes()
            if (owner := self.selector.select(sticky_hash)) is not None
            and not self.draining_elsewhere(sticky_hash, owner)
        }
        return [each for each in self.consumers if each in owners and not is_available(each)]

    def draining_elsewhere(
        self, sticky_hash: int, owner: DispatchConsumer
    ) -> DispatchConsumer | None:
        """The consumer, not its owner, that a hash has to drain from before its owner gets it."""
        former = self.draining.owner(sticky_hash) if self._drains else None
        return None if former is owner else former

    # Sending.

    def _distribute(self, filtered: FilteredEntries, *, is_replay: bool) -> None:
        """Send each entry to the owner of its slot, or add it to the redelivery set."""
        allowances = _Allowances()
        groups: defaultdict[DispatchConsumer, tuple[list[Entry], list[int]]] = defaultdict(
            lambda: ([], [])
        )
        held_back: set[int] = set()  # Hashes of which an entry of this round has to wait.
        for entry in filtered.entries:
            summary = summary_of(entry)
            sticky_hash = self.selector.slot_of(sticky_key(summary))
            former_owner = None
            if filtered.has_chunks:
                former_owner = self._former_owner(summary.uuid, sticky_hash)
            consumer = None
            if former_owner is not None:
                consumer = self._taker_of_chunk(
                    former_owner, sticky_hash, allowances, is_replay=is_replay
                )
            elif not self._waits(sticky_hash, held_back, is_replay=is_replay):
                consumer = self._taker(sticky_hash, allowances)
            if consumer is None:
                held_back.add(sticky_hash)
                self.redelivery.add((entry.ledger_id, entry.entry_id), sticky_hash)
                self.chunk_holders.on_waiting((entry.ledger_id, entry.entry_id), summary.uuid)
                continue
            entries, hashes = groups[consumer]
            entries.append(entry)
            hashes.append(sticky_hash)
            allowances.take(consumer, filtered.messages_of(entry))
        for consumer, (entries, hashes) in groups.items():
            self._send(consumer, entries, filtered, is_replay=is_replay, sticky_hashes=hashes)
            if filtered.has_chunks:
                self._on_chunks_sent(consumer, entries)

    def _taker_of_chunk(
        self,
        former_owner: DispatchConsumer,
        sticky_hash: int,
        allowances: _Allowances,
        *,
        is_replay: bool,
    ) -> DispatchConsumer | None:
        """The former owner, if it can be sent a chunk now; waiting chunks come before new ones."""
        if allowances.of(former_owner) <= 0:
            return None
        if not is_replay and self.redelivery.has_hash(sticky_hash):
            self._may_replay = True
            return None
        return former_owner

    def _on_chunks_sent(self, consumer: DispatchConsumer, entries: Sequence[Entry]) -> None:
        for entry in entries:
            position = (entry.ledger_id, entry.entry_id)
            if position in consumer.pending_acks:
                self.chunk_holders.on_sent(position, summary_of(entry).uuid, consumer)

    def _waits(self, sticky_hash: int, held_back: set[int], *, is_replay: bool) -> bool:
        """Whether an older entry of the hash has to be sent first."""
        if not self._keeps_order:
            return False
        return sticky_hash in held_back or (not is_replay and self.redelivery.has_hash(sticky_hash))


def mode_name(meta: KeySharedMeta) -> str:
    """The protocol's name of the mode."""
    return "STICKY" if meta.is_sticky else "AUTO_SPLIT"
