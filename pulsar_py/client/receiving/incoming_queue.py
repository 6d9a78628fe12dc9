"""The receiver queue: entries as they came, and decoded messages, until they are handed out.

Entries stay as they came and are decoded one by one when the messages before them are taken, so
that a full queue holds each byte once. `fill` decodes until there is a message, and leaves in its
effects what else has to be done: permits of messages that were left out, entries to acknowledge, to
ask for again, or to report as unusable. Where the first entry needs something that takes time (a
key, a schema of an older version) `fill` says what in `needs`, and stays there until `prepared`.
Where entries name versions of a schema, `push` looks for one that is missing, so that it can be
fetched before anybody asks for the message; such an entry is parsed then, and not again.

Messages are left out, by their bits, that the broker says are acknowledged, that are acknowledged
here already (`ack_grouping`), and that are before the start (`start_position`). The last count as
acknowledged.

Pure; `now` comes in.

Source: ConsumerImpl.messageReceived in Pulsar's Java client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pulsar_py.client.acknowledging.ack_grouping import AcknowledgmentsTracker
from pulsar_py.client.messages.message import EntryKey, Message, ReceivedEntry, ValueDecoder
from pulsar_py.client.receiving.alike_entries import AlikeEntries
from pulsar_py.client.receiving.chunk_assembly import Chunk, ChunkAssembly, ChunkOutcome
from pulsar_py.client.receiving.chunk_expiry import ChunkExpiry
from pulsar_py.client.receiving.entry_decoder import (
    MAX_INFLATED_BYTES,
    NOT_BATCHED,
    ParsedEntry,
    Problem,
    check_batch_size,
    inflate,
    messages_of,
    parse,
)
from pulsar_py.client.receiving.received_batch import ReceivedBatch, batch_of
from pulsar_py.client.receiving.start_position import StartPosition
from pulsar_py.client.shared.enums import ConsumerCryptoFailureAction
from pulsar_py.common.ack_set import full_bits, to_bits
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import CryptoError
from pulsar_py.common.message_id import to_signed
from pulsar_py.common.position import EARLIEST, MAX_LONG
from pulsar_py.proto.PulsarApi_pb2 import (
    BrokerEntryMetadata,
    CommandAck,
    CommandMessage,
    MessageMetadata,
)

if TYPE_CHECKING:
    from pulsar_py.client.security.message_crypto import EncryptionContext, MessageDecryptor

__all__ = ["Effects", "IncomingQueue", "Needs", "ProblemListener", "entry_messages_count"]

ProblemListener: TypeAlias = Callable[[EntryKey, str], None]
"""Called with each entry that is left out because it can't be used, and the reason."""


@dataclass(slots=True)
class Effects:
    """What the caller of `fill` has to do besides delivering messages; taken as a whole."""

    dropped_count: int = 0
    """Messages that took permits and will not be handed out."""
    problems: list[tuple[EntryKey, Problem]] = field(default_factory=list)
    to_acknowledge: list[EntryKey] = field(default_factory=list)
    to_redeliver: list[EntryKey] = field(default_factory=list)
    """Chunks whose buffer was dropped for a newer one: worth asking for again."""
    held: list[EntryKey] = field(default_factory=list)
    """Entries that can't be used now: chunks without the first one, undecryptable entries."""
    has_chunks: bool = False
    """Whether chunks came, so that their expiry has to be watched."""

    def take_outcome(self, outcome: ChunkOutcome) -> None:
        """Add the entries of a chunk assembly's outcome."""
        self.to_acknowledge += outcome.to_acknowledge
        self.to_redeliver += outcome.to_redeliver
        self.held += outcome.held


@dataclass(frozen=True, slots=True)
class Needs:
    """A key or schema without which the first entry can't be decoded."""

    parsed: ParsedEntry
    schema_version: bytes | None = None
    """A version of the topic's schema that is not known yet."""
    is_key_needed: bool = False
    """Whether its data key has to be unwrapped first."""


