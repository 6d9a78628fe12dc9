from __future__ import annotations

import pytest

from pulsar_py.client.acknowledging.ack_grouping import AcknowledgmentsGroupingTracker
from pulsar_py.client.messages.message import EntryKey
from pulsar_py.client.receiving.chunk_assembly import ChunkAssembly
from pulsar_py.client.receiving.incoming_queue import Effects, IncomingQueue, entry_messages_count
from pulsar_py.client.receiving.received_batch import MIN_WHOLE_BATCH
from pulsar_py.client.receiving.start_position import StartPosition
from pulsar_py.client.shared.enums import ConsumerCryptoFailureAction
from pulsar_py.common.errors import CryptoError
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import CommandAck, EncryptionKeys, MessageMetadata
from tests.unit.client.entries import TOPIC, batch, chunk, command, entry, single


class Decryptor:
    """Knows what it learned; a payload is encrypted by being reversed."""

    def __init__(self, *known: bytes) -> None:
        self.known = set(known)

    def knows_key(self, metadata: MessageMetadata) -> bool:
        return any(each.value in self.known for each in metadata.encryption_keys)

    def decrypt(self, metadata: MessageMetadata, payload: bytes) -> bytes:
        if not self.knows_key(metadata):
            raise CryptoError("no data key")
        return payload[::-1]


def make(**options: object) -> IncomingQueue:
    tracker = options.pop("tracker", None) or AcknowledgmentsGroupingTracker()
    return IncomingQueue(TOPIC, tracker, ChunkAssembly(), **options)


def drain(queue: IncomingQueue) -> list[bytes]:
    found = []
    while queue.fill(0) and queue.ready:
        found.append(queue.ready.popleft().data())
    return found


def encrypted(payload: bytes, **fields: object) -> bytes:
    keys = [EncryptionKeys(key="k", value=b"wrapped")]
    return single(payload[::-1], encryption_keys=keys, encryption_param=b"iv", **fields)


def test_entries_are_decoded_one_by_one() -> None:
    queue = make()
    assert queue.is_empty
    queue.push(command((1, 0)), batch([b"a", b"b"]))
    queue.push(command((1, 1)), single(b"c"))
    assert queue.messages_count() == 3
    assert queue.head_key() == (1, 0)
    assert queue.fill(0)
    assert len(queue.ready) == 2
    assert drain(queue) == [b"a", b"b", b"c"]
    assert queue.take_effects() is None
    assert (queue.decoded_count, queue.permits_used) == (3, 3)
    assert queue.head_key() is None


def test_messages_have_what_the_command_says() -> None:
    queue = make(partition_index=3)
    queue.push(command((1, 0), redelivery_count=2), single())
    queue.fill(0)
    found = queue.ready[0]
    assert found.redelivery_count() == 2
    assert found.message_id() == MessageId(1, 0, partition_index=3)


def test_what_the_broker_says_is_acknowledged_is_left_out_without_permits() -> None:
    queue = make()
    queue.push(command(ack_set=[0b101]), batch([b"a", b"b", b"c"]))
    assert drain(queue) == [b"a", b"c"]
    assert queue.take_effects() is None
    assert queue.permits_used == 2


def test_what_is_acknowledged_here_is_left_out_and_gives_its_permits_back() -> None:
    tracker = AcknowledgmentsGroupingTracker(is_batch_index_enabled=True)
    tracker.acknowledge(entry((1, 0), batch_size=3), 1)
    tracker.acknowledge(entry((1, 1)), -1)
    queue = make(tracker=tracker)
    queue.push(command((1, 0)), batch([b"a", b"b", b"c"]))
    queue.push(command((1, 1)), single(b"d"))
    assert drain(queue) == [b"a", b"c"]
    assert queue.take_effects() == Effects(dropped_count=2)


def test_what_stands_before_the_start_is_left_out_and_done() -> None:
    queue = make()
    queue.start = StartPosition(MessageId(1, 1))
    queue.push(command((1, 1)), single(b"a"))
    assert drain(queue) == []
    assert queue.take_effects() == Effects(dropped_count=1, to_acknowledge=[(1, 1)])
    queue.start = StartPosition(MessageId(1, 2, batch_index=0, batch_size=2))
    queue.push(command((1, 2)), batch([b"b", b"c"]))
    assert drain(queue) == [b"c"]
    assert queue.take_effects() == Effects(dropped_count=1)


