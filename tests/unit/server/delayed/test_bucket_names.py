from __future__ import annotations

from pulsar_py.server.delayed.bucket_names import (
    BucketName,
    doomed_ledgers,
    free_name,
    stored_buckets,
)


def test_names_are_read_as_they_are_written() -> None:
    plain, part = BucketName(719, 722), BucketName(5, 5, 3)
    assert plain.key == "#pulsar.internal.delayed.bucket_719_722"
    assert part.key == "#pulsar.internal.pulsar-py.delayed-part_5_5_3"
    properties = {plain.key: "730", part.key: "9", "mine": "1", f"{plain.key}_x": "4"}
    assert stored_buckets(properties) == {part: 9, plain: 730}


def test_a_value_that_is_no_ledger_names_nothing() -> None:
    assert stored_buckets({BucketName(1, 2).key: "x"}) == {}
    assert doomed_ledgers({"#pulsar.internal.pulsar-py.delayed-doomed": "4,,x,7"}) == [4, 7]
    assert doomed_ledgers({}) == []


def test_a_span_that_overlaps_none_gets_the_name_of_apache_pulsar() -> None:
    taken = [BucketName(3, 5), BucketName(6, 6, 0)]
    assert free_name(6, 8, taken) == BucketName(6, 8)
    assert free_name(1, 2, taken) == BucketName(1, 2)
    assert free_name(1, 3, taken) == BucketName(1, 3, 0)
    assert free_name(5, 9, taken) == BucketName(5, 9, 0)


def test_parts_of_one_span_are_numbered() -> None:
    taken = [BucketName(4, 4)]
    for number in range(3):
        name = free_name(4, 4, taken)
        assert name == BucketName(4, 4, number)
        taken.append(name)
    taken.remove(BucketName(4, 4, 1))
    assert free_name(4, 4, taken) == BucketName(4, 4, 1)
