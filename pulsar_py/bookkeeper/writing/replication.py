"""`Replicator`: sends entries to the bookies of an ensemble, and replaces failed ones (edge).

The writer of a ledger has a replicator, and so has recovery, which adds the entries that it found
once more. It carries out what `WriteQuorum` decides: an entry is packed once, with the last add
confirmed of that moment, and sent to its write set. A bookie that fails is given up at once; the
owner (`ReplicationOwner`) chooses another one and records it in the ledger's metadata, and all
entries that are not confirmed are sent there. If there is no other one, a bookie whose failure may
have passed is tried once more, with all entries that it has not answered. Answers of a bookie that
was given up are ignored.

While the metadata store is unavailable no replacement can be recorded. Then writing goes on without
the bookie, if each entry still has its ack quorum, and the bookie is replaced later. What it has
stored does not count from then on, because a change of the metadata whose answer was lost may have
replaced it.

The owner is told once of the error that ends the replicator. It ends at once if a bookie answers
that the ledger is fenced or has another key, or if an entry is not confirmed in time.

Source: LedgerHandle, PendingAddOp, EnsembleUtils in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Protocol

from pulsar_py.bookkeeper.bookies.bookies import BookieLink
from pulsar_py.bookkeeper.bookies.requests import AddRequest, BookieRequest
from pulsar_py.bookkeeper.cluster.cluster import LedgerCluster, LedgerInUse
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.entry_format import HEAD_BYTES, packed_head, packed_heads
from pulsar_py.bookkeeper.protocol.frames import (
    ADD_OVERHEAD_BYTES,
    BookieAnswer,
    BookieCode,
    BookieOperation,
    RequestFlags,
    StoredAnswers,
)
from pulsar_py.bookkeeper.writing.sent_entries import JOINED_BYTES, SentEntries, SentRun
from pulsar_py.bookkeeper.writing.write_quorum import WriteQuorum
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import (
    LedgerFencedError,
    NotEnoughBookiesError,
    StorageError,
    StoreUnavailableError,
)

logger = logging.getLogger(__name__)

LOOKS: Final = 4
"""How often late entries are looked for, within their time limit."""
CHANGE_SHARE: Final = 1 / 3
"""The share of that time limit that a change of the ensemble may take."""
LATER_SECONDS: Final = 1.0
"""The pause before the metadata store is asked again."""
KEEP_PAUSE_SECONDS: Final = 0.5
"""The pause before a bookie that failed is tried again."""
KEEP_AGAIN_SECONDS: Final = 60.0
"""A bookie that fails twice within this time is not tried again."""
_MAY_PASS: Final = frozenset({frames.LOST, int(BookieCode.ETOOMANYREQUESTS)})
"""Failures that may pass; time-outs are not among them, as they would cost the same time again."""


class ReplicationOwner(Protocol):
    """The interface to the owner: the writer of the ledger, or its recovery."""

    def on_progress(self) -> None:
        """Called when entries were confirmed; on the loop, never from within `add`."""

    def on_released(self, size_bytes: int) -> None:
        """Called when so many bytes of entries, overhead included, were released."""

    def on_replication_failed(self, error: StorageError) -> None:
        """Nothing more will be confirmed."""

    async def replace(
        self, failed: Mapping[int, FailedBookie], first_entry_id: int
    ) -> Mapping[int, str]:
        """Find and record other bookies in these places, from an entry on.

        One that is named again is tried again. The places that it leaves out are done without, if
        an ack quorum is left of every write set.

        Raises:
            StorageError: There are none, or they could not be recorded.
        """


@dataclass(frozen=True, slots=True)
class FailedBookie:
    """A bookie that has to be replaced."""

    bookie_id: str
    may_be_kept: bool
    """Whether it may be tried again: its failure may pass, and it was not tried just before."""


class _Replica:
    """The bookie in one place of the ensemble, as long as it is there."""

    __slots__ = ("index", "is_given_up", "link", "replicator")

    def __init__(self, replicator: Replicator, index: int, link: BookieLink) -> None:
        self.replicator = replicator
        self.index = index
        self.link = link
        self.is_given_up = False

    def on_stored(self, entry_ids: Sequence[int]) -> None:
        self.replicator.on_stored(self, entry_ids)

    def on_answers(self, answers: Sequence[tuple[BookieRequest, BookieAnswer]]) -> None:
        self.replicator.on_answers(self, answers)


class Replicator:
    """Adds the entries of one ledger; lives until its owner stops it or it fails."""

    def __init__(
        self,
        cluster: LedgerCluster,
        ledger: LedgerInUse,
        owner: ReplicationOwner,
        *,
        flags: RequestFlags = RequestFlags.NONE,
        last_confirmed: int = -1,
        length_bytes: int = 0,
    ) -> None:
        """Begins after `last_confirmed`, up to where payloads have `length_bytes`."""
        metadata = ledger.recorded.metadata
        self._cluster = cluster
        self._ledger = ledger
        self._owner = owner
        self._flags = flags
        self._quorum = WriteQuorum(
            ensemble_size=metadata.ensemble_size,
            write_quorum_size=metadata.write_quorum_size,
            ack_quorum_size=metadata.ack_quorum_size,
            last_confirmed=last_confirmed,
        )
        self._replicas = [
            _Replica(self, index, cluster.bookies.link(bookie_id))
            for index, bookie_id in enumerate(metadata.last_segment.bookie_ids)
        ]
        self._frame_head_bytes = ADD_OVERHEAD_BYTES + HEAD_BYTES + ledger.digest.size_bytes
        self._entries = SentEntries(self._frame_head_bytes)  # not released
        self._failed: dict[int, FailedBookie] = {}  # places whose bookies have to be replaced
        self._retried: dict[str, float] = {}  # bookies that were kept, and when
        self.failed_bookies: dict[str, None] = {}
        """All bookies that failed while this ledger was written, in that order."""
        self._is_changing = False
        self._timer: asyncio.TimerHandle | None = None
        self._looks: deque[int] = deque()  # the last entries added at the last looks
        self._added_bytes = length_bytes
        self.confirmed_bytes = length_bytes
        """The bytes of all payloads up to the last confirmed entry."""
        self.error: StorageError | None = None
        """The error that ended it, None while it works."""

    @property
    def last_added(self) -> int:
        """The last entry added."""
        return self._quorum.last_added

    @property
    def last_confirmed(self) -> int:
        """The last entry that is confirmed, with all before it."""
        return self._quorum.last_confirmed

    @property
    def last_settled(self) -> int:
        """The last entry for which, as for all before it, its whole write set has answered."""
        return self._quorum.last_settled

    @property
    def pending_count(self) -> int:
        """The number of entries that are not confirmed."""
        return self._quorum.pending_count

    @property
    def is_stopped(self) -> bool:
        """Nothing more will be confirmed."""
        return self.error is not None

    def add(
        self, pieces: Sequence[EntryBytes], size_bytes: int, *, length_bytes: int | None = None
    ) -> int:
        """Send one more entry; returns its id.

        From `JOINED_BYTES` on, nobody changes its memory any more.

        `length_bytes` is given for an entry that says by itself how much all up to it have.

        # Hot path: one call an entry.
        """
        assert self.error is None
        ledger = self._ledger
        quorum = self._quorum
        entry_id = quorum.add()
        before_bytes = self._added_bytes
        self._added_bytes = before_bytes + size_bytes if length_bytes is None else length_bytes
        head = packed_head(
            ledger.digest,
            ledger_id=ledger.ledger_id,
            entry_id=entry_id,
            last_add_confirmed=quorum.last_confirmed,
            length_bytes=self._added_bytes,
            pieces=pieces,
        )
        frame_head = frames.add_head(ledger.master_key, len(head) + size_bytes, self._flags)
        frame: tuple[EntryBytes, ...] = (frame_head + head, *pieces)
        if size_bytes < JOINED_BYTES:
            frame = (b"".join(frame),)
        self._entries.append(
            SentRun(
                entry_id,
                frame,
                before_bytes=before_bytes,
                lengths_bytes=(self._added_bytes,),
                payload_bytes=size_bytes,
            )
        )
        for index in quorum.write_set(entry_id):
            self._send(entry_id, frame, self._replicas[index])
        if self._timer is None:
            self._set_timer()
        return entry_id

    @property
    def takes_runs(self) -> bool:
        """Whether `add_run` may be called."""
        return self._quorum.goes_everywhere and self.error is None

    def add_run(self, payloads: Sequence[bytes]) -> None:
        """Send more entries, each to the whole ensemble.

        # Hot path: one call a run; the bookies share its frames.
        """
        assert self.takes_runs
        ledger, quorum = self._ledger, self._quorum
        ledger_id, digest = ledger.ledger_id, ledger.digest
        count = len(payloads)
        first_entry_id = quorum.add_run(count)
        before_bytes = self._added_bytes
        sizes_bytes = list(map(len, payloads))
        lengths_bytes = list(accumulate(sizes_bytes, initial=before_bytes))[1:]
        self._added_bytes = lengths_bytes[-1]
        heads, digests = packed_heads(
            digest,
            ledger_id=ledger_id,
            first_entry_id=first_entry_id,
            last_add_confirmed=quorum.last_confirmed,
            lengths_bytes=lengths_bytes,
            payloads=payloads,
        )
        frame_heads = frames.add_heads(
            ledger.master_key, HEAD_BYTES + digest.size_bytes, sizes_bytes, self._flags
        )
        payload_bytes = self._added_bytes - before_bytes
        pieces: list[EntryBytes]
        if payload_bytes < count * JOINED_BYTES:
            parts = [b""] * (4 * count)
            parts[::4], parts[1::4], parts[2::4], parts[3::4] = (
                frame_heads, heads, digests, payloads,
            )  # fmt: skip
            pieces = [b"".join(parts)]
        else:
            pieces = [b""] * (2 * count)
            pieces[::2] = map(b"".join, zip(frame_heads, heads, digests, strict=True))
            pieces[1::2] = payloads
        self._entries.append(
            SentRun(
                first_entry_id,
                pieces,
                before_bytes=before_bytes,
                lengths_bytes=lengths_bytes,
                payload_bytes=payload_bytes,
            )
        )
        last_entry_id = first_entry_id + count - 1
        answers = StoredAnswers(ledger_id, first_entry_id, last_entry_id)
        for replica in self._replicas:
            if not replica.is_given_up:
                replica.link.send(
                    AddRequest(
                        ledger_id, first_entry_id, last_entry_id, pieces, replica, answers=answers
                    )
                )
        if self._timer is None:
            self._set_timer()

    def _send(self, entry_id: int, frame: tuple[EntryBytes, ...], replica: _Replica) -> None:
        if replica.is_given_up:
            return  # whoever takes its place gets it
        ledger_id = self._ledger.ledger_id
        replica.link.send(AddRequest(ledger_id, entry_id, entry_id, frame, replica))

    def on_stored(self, replica: _Replica, entry_ids: Sequence[int]) -> None:
        """Take the ids of entries that one bookie has stored.

        # Hot path: one call for the answers of one read.
        """
        if self.error is None and not replica.is_given_up:
            self._quorum.on_stored(entry_ids, replica.index)
            self._advance()

    def on_answers(
        self, replica: _Replica, answers: Sequence[tuple[BookieRequest, BookieAnswer]]
    ) -> None:
        """Take the errors of add requests to one bookie, connection errors included."""
        if self.error is not None or replica.is_given_up:
            return
        answer = answers[0][1]
        assert answer.code != BookieCode.EOK
        if answer.code in (BookieCode.EFENCED, BookieCode.EUA):
            self.fail(self._refusal(replica, answer))
        else:
            self._give_up(replica, answer)

    def _refusal(self, replica: _Replica, answer: BookieAnswer) -> StorageError:
        name = f"ledger {self._ledger.ledger_id}: entry {answer.entry_id}"
        if answer.code == BookieCode.EFENCED:
            return LedgerFencedError(f"{name}: {replica.link.bookie_id} has fenced the ledger")
        return StorageError(f"{name}: {replica.link.bookie_id} has another key for the ledger")

    def _advance(self) -> None:
        """Confirm entries as far as possible, tell the owner, and release memory."""
        quorum, entries = self._quorum, self._entries
        if quorum.advance():
            self.confirmed_bytes = entries.length_bytes(quorum.last_confirmed)
            self._owner.on_progress()
        if released := quorum.take_released():
            self._owner.on_released(entries.release(released))

    # Replacing bookies

    def _give_up(self, replica: _Replica, answer: BookieAnswer) -> None:
        """Give up a bookie that failed, and begin to replace it."""
        replica.is_given_up = True
        logger.info(
            "bookie failed for a ledger",
            extra={
                "ledger_id": self._ledger.ledger_id,
                "bookie": replica.link.bookie_id,
                "entry_id": answer.entry_id,
                "code": frames.code_name(answer.code),
            },
        )
        bookie_id = replica.link.bookie_id
        retried_seconds = self._retried.get(bookie_id, float("-inf"))
        now = self._cluster.clock.monotonic_seconds()
        may_be_kept = answer.code in _MAY_PASS and now - retried_seconds >= KEEP_AGAIN_SECONDS
        self._failed[replica.index] = FailedBookie(bookie_id, may_be_kept)
        self.failed_bookies[bookie_id] = None
        self._quorum.give_up()
        self._begin_change()

    def _begin_change(self) -> None:
        if self._is_changing:
            return
        name = f"ensemble of {self._ledger.ledger_id}"
        try:
            self._cluster.tasks.spawn(self._change(), name)
        except RuntimeError:
            self.fail(StorageError(f"ledger {self._ledger.ledger_id}: the store is closed"))
        else:
            self._is_changing = True

    async def _change(self) -> None:
        """Replace all failed bookies, round by round; then confirmations go on."""
        try:
            while self._failed and self.error is None:
                failed, self._failed = self._failed, {}
                try:
                    others = await self._replaced(failed)
                except NotEnoughBookiesError:
                    raise
                except StoreUnavailableError as error:
                    self._go_on_without(failed, error)
                    continue
                if self.error is None:
                    self._do_without(failed.keys() - others.keys())
                    await self._put_in_place(failed, others)
        except StorageError as error:
            self.fail(error)
        finally:
            self._is_changing = False
        if self.error is None:
            self._quorum.resume()
            self._advance()

    async def _replaced(self, failed: Mapping[int, FailedBookie]) -> Mapping[int, str]:
        """The bookies that were recorded in place of failed ones, by place.

        Raises:
            StoreUnavailableError: It can't be recorded now.
            StorageError: Nothing more can be added.
        """
        seconds = CHANGE_SHARE * self._cluster.limits.answer_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._owner.replace(failed, self.last_confirmed + 1)
        except TimeoutError:
            raise StoreUnavailableError(
                f"ledger {self._ledger.ledger_id}: no other bookie was found in {seconds:g} seconds"
            ) from None

    def _go_on_without(
        self, failed: Mapping[int, FailedBookie], reason: StoreUnavailableError
    ) -> None:
        """Leave places empty while the metadata store is unavailable.

        Raises:
            StoreUnavailableError: Too few bookies are left for that.
        """
        if self.error is not None:
            return
        self._quorum.distrust(failed.keys())
        if not self._quorum.do_without(failed.keys()):
            raise reason
        logger.warning(
            "bookie is replaced later",
            extra={
                "ledger_id": self._ledger.ledger_id,
                "bookies": [each.bookie_id for each in failed.values()],
                "reason": str(reason),
            },
        )
        name = f"ensemble of {self._ledger.ledger_id}, later"
        self._cluster.tasks.spawn(self._replace_later(failed), name)

    async def _replace_later(self, failed: Mapping[int, FailedBookie]) -> None:
        """Replace bookies once the metadata store answers; confirmations go on until then."""
        while self.error is None:
            await self._cluster.clock.sleep(LATER_SECONDS)
            try:
                await self._cluster.records.read(self._ledger.ledger_id, is_synced=True)
            except StoreUnavailableError:
                continue
            except StorageError as error:
                self.fail(error)
            break
        if self.error is None:
            for (
                index,
                each,
            ) in failed.items():  # it owes nothing any more, so it can't be tried again
                self._failed[index] = replace(each, may_be_kept=False)
            self._quorum.give_up()
            self._begin_change()

    def _do_without(self, places: AbstractSet[int]) -> None:
        if places and not self._quorum.do_without(places):
            raise NotEnoughBookiesError(
                f"ledger {self._ledger.ledger_id}: too few of its bookies are left, "
                f"{', '.join(self.failed_bookies)} failed"
            )

    async def _put_in_place(
        self, failed: Mapping[int, FailedBookie], others: Mapping[int, str]
    ) -> None:
        kept = [index for index, other in others.items() if other == failed[index].bookie_id]
        if kept:
            self._cluster.counters.same_bookie_retries_count += 1
            await self._cluster.clock.sleep(KEEP_PAUSE_SECONDS)
            if self.error is not None:
                return
        now = self._cluster.clock.monotonic_seconds()
        for index, bookie_id in others.items():
            if index in kept:
                self._retried[bookie_id] = now
            self._replicas[index] = _Replica(self, index, self._cluster.bookies.link(bookie_id))
        again = self._quorum.retry(kept)
        again += self._quorum.restart([index for index in others if index not in kept])
        for entry_id, index in sorted(again):
            self._send(entry_id, self._entries.frame(entry_id), self._replicas[index])

    def held(self, first: int, last: int, max_bytes: int) -> list[EntryBytes]:
        """The payloads in memory from entry `first` on, at least one if that entry is there."""
        found: list[EntryBytes] = []
        for entry_id in range(first, last + 1):
            payload = self._entries.payload(entry_id)
            if payload is None:
                break
            max_bytes -= len(payload)
            if found and max_bytes < 0:
                break
            found.append(payload)
        return found

    def on_bookie_gone(self, bookie_id: str) -> None:
        """Replace a bookie that does not answer any more, even if no entry waits for it."""
        for replica in self._replicas:
            if replica.link.bookie_id != bookie_id or replica.is_given_up or self.error is not None:
                continue
            self._retried[bookie_id] = self._cluster.clock.monotonic_seconds()
            self._give_up(
                replica,
                BookieAnswer(
                    BookieOperation.ADD, frames.LOST, self._ledger.ledger_id, self.last_added
                ),
            )

    @property
    def bookie_ids(self) -> list[str]:
        """The bookies of the ensemble."""
        return [replica.link.bookie_id for replica in self._replicas]

    def waiting_bytes(self) -> list[int]:
        """The bytes of unanswered requests to each bookie of the ensemble.

        # Hot path: one call an entry.
        """
        return [replica.link.waiting_bytes for replica in self._replicas]

    # Ends

    def _set_timer(self) -> None:
        interval_seconds = self._cluster.limits.answer_timeout_seconds / LOOKS
        self._timer = self._cluster.clock.call_later(interval_seconds, self._look)

    def _look(self) -> None:
        """Fail if an entry that was pending three checks ago is still not confirmed."""
        self._timer = None
        if self.error is not None:
            return
        if not self._quorum.pending_count:
            self._looks.clear()
            return
        self._set_timer()
        self._looks.append(self.last_added)
        if len(self._looks) == LOOKS and self._looks.popleft() > self.last_confirmed:
            self.fail(
                StorageError(
                    f"ledger {self._ledger.ledger_id}: entry {self.last_confirmed + 1} was not "
                    f"confirmed in {self._cluster.limits.answer_timeout_seconds:g} seconds"
                )
            )

    def fail(self, error: StorageError) -> None:
        """End the replication with an error, and tell the owner."""
        if self.error is None:
            self.stop(error)
            self._owner.on_replication_failed(error)

    def stop(self, error: StorageError) -> None:
        """End the replication and release all memory. May be called again."""
        if self.error is not None:
            return
        self.error = error
        if self._timer is not None:
            self._timer.cancel()
        entries, self._entries = self._entries, SentEntries(self._frame_head_bytes)
        self._owner.on_released(entries.held_bytes)
