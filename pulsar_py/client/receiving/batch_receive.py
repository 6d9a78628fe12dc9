"""Decides when the messages collected for one `batch_receive` are enough (pure).

A policy has up to three limits: messages, bytes and time. `BatchCollector` decides about the first
two; the consumer keeps the time. A batch always takes one message, however large.

Source: BatchReceivePolicy and MessagesImpl in Pulsar's Java client.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_py.client.messages.message import Message
from pulsar_py.client.messages.option_checks import check_options
from pulsar_py.common.errors import InvalidConfigurationError

__all__ = ["BatchCollector", "ConsumerBatchReceivePolicy"]


@dataclass(frozen=True, slots=True)
class ConsumerBatchReceivePolicy:
    """Limits of one `batch_receive`: a limit of 0 or less is none; at least one must be above 0."""

    max_num_message: int = -1
    """Most messages of a batch."""
    max_num_bytes: int = 10 * 1024 * 1024
    """Most bytes of payloads of a batch; a larger message comes alone."""
    timeout_ms: int = 100
    """The longest wait in milliseconds, after which messages that came are returned."""

    def __post_init__(self) -> None:
        check_options(self)
        if self.max_num_message <= 0 and self.max_num_bytes <= 0 and self.timeout_ms <= 0:
            raise InvalidConfigurationError(
                f"batch_receive_policy: max_num_message ({self.max_num_message}), max_num_bytes "
                f"({self.max_num_bytes}) and timeout_ms ({self.timeout_ms}): one must be above 0"
            )

    @property
    def timeout_seconds(self) -> float | None:
        """The time limit, None without one."""
        return self.timeout_ms / 1000 if self.timeout_ms > 0 else None


class BatchCollector:
    """The messages collected for one `batch_receive`."""

    __slots__ = ("_bytes_left", "_count_left", "_policy", "messages")

    def __init__(self, policy: ConsumerBatchReceivePolicy) -> None:
        self._policy = policy
        self.clear()

    def clear(self) -> None:
        """Forget the collected messages: they were delivered, or returned to their queue."""
        policy = self._policy
        self.messages: list[Message] = []
        # None: no such limit.
        self._count_left = policy.max_num_message if policy.max_num_message > 0 else None
        self._bytes_left = policy.max_num_bytes if policy.max_num_bytes > 0 else None

    @property
    def is_full(self) -> bool:
        """Whether not even an empty message fits."""
        return self._count_left == 0 or (self._bytes_left is not None and self._bytes_left <= 0)

    def has_room_for(self, message: Message) -> bool:
        """Whether the message may be added; the first one always may."""
        if not self.messages:
            return True
        if self._count_left == 0:
            return False
        return self._bytes_left is None or message.size() <= self._bytes_left

    def add(self, message: Message) -> None:
        """Add a message that `has_room_for`."""
        self.messages.append(message)
        if self._count_left is not None:
            self._count_left -= 1
        if self._bytes_left is not None:
            self._bytes_left -= message.size()
