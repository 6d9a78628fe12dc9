"""The queue of entries that wait for their SEND_RECEIPT, in order (pure).

Receipts come in the order of the entries, each with the sequence id of its SEND, so a receipt is
matched with the oldest entry. A lower id belongs to an entry that timed out; a higher one means
that broker and client disagree, and the connection is closed.

Source: ProducerImpl.ackReceived and OpSendMsgQueue in Pulsar's Java client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pulsar_py.client.producing.send_result import SendCompletion
from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.message_id import MessageId

__all__ = ["Buffers", "ChunkedSend", "PendingEntry", "PendingMessages"]

Buffers = Sequence[bytes | memoryview]
"""The parts of one SEND frame."""


class ChunkedSend:
    """State that the chunks of one message share."""

    __slots__ = ("first_chunk",)

    def __init__(self) -> None:
        # The first chunk's ledger and entry; None before its receipt.
        self.first_chunk: MessageId | None = None


class PendingEntry(SendCompletion):
    """One SEND (a message, a batch or a chunk), and its result for the callers that wait.

    Of a chunked message the last chunk stands for the whole: it alone counts messages and bytes.
    """

    __slots__ = (
        "buffers",
        "bytes_count",
        "chunked",
        "created_at",
        "highest_sequence_id",
        "is_last_chunk",
        "messages_count",
        "sequence_id",
    )

    def __init__(self, created_at: float, partition_index: int = -1, bytes_count: int = 0) -> None:
        """Of one message, until somebody says otherwise.

        Args:
            created_at: Monotonic seconds when its first message was accepted.
            partition_index: -1 for a topic without partitions.
            bytes_count: Bytes reserved from the client's memory limit.
        """
        # Hot path: produce unbatched in `make bench-client`. As `super().__init__`, without a call.
        self.is_done = self.is_asked_for = False
        self.error = None
        self.ledger_id = self.entry_id = -1
        self.partition_index = partition_index
        self.batch_size = 0
        self.message_id = None
        self._waiters = None
        self._observers = None
        self.created_at = created_at
        self.sequence_id = -1
        # The sequence id of a batch's last message, else the same as `sequence_id`.
        self.highest_sequence_id = -1
        self.messages_count = 1
        self.bytes_count = bytes_count
        self.buffers: Buffers = ()
        self.chunked: ChunkedSend | None = None
        self.is_last_chunk = False

    def stored(self, ledger_id: int, entry_id: int) -> None:
        """Take the position from the receipt, and compute the message id."""
        if self.chunked is not None:
            own = MessageId(ledger_id, entry_id, partition_index=self.partition_index)
            if self.chunked.first_chunk is None:
                self.chunked.first_chunk = own
            # A duplicate's receipt has no position, and its first chunk's came before.
            if self.is_last_chunk and ledger_id >= 0:
                self.message_id = MessageId(
                    ledger_id,
                    entry_id,
                    partition_index=self.partition_index,
                    first_chunk=self.chunked.first_chunk,
                )
        # As `confirm`, whose call would cost more than it.
        assert not self.is_done, "an entry ends once"
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.buffers = ()  # a result that is kept keeps no frame; see `Outbox.detach`
        self.is_done = True
        if self._observers is not None or self._waiters is not None:
            self._tell()

    def tell_again(self) -> None:
        """Tell who was not told yet that it is done."""
        self._tell()

    def fail(self, error: Exception) -> None:
        """As `SendCompletion.fail`."""
        self.buffers = ()
        super().fail(error)


class PendingMessages:
    """One producer's entries without receipt, oldest first.

    Invariant: entries are in the order in which they are sent, and sent again after a reconnect.
    """

    __slots__ = ("_entries", "append", "extend")

    def __init__(self) -> None:
        self._entries: deque[PendingEntry] = deque()
        # Add the newest entry, or the newest in order; the queue's own, which cost no call of ours.
        self.append: Final = self._entries.append
        self.extend: Final = self._entries.extend

    def __len__(self) -> int:
        return len(self._entries)

    def put_back(self, entry: PendingEntry) -> None:
        """Make one that was taken the oldest again."""
        self._entries.appendleft(entry)

    def __iter__(self) -> Iterator[PendingEntry]:
        return iter(self._entries)

    @property
    def oldest(self) -> PendingEntry | None:
        """The entry whose receipt comes next; None if the queue is empty."""
        return self._entries[0] if self._entries else None

    @property
    def newest(self) -> PendingEntry | None:
        """The entry whose receipt comes last; None if the queue is empty."""
        return self._entries[-1] if self._entries else None

    def take_confirmed(self, sequence_id: int, highest_sequence_id: int) -> PendingEntry | None:
        """Take the entry that a receipt is for out of the queue; None if it has ended.

        Raises:
            RemoteProtocolError: The receipt is for an entry that was not sent yet.
        """
        # Hot path: produce in `make bench-client`.
        entries = self._entries
        if not entries:
            return None
        entry = entries[0]
        if sequence_id != entry.sequence_id:
            if sequence_id < entry.sequence_id:
                return None
            raise RemoteProtocolError(
                f"receipt of sequence id {sequence_id}, expected {entry.sequence_id}"
            )
        highest = entry.highest_sequence_id
        # Brokers may leave `highest_sequence_id` out: it is 0 or less then.
        if highest_sequence_id > 0 and highest not in {sequence_id, highest_sequence_id}:
            raise RemoteProtocolError(
                f"receipt of sequence ids {sequence_id} to {highest_sequence_id}, "
                f"expected {sequence_id} to {highest}"
            )
        entries.popleft()
        return entry

    def take_confirmed_run(self, sequence_id: int, count: int) -> list[PendingEntry]:
        """Take the next entries out of the queue: at most `count`, with sequence ids in a row.

        It ends before a batch, and before an entry of another sequence id.
        """
        # Hot path: produce unbatched in `make bench-client`.
        entries, taken = self._entries, []
        for expected in range(sequence_id, sequence_id + min(count, len(entries))):
            entry = entries[0]
            if not entry.sequence_id == expected == entry.highest_sequence_id:
                break
            taken.append(entries.popleft())
        return taken

    def find(self, sequence_id: int) -> PendingEntry | None:
        """The oldest entry of that sequence id; None if there is none (any more)."""
        return next((each for each in self._entries if each.sequence_id == sequence_id), None)

    def take_duplicate(self, sequence_id: int) -> list[PendingEntry]:
        """Take the entry that the broker already has, with all chunks of its message.

        A broker answers a duplicate at once, perhaps before entries that were sent ahead of it: of
        a chunked message it recognizes only the last chunk, and stores the others again first.
        """
        return self._take(self.find(sequence_id))

    def take_refused(self, sequence_id: int) -> list[PendingEntry]:
        """Take the entry of that sequence id, with the other chunks of its message."""
        return self._take(self.find(sequence_id))

    def _take(self, entry: PendingEntry | None) -> list[PendingEntry]:
        if entry is None:
            return []
        if entry.chunked is None:
            self._entries.remove(entry)
            return [entry]
        return self._take_where(lambda each: each.chunked is entry.chunked)

    def _take_where(self, is_meant: Callable[[PendingEntry], bool]) -> list[PendingEntry]:
        taken = [each for each in self._entries if is_meant(each)]
        kept = [each for each in self._entries if not is_meant(each)]
        self._entries.clear()
        self._entries.extend(kept)
        return taken

    def take_expired(self, created_until: float) -> list[PendingEntry]:
        """Take the entries that were accepted at that time or before."""
        expired = []
        while self._entries and self._entries[0].created_at <= created_until:
            expired.append(self._entries.popleft())
        return expired

    def take_all(self) -> list[PendingEntry]:
        """Take all entries."""
        taken = list(self._entries)
        self._entries.clear()
        return taken