def test_the_head_is_where_the_first_message_begins() -> None:
    queue = make()
    assert queue.head_key() is None
    for chunk_id, entry_id in enumerate((3, 5)):
        queue.push(command((1, entry_id)), chunk(chunk_id, b"aa", count=2, total=4))
    assert queue.head_key() == (1, 3)
    assert queue.fill(0)
    assert queue.ready[0].entry.key == (1, 5)
    assert queue.head_key() == (1, 3)
    queue.clear()
    queue.push(command((1, 3)), chunk(0, b"aa", count=2, total=4))
    assert not queue.fill(0)
    queue.push(command((1, 4)), single(b"x"))
    assert queue.head_key() == (1, 3), "the first chunk waits for the second"


def test_whether_anything_came() -> None:
    queue = make()
    assert not queue.is_begun
    queue.push(command((1, 3)), single(b"x"))
    assert queue.is_begun
    assert drain(queue) == [b"x"]
    assert queue.is_begun
    queue.clear()
    assert not queue.is_begun


def test_an_entry_is_passed_once_nothing_of_it_is_left() -> None:
    queue = make()
    assert queue.passed_key == (-1, -1)
    queue.push(command((1, 4)), batch([b"a", b"b"]))
    queue.push(command((1, 5)), single(b"x")[:-1])
    assert queue.passed_key == (-1, -1)
    queue.fill(0)
    assert queue.passed_key == (1, 3)
    queue.ready.popleft()
    assert queue.passed_key == (1, 3)
    queue.ready.popleft()
    assert queue.passed_key == (1, 4)
    assert not queue.fill(0)
    assert queue.passed_key == (1, 5)
    queue.clear()
    assert queue.passed_key == (-1, -1)


def test_what_waits_for_its_key_is_not_passed() -> None:
    queue = make(decryptor=Decryptor())
    queue.push(command((1, 4)), encrypted(b"a"))
    assert not queue.fill(0)
    assert queue.passed_key == (-1, -1)
    queue.prepared(0)
    assert queue.passed_key == (1, 4)


def test_a_listener_is_told_of_what_can_t_be_used() -> None:
    told: list[tuple[EntryKey, str]] = []
    queue = make(decryptor=Decryptor(), problem_listener=lambda *each: told.append(each))
    queue.push(command((1, 0)), single(b"x")[:-1])
    queue.push(command((1, 1)), batch([b"a"] * 5, num_messages_in_batch=9))
    queue.push(command((1, 2)), encrypted(b"a"))
    assert drain(queue) == []
    queue.prepared(0)
    assert [key for key, _ in told] == [(1, 0), (1, 1), (1, 2)]
    for (_, entry_id), text in told:
        assert text.startswith(f"{TOPIC}: entry 1:{entry_id}: ")


def test_what_is_damaged_is_reported_and_the_next_one_comes() -> None:
    queue = make()
    damaged = bytearray(single())
    damaged[-1] ^= 1
    queue.push(command((1, 0)), bytes(damaged))
    queue.push(command((1, 1)), batch([b"a"] * 5, num_messages_in_batch=9))
    queue.push(command((1, 2)), single(b"x", compression=2, uncompressed_size=2_000_000_000))
    queue.push(command((1, 3)), single(b"good"))
    assert drain(queue) == [b"good"]
    effects = queue.take_effects()
    assert effects is not None
    assert [(key, problem.validation_error) for key, problem in effects.problems] == [
        ((1, 0), CommandAck.ChecksumMismatch),
        ((1, 1), CommandAck.BatchDeSerializeError),
        ((1, 2), CommandAck.UncompressedSizeCorruption),
    ]
    assert effects.dropped_count == 3
    assert "2000000000 bytes uncompressed, the limit is 1073741824" in effects.problems[2][1].text


def test_a_message_may_inflate_to_more_than_brokers_store() -> None:
    queue, text = make(), b"x" * (6 << 20)
    queue.push(command((1, 0)), single(text, compression=2))
    assert drain(queue) == [text]


