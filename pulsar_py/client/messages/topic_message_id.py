"""Message ids with their topic, and positions in several topics at once (values).

Ids of different topics don't compare, so a consumer of several topics returns ids with the topic's
name, by which it sends an acknowledgement or a seek to the right part. The serialized form is that
of the plain id, as in the official clients: the name is not in it.

Source: TopicMessageId, MultiMessageIdImpl and TopicMessageIdImpl in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import total_ordering

from pulsar_py.client.messages.message import ReceivedMessageId
from pulsar_py.common.errors import InvalidMessageError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId
from pulsar_py.common.names import TopicName

__all__ = [
    "MultiMessageId",
    "SeekTarget",
    "TopicMessageId",
    "group_by_topic",
    "last_of",
    "newest_by_topic",
    "route",
    "seek_targets",
    "topic_of",
]


@total_ordering
class TopicMessageId(MessageId):
    """A message id with its topic. Equal to the plain id, too; ordered within its topic only."""

    __slots__ = ("topic_name",)

    def __init__(
        self,
        topic_name: str,
        ledger_id: int,
        entry_id: int,
        *,
        partition_index: int = -1,
        batch_index: int = -1,
        batch_size: int = 0,
        first_chunk: MessageId | None = None,
    ) -> None:
        """`topic_name` is the full name of the topic or partition."""
        super().__init__(
            ledger_id,
            entry_id,
            partition_index=partition_index,
            batch_index=batch_index,
            batch_size=batch_size,
            first_chunk=first_chunk,
        )
        # The full name of the topic or partition.
        self.topic_name = topic_name

    @classmethod
    def of(cls, topic_name: str, message_id: MessageId) -> TopicMessageId:
        """Make an id of the topic from the message id, which may lack the topic's name."""
        return cls(
            topic_name,
            message_id.ledger_id,
            message_id.entry_id,
            partition_index=message_id.partition_index,
            batch_index=message_id.batch_index,
            batch_size=message_id.batch_size,
            first_chunk=message_id.first_chunk,
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TopicMessageId) and other.topic_name != self.topic_name:
            return False
        return super().__eq__(other)

    def __lt__(self, other: MessageId) -> bool:
        if isinstance(other, TopicMessageId) and other.topic_name != self.topic_name:
            return NotImplemented
        return super().__lt__(other)

    def __hash__(self) -> int:
        return super().__hash__()


class MultiMessageId(Mapping[str, MessageId]):
    """A position in each of several topics: full topic name -> id. Hashable, unordered."""

    __slots__ = ("_ids",)

    def __init__(self, ids: Mapping[str, MessageId]) -> None:
        """`ids` maps full topic names to ids."""
        self._ids = dict(sorted(ids.items()))

    def __getitem__(self, topic_name: str) -> MessageId:
        return self._ids[topic_name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __hash__(self) -> int:
        return hash(tuple(self._ids.items()))

    def __repr__(self) -> str:
        return f"MultiMessageId({', '.join(f'{topic}={i}' for topic, i in self._ids.items())})"


def topic_of(message_id: MessageId) -> str | None:
    """The full name of the topic or partition that an id carries; None if it carries none.

    Ids of received messages carry it, and `TopicMessageId`s do.
    """
    if isinstance(message_id, TopicMessageId | ReceivedMessageId):
        return message_id.topic_name
    return None


def group_by_topic(message_ids: Iterable[MessageId]) -> dict[str, list[MessageId]]:
    """Ids grouped by topic, in their order within each.

    Raises:
        InvalidMessageError: An id carries no topic.
    """
    grouped: dict[str, list[MessageId]] = {}
    for message_id in message_ids:
        topic_name = topic_of(message_id)
        if topic_name is None:
            raise InvalidMessageError(
                f"message id {message_id} has no topic: a consumer of several topics takes "
                f"messages, or the ids that they carry"
            )
        grouped.setdefault(topic_name, []).append(message_id)
    return grouped


def newest_by_topic(message_ids: Iterable[MessageId]) -> MultiMessageId:
    """The greatest id of each topic.

    Raises:
        InvalidMessageError: An id carries no topic.
    """
    return MultiMessageId({t: max(ids) for t, ids in group_by_topic(message_ids).items()})


def route(message_id: MessageId, topics: Collection[str]) -> str:
    """Find the one of `topics` (full names, partitions one by one) that an id belongs to.

    Raises:
        InvalidMessageError: The id carries no topic, and there are several; or another topic.
    """
    topic_name = topic_of(message_id)
    if topic_name is None and len(topics) == 1:
        return next(iter(topics))
    if topic_name is None and message_id.partition_index >= 0:
        topic_name = _partition_of_one_topic(message_id.partition_index, topics)
    if topic_name is None:
        raise InvalidMessageError(
            f"message id {message_id} has no topic, and the consumer has {len(topics)}: give the "
            f"message, its message_id(), or a TopicMessageId"
        )
    if topic_name not in topics:
        raise InvalidMessageError(
            f"message id {message_id} is of {topic_name}, which is none of the consumer's "
            f"{len(topics)} topics"
        )
    return topic_name


def _partition_of_one_topic(index: int, topics: Collection[str]) -> str | None:
    """The partition of that index, if all topics are partitions of one."""
    bases = list(dict.fromkeys(TopicName.parse(topic).base for topic in topics))
    if len(bases) != 1:
        return None
    return str(bases[0].partition(index))


SeekTarget = MessageId | Mapping[str, MessageId] | int | Callable[[str], MessageId | int | None]
"""An id (earliest, latest, or of one topic), a mapping from topics to ids, milliseconds since
1970, or a function from a topic's name to one of these or None."""


def seek_targets(target: SeekTarget, topics: Collection[str]) -> dict[str, MessageId | int]:
    """The position to seek in each topic; topics to leave alone are left out.

    Raises:
        InvalidMessageError: An id belongs to none of the topics.
    """
    if callable(target):
        chosen = {topic: target(topic) for topic in topics}
        return {topic: each for topic, each in chosen.items() if each is not None}
    if isinstance(target, int):
        return dict.fromkeys(topics, target)
    if isinstance(target, Mapping):
        return {route(TopicMessageId.of(t, i), topics): i for t, i in target.items()}
    if target in (EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID):
        return dict.fromkeys(topics, target)
    return {route(target, topics): target}


def last_of(ids: Mapping[str, MessageId]) -> list[TopicMessageId]:
    """The ids of a mapping by topic, each with its topic."""
    return [TopicMessageId.of(topic, message_id) for topic, message_id in ids.items()]
