"""Units of work: their names and ids, the rows that a repeated attempt skips, and refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.errors import ConfigurationError, SinkReplayError
from pulsar_py.spark.shared.options import WriteOptions
from pulsar_py.spark.writing.exactly_once import (
    MAX_BATCH_ID,
    NEVER_SENT,
    ROWS_PER_BATCH,
    ROWS_PER_JOB,
    Origin,
    Resumption,
    UnitOfWork,
    Verdict,
    check_deduplication,
    check_options,
    resumed_unit,
    unit_of_work,
)

TOPIC = "persistent://public/default/t"
UNIT = UnitOfWork("q", 7, 2)
FIRST = 8 * 2**33 + 2**27
BLOCK = 8 * 2**33


def options(**more: str) -> WriteOptions:
    given = {
        "service.url": "pulsar://h:6650",
        "admin.url": "http://h:8080",
        "topic": TOPIC,
        "deliveryguarantee": "exactly-once",
        "sequenceorder": "input",
    }
    given |= {name.replace("_", ".").lower(): text for name, text in more.items()}
    return WriteOptions.parse({name: text for name, text in given.items() if text})


def origin(query_id: str | None, batch_id: int | None, *, is_stream_writer: bool) -> Origin:
    return Origin(query_id, batch_id, 3, is_stream_writer)


def test_a_unit_has_a_name_and_a_range_of_ids() -> None:
    assert UNIT.producer_name == "q-2"
    assert UNIT.sequence_id(0) == FIRST
    assert UNIT.sequence_id(5) == FIRST + 5
    with pytest.raises(SinkReplayError):
        UNIT.sequence_id(ROWS_PER_BATCH)


def test_the_last_batch_has_ids_of_63_bits() -> None:
    assert UnitOfWork("q", MAX_BATCH_ID, 0, 60).sequence_id(ROWS_PER_BATCH - 1) < 2**63
    with pytest.raises(ConfigurationError):
        UnitOfWork("q", MAX_BATCH_ID + 1, 0)


def test_a_job_has_more_rows_and_its_ids_tell_its_partitions() -> None:
    job = UnitOfWork("q", None, 0, 3)
    assert job.sequence_id(ROWS_PER_JOB - 1) == 4 * 2**32 - 1
    with pytest.raises(SinkReplayError, match="more than 4294967296 rows"):
        job.sequence_id(ROWS_PER_JOB)


@pytest.mark.parametrize("batch_id", [None, 0, 7])
@given(st.data())
def test_the_partitions_of_an_earlier_attempt_are_found_again(
    batch_id: int | None, data: st.DataObject
) -> None:
    before = data.draw(st.integers(1, 60))
    now = data.draw(st.integers(before, 60))
    earlier = UnitOfWork("q", batch_id, 2, before)
    rows = data.draw(st.lists(st.integers(-1, 100), min_size=before, max_size=before))
    stored = [NEVER_SENT if row < 0 else earlier.sequence_id(row) for row in rows]
    found = resumed_unit(
        replace(earlier, partitions_count=now), TOPIC, stored + [-1] * (now - before)
    )
    assert found.partitions_count == (now if set(rows) == {-1} else before)


def test_rows_of_earlier_batches_tell_nothing() -> None:
    unit = UnitOfWork("q", 8, 2, 5)
    before = UnitOfWork("q", 7, 2, 2).sequence_id(3)
    assert resumed_unit(unit, TOPIC, [before, before, -1, -1, -1]) is unit


def test_partitions_that_cannot_be_told_are_refused() -> None:
    first = UnitOfWork("q", 7, 2, 2).sequence_id(0)
    unit = UnitOfWork("q", 7, 2, 70)
    stored = [first] + [NEVER_SENT] * 69
    with pytest.raises(SinkReplayError, match=f"{TOPIC}: .*batch 7 .*2 or 63 .*now there are 70"):
        resumed_unit(unit, TOPIC, stored)
    fewer = [UnitOfWork("q", None, 2, 5).sequence_id(0)]
    with pytest.raises(SinkReplayError, match=r"the job of 'q-2' found 5 .*now there are 1"):
        resumed_unit(UnitOfWork("q", None, 2, 1), TOPIC, fewer)
    with pytest.raises(SinkReplayError, match="found more partitions, and now there are 1"):
        resumed_unit(UnitOfWork("q", 7, 2, 1), TOPIC, [first])


def test_streams_are_named_by_query_and_batch() -> None:
    found = unit_of_work(origin("query", 4, is_stream_writer=True), options(), "job", 2)
    assert found == UnitOfWork("query", 4, 3, 2)


def test_jobs_are_named_by_their_run_or_their_key() -> None:
    here = origin(None, None, is_stream_writer=False)
    assert unit_of_work(here, options(), "job", 2) == UnitOfWork("job", None, 3, 2)
    keyed = options(idempotencyKey="key")
    assert unit_of_work(here, keyed, "job", 2) == UnitOfWork("key", None, 3, 2)


def test_for_each_batch_needs_a_key() -> None:
    here = origin("query", 4, is_stream_writer=False)
    with pytest.raises(ConfigurationError, match="idempotencyKey"):
        unit_of_work(here, options(), "job", 1)
    keyed = options(idempotencyKey="key")
    assert unit_of_work(here, keyed, "job", 1) == UnitOfWork("key-query", 4, 3, 1)


@pytest.mark.parametrize("is_stream_writer", [True, False])
def test_batches_of_another_checkpoint_are_others_whatever_the_key(
    *, is_stream_writer: bool
) -> None:
    keyed = options(idempotencyKey="key")
    one, other = (
        unit_of_work(origin(query, 4, is_stream_writer=is_stream_writer), keyed, "job", 1)
        for query in ("one", "other")
    )
    assert one.producer_name != other.producer_name


def test_a_stream_without_an_identity_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no query id and batch id"):
        unit_of_work(origin(None, None, is_stream_writer=True), options(), "job", 1)


@pytest.mark.parametrize("last", [NEVER_SENT, 0, BLOCK - 1])
def test_nothing_of_a_new_batch_is_left_out(last: int) -> None:
    resumption = Resumption(UNIT, TOPIC, last)
    assert not resumption.is_replay
    assert resumption.judge(FIRST) is Verdict.SEND
    resumption.check_complete()


@given(st.integers(1, 30), st.integers(0, 40))
def test_rows_are_left_out_up_to_the_last_that_is_confirmed(stored: int, rows: int) -> None:
    resumption = Resumption(UNIT, TOPIC, FIRST + stored - 1)
    verdicts = []
    try:
        verdicts = [resumption.judge(FIRST + row) for row in range(rows)]
        resumption.check_complete()
    except SinkReplayError:
        assert rows < stored
    else:
        assert rows >= stored
        assert verdicts[: stored - 1] == [Verdict.SKIP] * (stored - 1)
        assert verdicts[stored - 1] is Verdict.CONFIRM
        assert verdicts[stored:] == [Verdict.SEND] * (rows - stored)


def test_other_rows_than_before_are_refused() -> None:
    resumption = Resumption(UNIT, TOPIC, FIRST + 5)
    assert resumption.judge(FIRST + 4) is Verdict.SKIP
    with pytest.raises(SinkReplayError, match="row 5 of 'q-2'"):
        resumption.judge(FIRST + 6)


def test_a_batch_behind_a_later_one_is_refused() -> None:
    with pytest.raises(SinkReplayError, match=r"batch 8 was already .* put back to an older"):
        Resumption(UNIT, TOPIC, BLOCK + 2**33)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"admin_url": ""}, "needs admin.url"),
        ({"sequenceOrder": ""}, "needs sequenceOrder"),
        ({"topic": "non-persistent://public/default/t"}, "needs a persistent topic"),
        ({"pulsar_producer_producerName": "x"}, "the connector sets it"),
        ({"deliveryGuarantee": "at-least-once", "sequenceOrder": "content"}, "exactly-once"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        check_options(options(**given))


def test_sound_options_pass() -> None:
    check_options(options(sequenceOrder="columns:a,b"))
    check_options(options(deliveryGuarantee="at-least-once"))


def test_topics_have_to_drop_duplicates() -> None:
    check_deduplication({TOPIC: "Enabled"})
    with pytest.raises(ConfigurationError, match=f"{TOPIC} is Disabled"):
        check_deduplication({TOPIC: "Disabled"})
    with pytest.raises(ConfigurationError, match="unknown"):
        check_deduplication({TOPIC: None})
