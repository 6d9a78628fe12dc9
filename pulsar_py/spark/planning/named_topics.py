"""Checks options that name single topics, and finds what holds for each topic (pure).

`startingOffsets`, `endingOffsets`, `startingTime` and `endingTime` may name topics. A topic that
they do not name gets a default, and in streams that is the end: a misspelt name would skip all that
is there. So a name that is no topic of the read is an error, except one that matches the pattern,
whose topic may have been deleted. A start behind the end of a topic is an error, too: no message
would ever come.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from pulsar_py.client.many_topics.topic_lists import TopicPattern
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.names import TopicName
from pulsar_py.spark.planning.pieces import TopicLayout
from pulsar_py.spark.shared.offsets import Edge, UserOffsets, UserPosition
from pulsar_py.spark.shared.options import ReadOptions


def time_of(times: Mapping[str, int], topic: str) -> int | None:
    """The time that applies to a topic partition: its own, its topic's, or that of all topics."""
    base = str(TopicName.parse(topic).base)
    named = {("" if not name else str(TopicName.parse(name))): at for name, at in times.items()}
    return named.get(topic, named.get(base, named.get("")))


def place_of(offsets: UserOffsets, topic: str, default: Edge) -> Edge | UserPosition:
    """The place that applies to a topic partition."""
    named = {str(TopicName.parse(name)): place for name, place in offsets.places.items()}
    place = UserOffsets(offsets.default, named).place_of(topic, str(TopicName.parse(topic).base))
    return default if place is None else place


def check_names(options: ReadOptions, partitions: Iterable[str]) -> list[str]:
    """Refuse options that name a topic which is not read.

    Returns:
        Texts of warnings: names that match the pattern, and whose topics don't exist now.

    Raises:
        ConfigurationError: A name is no topic of the read; the error proposes the nearest.
    """
    topics = set(partitions)
    topics |= {str(TopicName.parse(topic).base) for topic in topics}
    missing = []
    for option, given in _named(options):
        name = TopicName.parse(given)
        if str(name) in topics:
            continue
        if not _matches(options, name):
            raise ConfigurationError(
                f"{option}: {given!r} is not a topic of this read{_nearest(name, topics)}"
            )
        missing.append(f"{option}: {given!r} matches topicsPattern, and there is no such topic")
    return missing


def _named(options: ReadOptions) -> Iterator[tuple[str, str]]:
    """The options, each with a topic that it names."""
    for option, offsets in (
        ("startingOffsets", options.starting),
        ("endingOffsets", options.ending),
    ):
        yield from ((option, topic) for topic in (offsets.places if offsets else ()))
    times = {"startingTime": options.starting_time_millis, "endingTime": options.ending_time_millis}
    for option, by_topic in times.items():
        yield from ((option, topic) for topic in by_topic if topic)


def is_read(options: ReadOptions, topic: str) -> bool:
    """Whether the options ask for a topic, or for the topic that a partition is of."""
    name = TopicName.parse(topic)
    if options.topics.pattern is not None:
        return _matches(options, name.base)
    named = {TopicName.parse(each) for each in options.topics.names}
    return name in named or name.base in named


def _matches(options: ReadOptions, name: TopicName) -> bool:
    if options.topics.pattern is None:
        return False
    pattern = TopicPattern(options.topics.pattern, RegexSubscriptionMode.PersistentOnly)
    return pattern.matches(name)


def _nearest(name: TopicName, topics: Iterable[str]) -> str:
    """A hint at the nearest topic, by local names: the rest is the same for most topics."""
    by_local = {TopicName.parse(topic).local_name: topic for topic in sorted(topics)}
    close = difflib.get_close_matches(name.local_name, by_local, n=1)
    return f", did you mean {by_local[close[0]]!r}?" if close else ""


def check_range(options: ReadOptions, layout: TopicLayout) -> None:
    """Refuse a start where no message would ever come.

    Raises:
        ConfigurationError: The start is past the topic's end, or after the time where the query
            ends.
    """
    since = time_of(options.starting_time_millis, layout.topic)
    until = time_of(options.ending_time_millis, layout.topic)
    if since is not None and until is not None and since > until:
        raise ConfigurationError(
            f"startingTime: {layout.topic}: {since} is after the endingTime {until};"
            " a batch needs a start that is not after its end"
        )
    place = place_of(options.starting, layout.topic, Edge.EARLIEST)
    if since is None and isinstance(place, UserPosition) and layout.is_past_end(place.start):
        raise ConfigurationError(
            f"startingOffsets: {layout.topic}: {place.start} is past the topic's end,"
            f" {layout.end}: no message would come; name an earlier position, or latest"
        )