class IncomingQueue:
    """The receiver queue of one consumer."""

    def __init__(
        self,
        topic: str,
        tracker: AcknowledgmentsTracker,
        chunks: ChunkAssembly,
        *,
        partition_index: int = -1,
        decryptor: MessageDecryptor | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        decoder: ValueDecoder | None = None,
        is_version_missing: Callable[[bytes], bool] | None = None,
        keeps_batches: bool = False,
        problem_listener: ProblemListener | None = None,
        max_inflated_bytes: int = MAX_INFLATED_BYTES,
    ) -> None:
        """`is_version_missing` returns whether a schema version has to be fetched first.

        With `keeps_batches` batches go to `batches` as a whole where possible. `problem_listener`
        is called with each entry that can't be used. `max_inflated_bytes` bounds the decompressed
        size of an entry.
        """
        self.topic: Final = topic
        self._tracker = tracker
        self._chunks = chunks
        self._chunk_expiry = ChunkExpiry(chunks)
        self._partition_index = partition_index
        self._decryptor = decryptor
        self._crypto_failure_action = crypto_failure_action
        self._decoder = decoder
        self._is_version_missing = is_version_missing
        self._keeps_batches = keeps_batches
        self._problem_listener = problem_listener
        self._max_inflated_bytes = max_inflated_bytes
        self._alike = AlikeEntries()
        # Messages to hand out next; hot paths take from it by themselves.
        self.ready: deque[Message] = deque()
        # The same for whole batches; one of the two is empty.
        self.batches: deque[ReceivedBatch] = deque()
        # The last entry that was decoded since the last `clear`.
        self._decoded_key: EntryKey = EARLIEST
        # Entries as they came, which follow the decoded ones; parsed already where schema versions
        # are looked for.
        self._entries: deque[
            tuple[EntryKey, CommandMessage, EntryBytes, ParsedEntry | Problem | None]
        ]
        self._entries = deque()
        # What callers of `fill` have to do; None while there is nothing.
        self.effects: Effects | None = None
        # What the first entry waits for; that entry is not in `_entries` any more.
        self.needs: Needs | None = None
        # Whether the key or schema of `needs` is being loaded.
        self.is_preparing = False
        # The position at which the consumer starts; None: with the first entry that comes.
        self.start: StartPosition | None = None
        # For statistics: messages decoded, and their bytes (in batches with their own metadata).
        self.decoded_count = 0
        self.decoded_bytes = 0
        # Permits that the decoded entries took.
        self.permits_used = 0

    def push(
        self, command: CommandMessage, data: EntryBytes, key: EntryKey | None = None
    ) -> bytes | None:
        """Take in an entry; returns the schema version that has to be fetched for it, else None.

        `key` is its id where that is not the one of `command`; see `ConsumerHandler.on_message`.
        """
        # Hot path: consume in `make bench-client`; once an entry.
        if key is None:
            key = _key_of(command)
        if self._is_version_missing is None:
            self._entries.append((key, command, data, None))
            return None
        parsed = parse(command, data, key, self.topic)
        self._entries.append((key, command, data, parsed))
        return None if isinstance(parsed, Problem) else self._missing_version(parsed)

    @property
    def keeps_entries_only(self) -> bool:
        """Whether `push` never returns a version, and batches are not kept whole."""
        return self._is_version_missing is None and not self._keeps_batches

    @property
    def is_empty(self) -> bool:
        """Whether it has neither messages nor entries."""
        return not self.ready and not self.batches and not self._entries and self.needs is None

    def messages_count(self) -> int:
        """The number of queued messages; reads the metadata of each entry."""
        waiting = 0 if self.needs is None else self.needs.parsed.messages_count
        return (
            len(self.ready)
            + sum(map(len, self.batches))
            + waiting
            + sum(entry_messages_count(command, data) for _, command, data, _ in self._entries)
        )

    def clear(self) -> int:
        """Drop everything, chunks too; returns the number of messages that took permits."""
        count = self.messages_count()
        self.ready.clear()
        self.batches.clear()
        self._entries.clear()
        self._chunks.clear()
        self._chunk_expiry.clear()
        self.needs = None
        self.is_preparing = False
        self._decoded_key = EARLIEST
        return count

    @property
    def _effects(self) -> Effects:
        if self.effects is None:
            self.effects = Effects()
        return self.effects

    def take_effects(self) -> Effects | None:
        """The effects to carry out now; None without any."""
        effects, self.effects = self.effects, None
        return effects

    def fill(self, now: float) -> bool:
        """Decode until there is a message; False if there is none, or `needs` has to be loaded."""
        # Hot path: consume in `make bench-client`, unbatched.
        alike = self._alike
        while not self.ready and not self.batches:
            if self.needs is not None or not self._entries:
                return False
            key, command, data, parsed = self._entries.popleft()
            if parsed is None:
                if alike.has(data):
                    self.permits_used += 1
                    payload = bytes(data[alike.payload_start :])
                    self._single(key, command, alike.metadata_of(data), payload)
                    self._decoded_key = key
                    continue
                parsed = parse(command, data, key, self.topic)
            if isinstance(parsed, Problem):
                self.permits_used += 1
                self._report(key, parsed)
            elif parsed.is_plain and self._is_version_missing is None:
                alike.learn(data, parsed.payload_start)
                self.permits_used += 1
                payload = bytes(data[parsed.payload_start :])
                self._single(key, command, parsed.metadata, payload, parsed.broker_metadata)
            elif (needs := self._needs_of(parsed)) is not None:
                self.needs = needs
                continue
            else:
                self._decode(parsed, now)
            self._decoded_key = key
        return True

    def _needs_of(self, parsed: ParsedEntry) -> Needs | None:
        metadata = parsed.metadata
        is_key_needed = (
            bool(metadata.encryption_keys)
            and self._decryptor is not None
            and not self._decryptor.knows_key(metadata)
        )
        version = self._missing_version(parsed)
        if version is None and not is_key_needed:
            return None
        return Needs(parsed, version, is_key_needed)

    def _missing_version(self, parsed: ParsedEntry) -> bytes | None:
        if self._is_version_missing is None or not parsed.metadata.HasField("schema_version"):
            return None
        version = parsed.metadata.schema_version
        return version if self._is_version_missing(version) else None

    def prepared(self, now: float) -> None:
        """The key or schema of `needs` was loaded, or can't be: decode the entry without it."""
        if self.needs is not None:
            parsed, self.needs = self.needs.parsed, None
            self.is_preparing = False
            self._decode(parsed, now)
            self._decoded_key = parsed.key

    @property
    def passed_key(self) -> EntryKey:
        """The last entry up to which nothing is queued, of those that came since `clear`.

        The entry may not exist: it is the id before that of the first queued entry.
        """
        if not self.ready and not self.batches:
            return self._decoded_key
        first = self.ready[0] if self.ready else self.batches[0]
        ledger_id, entry_id = first.entry.key
        return (ledger_id, entry_id - 1)

    @property
    def is_begun(self) -> bool:
        """Whether any entry came since `clear`."""
        return self._decoded_key != EARLIEST or not self.is_empty

    def head_key(self) -> EntryKey | None:
        """The entry in which the first queued message begins, None if the queue is empty."""
        chunk = self.first_chunk_key()
        head: EntryKey | None = None
        if self.ready:
            head = self.ready[0].entry.key
        elif self.batches:
            head = self.batches[0].entry.key
        elif self.needs is not None:
            head = self.needs.parsed.key
        elif self._entries:
            head = self._entries[0][0]
        return min((each for each in (chunk, head) if each is not None), default=None)

    def first_chunk_key(self) -> EntryKey | None:
        """The oldest first chunk of queued chunked messages, complete or not; None for none."""
        whole = (each.entry.chunk_ids[0] for each in self.ready if each.entry.chunk_ids)
        return min((*whole, *self._chunks.first_keys()), default=None)

    def _report(self, key: EntryKey, problem: Problem) -> None:
        self._effects.problems.append((key, problem))
        self._tell_problem(key, problem.text)
        self._effects.dropped_count += max(problem.messages_count, 1)

    def _tell_problem(self, key: EntryKey, text: str) -> None:
        if self._problem_listener is not None:
            self._problem_listener(key, text)

    def _decode(self, parsed: ParsedEntry, now: float) -> None:
        metadata = parsed.metadata
        self.permits_used += self._permits_of(parsed)
        context = None
        payload: bytes | None = None  # None: as it came
        if metadata.encryption_keys:
            payload, context = self._decrypt(parsed)
            if payload is None:
                return
            if context is not None and context.is_decryption_failed():
                self._deliver_encrypted(parsed, payload, context)
                return
        if metadata.num_chunks_from_msg > 1:
            if payload is None:
                payload = parsed.payload
            self._take_chunk(parsed, payload, context, now)
        else:
            self._open(parsed, payload, context, ())

    def _decrypt(self, parsed: ParsedEntry) -> tuple[bytes | None, EncryptionContext | None]:
        """The decrypted payload, or with CONSUME the encrypted one; None: not to be delivered."""
        from pulsar_py.client.security.message_crypto import EncryptionContext  # noqa: PLC0415 - at first use

        try:
            if self._decryptor is None:
                raise CryptoError("the consumer has no crypto_key_reader")  # noqa: TRY301 - one handler
            payload = self._decryptor.decrypt(parsed.metadata, parsed.payload)
        except CryptoError as error:
            return self._not_decrypted(parsed, error)
        return payload, EncryptionContext.of(parsed.metadata, is_decryption_failed=False)

    def _not_decrypted(
        self, parsed: ParsedEntry, error: CryptoError
    ) -> tuple[bytes | None, EncryptionContext | None]:
        from pulsar_py.client.security.message_crypto import EncryptionContext  # noqa: PLC0415 - at first use

        key = parsed.key
        text = f"{self.topic}: entry {key[0]}:{key[1]}: {error}"
        match self._crypto_failure_action:
            case ConsumerCryptoFailureAction.CONSUME:
                context = EncryptionContext.of(parsed.metadata, is_decryption_failed=True)
                return parsed.payload, context
            case ConsumerCryptoFailureAction.DISCARD:
                self._report(
                    key, Problem(CommandAck.DecryptionError, text, self._permits_of(parsed))
                )
            case _:
                # FAIL: neither delivered nor acknowledged, and its permits are not given back.
                self._effects.held.append(key)
                self._tell_problem(key, text)
        return None, None

    def _permits_of(self, parsed: ParsedEntry) -> int:
        """The permits that the broker took for an entry."""
        if parsed.command.ack_set:
            return to_bits(parsed.command.ack_set).bit_count()
        return max(parsed.messages_count, 1)

    def _deliver_encrypted(
        self, parsed: ParsedEntry, payload: bytes, context: EncryptionContext
    ) -> None:
        """Deliver an encrypted entry as one message, even if it is a batch."""
        entry = self._entry(parsed, 0, 1, context)
        self._effects.dropped_count += self._permits_of(parsed) - 1
        self._put([Message(entry, NOT_BATCHED, None, payload)], len(payload))

    def _take_chunk(
        self,
        parsed: ParsedEntry,
        payload: bytes,
        context: EncryptionContext | None,
        now: float,
    ) -> None:
        self._effects.dropped_count += 1
        self._effects.has_chunks = True
        if not self._tracker.still_waiting(parsed.key, 1):
            return
        chunk = Chunk(parsed.key, parsed.metadata, payload)
        outcome = self._chunks.add(chunk, now)
        self._effects.take_outcome(outcome)
        if outcome.problem is not None:
            text = f"{self.topic}: entry {parsed.key[0]}:{parsed.key[1]}: {outcome.problem}"
            problem = Problem(CommandAck.UncompressedSizeCorruption, text)
            self._effects.problems += [(key, problem) for key in outcome.chunk_ids]
            self._tell_problem(parsed.key, text)
        if outcome.payload is not None:
            self._effects.dropped_count -= (
                1  # the last chunk's permit is given back with the message
            )
            self._open(parsed, outcome.payload, context, outcome.chunk_ids)

    def _open(
        self,
        parsed: ParsedEntry,
        payload: bytes | None,
        context: EncryptionContext | None,
        chunk_ids: tuple[EntryKey, ...],
    ) -> None:
        """Decompress an entry and split it into messages; payload None: the payload as it came."""
        # Hot path: consume in `make bench-client`, unbatched.
        start = 0
        body: EntryBytes | Problem
        if parsed.metadata.compression:
            body = inflate(
                parsed,
                parsed.payload_view if payload is None else payload,
                self.topic,
                None if chunk_ids else self._max_inflated_bytes,
            )
            if isinstance(body, Problem):
                self._report(parsed.key, body)
                self._effects.to_acknowledge += chunk_ids[:-1]
                return
        elif payload is None:
            body, start = parsed.data, parsed.payload_start
        else:
            body = payload
        if parsed.is_batch:
            self._split(parsed, body, start, context)
        else:
            self._single(
                parsed.key,
                parsed.command,
                parsed.metadata,
                bytes(body[start:]),
                parsed.broker_metadata,
                context,
                chunk_ids,
            )

    def _single(  # noqa: PLR0917 - called once an entry, where keywords cost
        self,
        key: EntryKey,
        command: CommandMessage,
        metadata: MessageMetadata | bytes,
        data: bytes,
        broker_metadata: BrokerEntryMetadata | None = None,
        context: EncryptionContext | None = None,
        chunk_ids: tuple[EntryKey, ...] = (),
    ) -> None:
        """Have an entry's one message ready; `metadata` may not be parsed yet."""
        # Hot path: latency in `make bench-client`.
        bits = self._tracker.still_waiting(key, 1)
        if bits and self.start is not None:
            bits = self._after_start(key, bits, 0)
            if not bits:
                self._effects.to_acknowledge += chunk_ids[:-1]
        if not bits:
            self._effects.dropped_count += 1
            return
        if chunk_ids:
            self._tracker.remember_chunks(key, chunk_ids)
        entry = ReceivedEntry(
            key,
            self.topic,
            metadata,
            self._partition_index,
            command.redelivery_count,
            0,
            1,
            self._decoder,
            broker_metadata,
            chunk_ids,
            context,
        )
        self.ready.append(Message(entry, NOT_BATCHED, None, data))
        self.decoded_count += 1
        self.decoded_bytes += len(data)

    def _split(
        self, parsed: ParsedEntry, body: EntryBytes, start: int, context: EncryptionContext | None
    ) -> None:
        if (problem := check_batch_size(parsed, len(body) - start, self.topic)) is not None:
            self._report(parsed.key, problem)
            return
        size = parsed.messages_count
        bits = full_bits(size)
        if parsed.command.ack_set:
            bits &= to_bits(parsed.command.ack_set)
        permits = bits.bit_count()
        bits = self._tracker.still_waiting(parsed.key, bits)
        if bits and self.start is not None:
            bits = self._after_start(parsed.key, bits, size)
        entry = self._entry(parsed, size, bits, context)
        if self._keeps_batches and bits == full_bits(size):
            batch = batch_of(entry, body, start)
            if batch is not None:
                self.batches.append(batch)
                self._count(size, batch.size())
                return
        messages = messages_of(entry, body, start, bits)
        if isinstance(messages, Problem):
            self._report(parsed.key, messages)
            return
        if permits != len(messages):
            self._effects.dropped_count += permits - len(messages)
        self._put(messages, len(body) - start)

    def _after_start(self, key: EntryKey, bits: int, batch_size: int) -> int:
        assert self.start is not None
        wanted = self.start.wanted(key, bits, batch_size)
        if not wanted:
            self._effects.to_acknowledge.append(key)
        return wanted

    def _entry(
        self,
        parsed: ParsedEntry,
        batch_size: int,
        bits: int,
        context: EncryptionContext | None,
    ) -> ReceivedEntry:
        return ReceivedEntry(
            parsed.key,
            self.topic,
            parsed.metadata,
            self._partition_index,
            parsed.command.redelivery_count,
            batch_size,
            bits,
            self._decoder,
            parsed.broker_metadata,
            (),
            context,
        )

    def _put(self, messages: list[Message], size_bytes: int) -> None:
        self.ready.extend(messages)
        self._count(len(messages), size_bytes)

    def _count(self, messages_count: int, size_bytes: int) -> None:
        self.decoded_count += messages_count
        self.decoded_bytes += size_bytes

    def put_back(self, messages: list[Message]) -> None:
        """Return messages that were taken and not handed out to the head of the queue."""
        self.ready.extendleft(reversed(messages))

    def expire_chunks(self, now: float, *, can_come: bool) -> float | None:
        """Give up incomplete messages that expired; returns when to call this again."""
        waiting: list[object] = [] if self.needs is None else [self.needs]
        waiting += self._entries
        outcome, look_at = self._chunk_expiry.look(now, waiting, can_come=can_come)
        self._effects.take_outcome(outcome)
        return look_at

    def next_chunk_expiry(self) -> float | None:
        """When the oldest incomplete message expires."""
        return self._chunks.next_expiry()


def _key_of(command: CommandMessage) -> EntryKey:
    data = command.message_id
    ledger_id, entry_id = data.ledgerId, data.entryId
    if ledger_id > MAX_LONG or entry_id > MAX_LONG:
        return (to_signed(ledger_id), to_signed(entry_id))
    return (ledger_id, entry_id)


def entry_messages_count(command: CommandMessage, data: EntryBytes) -> int:
    """The number of messages in an entry, as the broker counts them."""
    if command.ack_set:
        return to_bits(command.ack_set).bit_count()
    parsed = parse(command, data, (0, 0), "")
    return 1 if isinstance(parsed, Problem) else max(parsed.messages_count, 1)