def test_what_inflates_to_more_than_was_allowed_is_damaged() -> None:
    queue = make(max_inflated_bytes=99)
    for entry_id, size in enumerate((99, 100)):
        queue.push(command((1, entry_id)), single(b"x" * size, compression=2))
    assert drain(queue) == [b"x" * 99]
    effects = queue.take_effects()
    assert effects is not None
    ((key, problem),) = effects.problems
    assert (key, problem.validation_error) == ((1, 1), CommandAck.UncompressedSizeCorruption)


def test_chunks_make_one_message_and_give_their_permits_back() -> None:
    queue = make()
    for chunk_id, piece in enumerate((b"aa", b"bb", b"c")):
        queue.push(command((1, chunk_id)), chunk(chunk_id, piece, count=3, total=5))
    assert queue.fill(0)
    found = queue.ready.popleft()
    assert found.data() == b"aabbc"
    assert found.entry.chunk_ids == ((1, 0), (1, 1), (1, 2))
    effects = queue.take_effects()
    assert effects == Effects(dropped_count=2, has_chunks=True)


def test_chunks_that_lie_are_all_reported() -> None:
    queue = make()
    queue.push(command((1, 0)), chunk(0, b"aa", count=2, total=5))
    queue.push(command((1, 1)), chunk(1, b"bb", count=2, total=5))
    assert drain(queue) == []
    effects = queue.take_effects()
    assert effects is not None
    assert [key for key, _ in effects.problems] == [(1, 0), (1, 1)]
    assert effects.dropped_count == 2


def test_chunks_expire() -> None:
    queue = make()
    queue.push(command((1, 0)), chunk(0, b"aa", count=2, total=5))
    assert not queue.fill(0)
    queue.take_effects()
    assert queue.next_chunk_expiry() == 60
    assert expired(queue, 59) == (60, [])
    assert expired(queue, 60) == (None, [(1, 0)])


def expired(queue: IncomingQueue, now: float, *, can_come: bool = True) -> tuple[object, object]:
    """When to look again, and what was given up."""
    look_at = queue.expire_chunks(now, can_come=can_come)
    effects = queue.take_effects()
    return look_at, [] if effects is None else effects.to_acknowledge


def test_an_encrypted_entry_waits_for_its_key() -> None:
    decryptor = Decryptor()
    queue = make(decryptor=decryptor)
    queue.push(command((1, 0)), encrypted(b"secret"))
    queue.push(command((1, 1)), single(b"plain"))
    assert not queue.fill(0)
    assert queue.needs is not None
    assert queue.needs.is_key_needed
    assert queue.head_key() == (1, 0)
    assert queue.messages_count() == 2
    decryptor.known.add(b"wrapped")
    queue.prepared(0)
    assert queue.ready[0].encryption_context() is not None
    assert drain(queue) == [b"secret", b"plain"]


def test_an_entry_waits_for_the_schema_of_its_version() -> None:
    known: set[bytes] = set()
    queue = make(is_version_missing=lambda version: version not in known)
    queue.push(command(), single(b"x", schema_version=b"v"))
    assert not queue.fill(0)
    assert queue.needs is not None
    assert queue.needs.schema_version == b"v"
    known.add(b"v")
    queue.prepared(0)
    assert drain(queue) == [b"x"]
    queue.push(command(), single(b"y", schema_version=b"v"))
    assert drain(queue) == [b"y"]


@pytest.mark.parametrize("decryptor", [None, Decryptor()])
def test_what_cannot_be_decrypted(decryptor: Decryptor | None) -> None:
    def result(action: ConsumerCryptoFailureAction) -> tuple[list[bytes], Effects | None]:
        queue = make(decryptor=decryptor, crypto_failure_action=action)
        queue.push(command((1, 0)), encrypted(b"secret", num_messages_in_batch=4))
        queue.push(command((1, 1)), single(b"plain"))
        found = drain(queue)
        if queue.needs is not None:
            queue.prepared(0)
            found += drain(queue)
        return found, queue.take_effects()

    found, effects = result(ConsumerCryptoFailureAction.CONSUME)
    assert found == [b"terces", b"plain"]
    assert effects == Effects(dropped_count=3)
    found, effects = result(ConsumerCryptoFailureAction.DISCARD)
    assert found == [b"plain"]
    assert effects is not None
    assert effects.problems[0][1].validation_error == CommandAck.DecryptionError
    assert effects.dropped_count == 4
    found, effects = result(ConsumerCryptoFailureAction.FAIL)
    assert found == [b"plain"]
    assert effects == Effects(held=[(1, 0)])


