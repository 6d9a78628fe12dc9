"""The bytes of buckets: those that Apache Pulsar wrote, and the bounds of what ours writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.common.position_ranges import PositionRangeSet
from pulsar_py.proto.DelayedMessageIndexBucketMetadata_pb2 import SnapshotMetadata
from pulsar_py.server.delayed.bucket_format import (
    BucketBuilder,
    decode_metadata,
    decode_segment,
    encode_segment,
    pack,
    position_of,
    time_of,
)

RECORDED = json.loads(Path("tests/recordings/delayed_index.json").read_text("utf-8"))


def recorded_buckets(part: Any = RECORDED) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The entries of each recorded bucket, by its ledger."""
    if isinstance(part, list):
        part = dict(enumerate(part))
    if not isinstance(part, dict):
        return
    for name, value in part.items():
        if name == "bucket_ledgers" and isinstance(value, dict):
            for ledger_id, ledger in value.items():
                yield ledger_id, ledger["entries"]
        else:
            yield from recorded_buckets(value)


BUCKETS = dict(recorded_buckets())


def builder(*, count: int = 5, step: int = 2000, metadata_bytes: int = 1 << 20) -> BucketBuilder:
    return BucketBuilder(
        max_segment_indexes=count, max_step_millis=step, max_metadata_bytes=metadata_bytes
    )


@pytest.mark.parametrize("ledger_id", BUCKETS)
def test_recorded_buckets_are_read_and_written_byte_for_byte(ledger_id: str) -> None:
    entries = BUCKETS[ledger_id]
    payloads = [bytes.fromhex(entry["payload"]) for entry in entries]
    indexes = [decode_segment(data) for data in payloads[1:]]
    assert indexes == [[pack(*index) for index in entry["indexes"]] for entry in entries[1:]]
    rebuilt = builder()
    for segment in indexes:
        for index in segment:
            rebuilt.add(index)
    (bucket,) = rebuilt.finish()
    assert bucket.segments == payloads[1:]
    # Of one bucket the recorded map has its two ledgers in another order.
    if ledger_id != "181":
        assert bucket.metadata == payloads[0]
    assert SnapshotMetadata.FromString(bucket.metadata) == SnapshotMetadata.FromString(payloads[0])


@pytest.mark.parametrize("ledger_id", BUCKETS)
def test_recorded_metadata_says_what_the_segments_have(ledger_id: str) -> None:
    entries = BUCKETS[ledger_id]
    segments = list(decode_metadata(bytes.fromhex(entries[0]["payload"])))
    assert len(segments) == len(entries) - 1
    for segment, entry in zip(segments, entries[1:], strict=True):
        found = PositionRangeSet()
        segment.add_to(found)
        times = [time for time, _, _ in entry["indexes"]]
        assert [tuple(each) for each in found] == sorted(
            (ledger, entry_id) for _, ledger, entry_id in entry["indexes"]
        )
        assert (segment.start_millis, segment.end_millis) == (min(times), max(times))


def test_an_index_is_its_parts_in_their_order() -> None:
    index = pack(1_795_419_047_371, 784, 2**32 - 1)
    assert time_of(index) == 1_795_419_047_371
    assert position_of(index) == (784, 2**32 - 1)
    assert pack(1, 9, 9) < pack(2, 0, 0) < pack(2, 0, 1) < pack(2, 1, 0)


def test_a_segment_ends_at_a_count_and_at_a_step() -> None:
    made = builder(count=3, step=2000)
    for second, entry_id in ((0, 0), (0, 1), (0, 2), (0, 3), (1, 4), (2, 5)):
        made.add(pack(second * 1000, 1, entry_id))
    (bucket,) = made.finish()
    sizes = [len(decode_segment(data)) for data in bucket.segments]
    assert sizes == [3, 2, 1]
    assert list(bucket.content.segment_starts) == [0, 0, 2]


def test_a_bucket_ends_before_its_first_entry_is_too_large() -> None:
    made = builder(count=1, metadata_bytes=300)
    for number in range(40):
        made.add(pack(number, 7, number * 3))
    buckets = made.finish()
    assert len(buckets) > 1
    assert all(len(bucket.metadata) <= 300 for bucket in buckets)
    found = [index for each in buckets for data in each.segments for index in decode_segment(data)]
    assert found == [pack(number, 7, number * 3) for number in range(40)]
    assert sum(len(bucket.content.members) for bucket in buckets) == 40


def test_times_past_what_a_start_holds_are_loaded_early() -> None:
    made = builder()
    made.add(pack(2**60, 3, 1))
    (bucket,) = made.finish()
    assert list(bucket.content.segment_starts) == [2**32 - 1]
    assert (bucket.content.first_ledger_id, bucket.content.last_ledger_id) == (3, 3)


@pytest.mark.parametrize("data", [b"", b"\xff"])
def test_a_malformed_segment_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptDataError):
        decode_segment(data)


def test_malformed_metadata_is_corrupt() -> None:
    with pytest.raises(CorruptDataError):
        list(decode_metadata(b"\x0a\x05\x10"))
    broken = b"\x0a\x0e\x0a\x08\x08\x01\x12\x04nope\x10\x01\x18\x01"
    (segment,) = decode_metadata(broken)
    with pytest.raises(CorruptDataError, match="ledger 1"):
        segment.add_to(PositionRangeSet())


def test_a_segment_is_read_as_it_was_written() -> None:
    indexes = [pack(5, 1, 2), pack(6, 2**40, 0)]
    assert decode_segment(encode_segment(indexes)) == indexes
