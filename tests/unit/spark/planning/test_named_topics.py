"""Options that name single topics, checked against existing and missing topics."""

from __future__ import annotations

import json

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.position import Position
from pulsar_py.spark.planning.named_topics import check_names, check_range, place_of, time_of
from pulsar_py.spark.planning.pieces import LedgerExtent, TopicLayout
from pulsar_py.spark.shared.offsets import Edge, UserOffsets, UserPosition
from tests.unit.spark.broker_parts import read_options

PREFIX = "persistent://public/default/"
URL = "pulsar://localhost:6650"
PARTITIONS = [f"{PREFIX}events-partition-{index}" for index in range(2)]


def test_a_partition_s_own_entry_goes_before_its_topic_s() -> None:
    offsets = UserOffsets.parse('{"events": "1:2", "events-partition-1": "latest"}', "o")
    assert place_of(offsets, PARTITIONS[0], Edge.EARLIEST) == UserPosition(Position(1, 2))
    assert place_of(offsets, PARTITIONS[1], Edge.EARLIEST) is Edge.LATEST
    assert place_of(offsets, PREFIX + "other", Edge.EARLIEST) is Edge.EARLIEST
    times = {"": 1, "events": 2, "events-partition-1": 3}
    named = [time_of(times, topic) for topic in (PREFIX + "other", *PARTITIONS)]
    assert named == [1, 2, 3]


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets", "startingTime"])
def test_a_name_that_is_no_topic_of_the_read_is_refused(option: str) -> None:
    def check(name: str) -> None:
        place = 5 if option == "startingTime" else "1:2"
        options = read_options(URL, topic="events", **{option: json.dumps({name: place})})  # type: ignore[arg-type] # none is is_streaming
        assert check_names(options, PARTITIONS) == []

    for known in ("events", PREFIX + "events", "events-partition-1"):
        check(known)
    with pytest.raises(ConfigurationError, match=f"{option}: 'evnets' is not .*mean '{PREFIX}even"):
        check("evnets")
    with pytest.raises(ConfigurationError, match=f"{option}: 'events-partition-2' is not a topic"):
        check("events-partition-2")
    with pytest.raises(ConfigurationError, match=r"'something else' is not a topic of this read$"):
        check("something else")


def test_a_name_that_matches_the_pattern_may_have_been_deleted() -> None:
    places = '{"events-old": "1:2"}'
    options = read_options(URL, topicsPattern="events.*", startingOffsets=places)
    (warning,) = check_names(options, PARTITIONS)
    assert warning.startswith("startingOffsets: 'events-old' matches topicsPattern")
    with pytest.raises(ConfigurationError, match="'events-old' is not a topic"):
        check_names(read_options(URL, topicsPattern="events", startingOffsets=places), PARTITIONS)


def test_a_start_may_be_the_end_and_nothing_beyond() -> None:
    # The last ledger is open and has no entries yet.
    ledgers = [LedgerExtent(3, 10, 100), LedgerExtent(5, 10, 100), LedgerExtent(7, 0, 0)]
    layouts = [
        TopicLayout(PARTITIONS[0], ledgers),
        TopicLayout(PARTITIONS[0], [], known_end=Position(5, 10)),
    ]

    def check(layout: TopicLayout, start: str) -> None:
        check_range(read_options(URL, topic="t", startingOffsets=f'{{"events":"{start}"}}'), layout)

    for layout in layouts:
        for start in ("0:0", "3:99", "5:10"):
            check(layout, start)
        for start in ("5:11", "7:1", "8:0"):
            with pytest.raises(ConfigurationError, match=f"{start} is past the topic's end, 5:10"):
                check(layout, start)
    check(layouts[0], "7:0")
