"""Decides whether a reader has reached the messages that were the last at some moment (pure).

Topics may grow without end while one reads, so a table view catches up with the last messages that
there were when it asked.
"""

from __future__ import annotations

from collections.abc import Iterable

from pulsar_py.client.messages.topic_message_id import TopicMessageId
from pulsar_py.common.message_id import MessageId

__all__ = ["CatchUp"]


class CatchUp:
    """The last messages of topics at one moment, until they have been read."""

    __slots__ = ("_targets",)

    def __init__(self, last: Iterable[TopicMessageId], read: dict[str, MessageId]) -> None:
        """Take the last message of each topic, and how far each was read before."""
        # What is still to be reached. An entry id of -1 means an empty topic.
        self._targets: dict[str, MessageId] = {
            each.topic_name: each
            for each in last
            if each.entry_id >= 0 and not _is_reached(each, read.get(each.topic_name))
        }

    @property
    def is_done(self) -> bool:
        """Whether all were reached."""
        return not self._targets

    def on_read(self, topic_name: str, message_id: MessageId) -> bool:
        """A message was read; whether all are reached now."""
        target = self._targets.get(topic_name)
        if target is not None and _is_reached(target, message_id):
            del self._targets[topic_name]
        return not self._targets


def _is_reached(target: MessageId, read: MessageId | None) -> bool:
    if read is None:
        return False
    if read.position != target.position:
        return read.position > target.position
    return target.batch_index < 0 or read.batch_index < 0 or read.batch_index >= target.batch_index
