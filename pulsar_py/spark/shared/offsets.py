"""Offsets: the next position to read of each topic partition, in checkpoints and options (pure).

Everywhere inside the connector an offset is the *next position to read*, so ranges are half-open:
`[start, end)`. That position may not exist yet (one past the last entry) or may lie past the end
of a closed ledger; `TopicLayout.normalize` moves it to where reading goes on. Spark stores the JSON
of a `StreamOffset` in its checkpoint, with sorted keys, because Spark compares offsets as text:

    {"persistent://public/default/t-partition-0": "12:345", "~v": "1"}

Users give positions inclusively, for the start and for the end, in the forms of the JVM connector
and in one that can be typed (`UserOffsets.parse`).

Source: SpecificPulsarOffset and JSONParser of the connector `pulsar-spark`; docs/FORMATS.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pulsar_py.common.errors import ConfigurationError, InvalidTopicNameError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import EARLIEST, LATEST, Position

VERSION_KEY: Final = "~v"
"""The key of the version in a checkpoint; `~` sorts behind every topic name."""
VERSION: Final = "1"


class Edge(Enum):
    """The beginning or the end of a topic, as users name it."""

    EARLIEST = "earliest"
    LATEST = "latest"


_BYTES: Final = range(-128, 256)
"""The numbers that stand for a byte in JSON, signed or not."""


@dataclass(frozen=True, slots=True)
class UserPosition:
    """A message that a user named; the batch index matters at the start of a range only."""

    position: Position
    batch_index: int = -1

    @property
    def start(self) -> Position:
        """The start of a range that begins with this message."""
        return self.position

    @property
    def end(self) -> Position:
        """The end of a range whose last entry is this message's."""
        return Position(self.position.ledger_id, self.position.entry_id + 1)


Place = Edge | UserPosition
"""The value that a user may give for one topic."""


@dataclass(frozen=True, slots=True)
class UserOffsets:
    """`startingOffsets` or `endingOffsets`: places by topic, or one for all topics."""

    default: Edge | None
    places: Mapping[str, Place]

    def place_of(self, partition: str, base: str) -> Place | None:
        """The place that applies to a partition: its own, its topic's, or the default."""
        return self.places.get(partition, self.places.get(base, self.default))

    @classmethod
    def parse(cls, text: str, option: str) -> UserOffsets:
        """Read the text of an option.

        Args:
            text: `earliest`, `latest`, or a JSON object from topics to `"earliest"`, `"latest"`,
                `"ledger:entry"`, `"ledger:entry:batch index"`, or a list of bytes of a serialized
                message id as the JVM connector writes them (signed).
            option: Its name, for errors.

        Raises:
            ConfigurationError: The text is none of these; the message names option and topic.
        """
        edge = _edge(text.strip())
        if edge is not None:
            return cls(edge, {})
        try:
            parsed = parse_json(text)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise ConfigurationError(
                f"{option}: {text!r} is neither earliest nor latest nor a JSON object from topics"
                " to positions"
            )
        for topic in parsed:
            check_topic_name(topic, option)
        return cls(None, {topic: _place(value, option, topic) for topic, value in parsed.items()})


def check_topic_name(topic: str, option: str) -> None:
    """Refuse a text that is not the name of a topic.

    Raises:
        ConfigurationError: The text names the option.
    """
    try:
        TopicName.parse(topic)
    except InvalidTopicNameError as error:
        raise ConfigurationError(f"{option}: {error}") from error


def _edge(text: str) -> Edge | None:
    try:
        return Edge(text.lower())
    except ValueError:
        return None


def _place(value: Any, option: str, topic: str) -> Place:  # Any: whatever stood in the JSON
    if isinstance(value, str):
        edge = _edge(value)
        return _typed_position(value, option, topic) if edge is None else edge
    if isinstance(value, list) and all(type(each) is int and each in _BYTES for each in value):
        return _serialized_position(bytes(each % 256 for each in value), option, topic)
    raise ConfigurationError(
        f"{option}: {topic}: {value!r} is neither earliest, latest, ledger:entry[:batch index]"
        " nor a list with the bytes of a message id"
    )


def _typed_position(text: str, option: str, topic: str) -> UserPosition:
    try:
        numbers = [int(each) for each in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or min(numbers) < 0:
        raise ConfigurationError(f"{option}: {topic}: {text!r} is not ledger:entry[:batch index]")
    return UserPosition(Position(*numbers[:2]), *numbers[2:])


def _serialized_position(data: bytes, option: str, topic: str) -> Place:
    try:
        message_id = MessageId.parse(data)
    except ValueError as error:
        raise ConfigurationError(f"{option}: {topic}: {error}") from error
    if message_id.position == EARLIEST:
        return Edge.EARLIEST
    if message_id.position == LATEST:
        return Edge.LATEST
    return UserPosition(message_id.position, message_id.batch_index)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The next position to read of each topic partition."""

    positions: Mapping[str, Position]

    def to_json(self) -> dict[str, str]:
        """The JSON that Spark stores, with sorted keys."""
        texts = {topic: str(self.positions[topic]) for topic in sorted(self.positions)}
        return texts | {VERSION_KEY: VERSION}

    @classmethod
    def from_json(cls, stored: object) -> StreamOffset:
        """Read the offset of a checkpoint, which another source may have written.

        Raises:
            ConfigurationError: Another version wrote it, or it is not an offset of ours.
        """
        if not isinstance(stored, dict):
            raise ConfigurationError(
                f"checkpoint: {stored!r} is not an offset of this source, expected a JSON object"
                " from topics to positions; is it another query's checkpoint?"
            )
        version = stored.get(VERSION_KEY)
        if version != VERSION:
            raise ConfigurationError(
                f"checkpoint: its offsets have version {version!r}, and this pulsar_py reads"
                f" {VERSION!r}: run the query with the version of pulsar_py that wrote it"
            )
        return cls(
            {
                topic: _stored_position(topic, text)
                for topic, text in stored.items()
                if topic != VERSION_KEY
            }
        )

    def __str__(self) -> str:
        return json.dumps(self.to_json())


def _stored_position(topic: str, text: object) -> Position:
    try:
        position = Position.parse(str(text))
    except ValueError as error:
        raise _no_position(topic, text) from error
    if not EARLIEST <= position <= LATEST or position.entry_id < EARLIEST.entry_id:
        raise _no_position(topic, text)
    return position


def _no_position(topic: str, text: object) -> ConfigurationError:
    return ConfigurationError(
        f"checkpoint: {topic}: {text!r} is not a position, expected ledger:entry"
    )
