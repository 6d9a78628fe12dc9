"""Receipts find their entries; time-outs and refusals take the right ones."""

from __future__ import annotations

import pytest

from pulsar_py.client.producing.pending_messages import ChunkedSend, PendingEntry, PendingMessages
from pulsar_py.client.producing.send_result import SendCompletion
from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.message_id import MessageId


def entry(sequence_id: int, highest: int | None = None, *, at: float = 0.0) -> PendingEntry:
    made = PendingEntry(at)
    made.sequence_id = sequence_id
    made.highest_sequence_id = sequence_id if highest is None else highest
    return made


def pending(*entries: PendingEntry) -> PendingMessages:
    messages = PendingMessages()
    for each in entries:
        messages.append(each)
    return messages


def test_receipts_come_in_order() -> None:
    first, second = entry(0), entry(1)
    messages = pending(first, second)
    assert messages.take_confirmed(0, -1) is first
    assert messages.take_confirmed(1, 0) is second
    assert len(messages) == 0


def test_a_receipt_of_what_was_given_up_is_ignored() -> None:
    messages = pending(entry(5))
    assert messages.take_confirmed(4, -1) is None
    assert len(messages) == 1
    assert PendingMessages().take_confirmed(4, -1) is None


def test_a_receipt_of_what_was_not_sent_is_an_error() -> None:
    with pytest.raises(RemoteProtocolError, match="expected 5"):
        pending(entry(5)).take_confirmed(6, -1)


@pytest.mark.parametrize("highest", [9, 0, -1])
def test_a_batch_is_confirmed_with_its_highest_id_or_none(highest: int) -> None:
    batch = entry(5, 9)
    assert pending(batch).take_confirmed(5, highest) is batch


def test_a_batch_is_not_confirmed_with_another_highest_id() -> None:
    with pytest.raises(RemoteProtocolError, match="5 to 9"):
        pending(entry(5, 9)).take_confirmed(5, 8)


def test_receipts_in_a_row_take_entries_in_a_row() -> None:
    entries = [entry(5), entry(6), entry(7), entry(9), entry(10, 12)]
    messages = pending(*entries)
    assert messages.take_confirmed_run(4, 2) == []  # given up before
    assert messages.take_confirmed_run(5, 2) == entries[:2]
    assert messages.take_confirmed_run(7, 10) == entries[2:3]  # none has 8
    assert messages.take_confirmed_run(9, 10) == entries[3:4]  # a batch ends it
    assert messages.oldest is entries[4]
    assert PendingMessages().take_confirmed_run(0, 3) == []


def test_the_oldest_expire() -> None:
    old, new = entry(0, at=1.0), entry(1, at=2.0)
    messages = pending(old, new)
    assert messages.take_expired(1.0) == [old]
    assert messages.oldest is messages.newest is new


def chunks(sequence_id: int, count: int) -> list[PendingEntry]:
    shared = ChunkedSend()
    made = [entry(sequence_id) for _ in range(count)]
    for each in made:
        each.chunked = shared
        each.messages_count = 0
    made[-1].is_last_chunk = True
    made[-1].messages_count = 1
    return made


def test_a_refused_chunk_takes_the_others_with_it() -> None:
    before, after = entry(0), entry(2)
    parts = chunks(1, 3)
    messages = pending(before, *parts, after)
    assert messages.take_refused(1) == parts
    assert list(messages) == [before, after]
    assert messages.take_refused(2) == [after]
    assert messages.take_refused(7) == []


def test_the_last_chunk_names_the_first() -> None:
    parts = chunks(1, 3)
    for number, part in enumerate(parts):
        part.stored(4, 10 + number)
    message_id = parts[-1].outcome(-1)
    assert message_id == MessageId(4, 12, first_chunk=MessageId(4, 10))


def test_everything_can_be_taken() -> None:
    first, second = entry(0), entry(1)
    messages = pending(first, second)
    assert messages.take_all() == [first, second]
    assert not list(messages)


def test_a_duplicate_is_found_behind_what_was_sent_before_it() -> None:
    first, second, after = chunks(1, 3), chunks(2, 3), entry(3)
    messages = pending(*first, *second, after)
    assert messages.take_duplicate(2) == second
    assert messages.take_duplicate(2) == []
    assert list(messages) == [*first, after]


def test_of_a_duplicate_in_chunks_no_place_is_told() -> None:
    parts = chunks(1, 3)
    parts[0].stored(7, 318)
    for each in parts[1:]:
        each.stored(-1, -1)
    assert parts[-1].outcome(-1) == MessageId(-1, -1)


def test_a_result_that_is_kept_keeps_no_frame() -> None:
    stored, failed = entry(0), entry(1)
    stored.buffers = failed.buffers = (b"frame",)
    stored.stored(1, 2)
    failed.fail(RemoteProtocolError("refused"))
    assert stored.buffers == failed.buffers == ()


def test_an_entry_is_a_result_like_any_other() -> None:
    made, plain = PendingEntry(1.0, 3), SendCompletion(3)
    told: list[str] = []
    for each, confirm in ((made, made.stored), (plain, plain.confirm)):
        each.observe(lambda: told.append("done"))
        confirm(5, 6)
        with pytest.raises(AssertionError, match="ends once"):
            confirm(5, 6)
    fields = SendCompletion.__slots__
    assert [getattr(made, name) for name in fields] == [getattr(plain, name) for name in fields]
    assert [getattr(PendingEntry(1.0), name) for name in fields] == [
        getattr(SendCompletion(), name) for name in fields
    ]
    assert told == ["done", "done"]


def test_what_is_added_after_chunks_were_taken_comes_last() -> None:
    shared, chunks = ChunkedSend(), [entry(1), entry(1)]
    for each in chunks:
        each.chunked = shared
    first, last = entry(0), entry(2)
    messages = pending(first, *chunks)
    assert messages.take_duplicate(1) == chunks
    messages.append(last)
    messages.extend([])
    assert list(messages) == [first, last]
    assert messages.newest is last