def test_clear_says_how_many_messages_there_were() -> None:
    queue = make()
    queue.push(command((1, 0)), batch([b"a", b"b"]))
    queue.push(command((1, 1), ack_set=[0b10]), batch([b"a", b"b"]))
    queue.push(command((1, 2)), b"rubbish")
    queue.fill(0)
    assert queue.clear() == 4
    assert queue.is_empty
    assert entry_messages_count(command(), single()) == 1


def test_messages_that_are_put_back_come_next() -> None:
    queue = make()
    queue.push(command((1, 0)), batch([b"a", b"b", b"c"]))
    queue.fill(0)
    taken = [queue.ready.popleft(), queue.ready.popleft()]
    queue.put_back(taken)
    assert drain(queue) == [b"a", b"b", b"c"]


def test_large_batches_are_kept_whole_where_somebody_wants_them() -> None:
    queue = make(keeps_batches=True)
    payloads = [b"%d" % index for index in range(MIN_WHOLE_BATCH)]
    queue.push(command((1, 0)), batch(payloads))
    queue.push(command((1, 1)), batch([b"a", b"b"]))
    queue.push(command((1, 2)), batch(payloads))
    assert queue.fill(0)
    assert not queue.ready
    assert queue.head_key() == (1, 0)
    assert queue.messages_count() == 2 * MIN_WHOLE_BATCH + 2
    assert queue.batches.popleft().payloads() == payloads
    assert drain(queue)[:2] == [b"a", b"b"]
    assert len(queue.batches) == 1
    assert not queue.is_empty
    assert queue.decoded_count == 2 * MIN_WHOLE_BATCH + 2
    assert queue.clear() == MIN_WHOLE_BATCH
    assert queue.is_empty


def test_batches_of_which_not_all_is_wanted_are_not_kept_whole() -> None:
    queue = make(keeps_batches=True)
    queue.start = StartPosition(MessageId(1, 0, batch_index=2))
    queue.push(command((1, 0)), batch([b"x"] * MIN_WHOLE_BATCH))
    assert queue.fill(0)
    assert len(queue.ready) == MIN_WHOLE_BATCH - 3
    assert not queue.batches


def test_messages_like_the_one_before_are_as_others() -> None:
    queue = make(partition_index=3)
    for number in range(4):
        data = single(b"%d" % number, sequence_id=number, publish_time=1000 + number)
        queue.push(command((1, number), redelivery_count=number), data)
    queue.fill(0)
    while queue.fill(0) and queue.ready:
        found = queue.ready.popleft()
        number = int(found.data())
        assert found.message_id() == MessageId(1, number, partition_index=3)
        assert found.redelivery_count() == number
        assert (found.sequence_id(), found.publish_timestamp()) == (number, 1000 + number)
        assert found.producer_name() == "p"
        assert found.properties() == {}
    assert (queue.decoded_count, queue.decoded_bytes, queue.permits_used) == (4, 4, 4)
    assert queue.passed_key == (1, 3)


def test_a_damaged_entry_like_the_one_before_is_reported() -> None:
    queue = make()
    queue.push(command((1, 0)), single(b"good"))
    queue.push(command((1, 1)), single(b"good")[:-1] + b"x")
    assert drain(queue) == [b"good"]
    effects = queue.take_effects()
    assert effects is not None
    assert [problem.validation_error for _, problem in effects.problems] == [
        CommandAck.ChecksumMismatch
    ]


def test_what_is_acknowledged_here_is_left_out_of_messages_that_are_alike() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    queue = make(tracker=tracker)
    tracker.acknowledge_entries([(1, 1)])
    for number in range(3):
        queue.push(command((1, number)), single(b"%d" % number))
    assert drain(queue) == [b"0", b"2"]
    effects = queue.take_effects()
    assert effects is not None
    assert effects.dropped_count == 1
