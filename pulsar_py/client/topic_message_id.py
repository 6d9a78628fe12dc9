"""Message ids that know their topic, and positions in several topics at once (pure).

Ids of different topics don't compare, so a consumer of many topics gives out ids that carry the
topic's name: it sends an acknowledgement or a seek to the right part. The serialized form is that
of the plain id, as in the official clients: the name is not in it.

Source: TopicMessageId, MultiMessageIdImpl and TopicMessageIdImpl in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import total_ordering

from pulsar_py.client.message import ReceivedMessageId
from pulsar_py.common.errors import InvalidMessageError
from pulsar_py.common.message_id import MessageId

__all__ = ["MultiMessageId", "TopicMessageId", "group_by_topic", "newest_by_topic", "topic_of"]


@total_ordering
class TopicMessageId(MessageId):
    """An id of one topic's message. Equal to the plain id too; ordered within its topic only."""

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
        """Take the parts; `topic_name` is the full name, with the partition."""
        super().__init__(
            ledger_id,
            entry_id,
            partition_index=partition_index,
            batch_index=batch_index,
            batch_size=batch_size,
            first_chunk=first_chunk,
        )
        # The full name, that of the partition where there is one.
        self.topic_name = topic_name

    @classmethod
    def of(cls, topic_name: str, message_id: MessageId) -> TopicMessageId:
        """That id in that topic."""
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
        """Take one id a topic."""
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
    """The full name of the topic, or partition, whose id it is; None where it does not tell.

    Those of received messages tell, and `TopicMessageId`s.
    """
    if isinstance(message_id, TopicMessageId | ReceivedMessageId):
        return message_id.topic_name
    return None


def group_by_topic(message_ids: Iterable[MessageId]) -> dict[str, list[MessageId]]:
    """Ids by their topics, order kept within each.

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
