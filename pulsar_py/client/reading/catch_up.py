"""Decides whether a reader has reached the messages that were the last at a given time (pure).

Topics may grow without end while one reads, so a table view catches up with the last messages that
there were when it asked.
"""

from __future__ import annotations

from collections.abc import Iterable

from pulsar_py.client.messages.topic_message_id import TopicMessageId
from pulsar_py.common.message_id import MessageId

__all__ = ["CatchUp"]


class CatchUp:
    """The last messages of topics at a given time, until they have been read."""

    __slots__ = ("_targets",)

    def __init__(self, last: Iterable[TopicMessageId], read: dict[str, MessageId]) -> None:
        """`last` has each topic's last message, `read` the last one read so far of each topic."""
        # Topics that were not read to their last message yet. An entry id of -1: an empty topic.
        self._targets: dict[str, MessageId] = {
            each.topic_name: each
            for each in last
            if each.entry_id >= 0 and not _is_reached(each, read.get(each.topic_name))
        }

    @property
    def is_done(self) -> bool:
        """Whether all topics were read to their last message."""
        return not self._targets

    def on_read(self, topic_name: str, message_id: MessageId) -> bool:
        """Take note that a message was read; returns `is_done`."""
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
