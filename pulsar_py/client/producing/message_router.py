"""Chooses the partition of a message (pure: time and chance are arguments).

The hash of a key decides, so that one key stays in one partition; messages without a key follow the
routing mode. Round robin moves on one message at a time, or, with batching, one batch at a time:
the next partition is due when enough for a batch went to the current one, or when its turn has
lasted the publish delay times `batching_partition_switch_frequency_by_publish_delay`, 10 by
default. So few batches are open at once, and they are full. The router counts by itself, with the
options that `batch_container` goes by: another rule there needs one here.

Source: RoundRobinPartitionMessageRouterImpl and SinglePartitionMessageRouterImpl in Pulsar's Java
client; RoundRobinMessageRouter in the C++ client, which counts messages and bytes as here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import Final

from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.producer_config import MessageRouterFunction, ProducerConfig
from pulsar_py.client.shared.enums import HashingScheme, PartitionsRoutingMode
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.hashing import boost_string_hash, java_string_hash, murmur3_32

__all__ = [
    "CustomRouter",
    "MessageRouter",
    "RoundRobinRouter",
    "SinglePartitionRouter",
    "key_partition",
    "message_router",
]

_HASHES: Final[dict[HashingScheme, Callable[[str], int]]] = {
    HashingScheme.JavaStringHash: java_string_hash,
    HashingScheme.Murmur3_32Hash: lambda key: murmur3_32(key.encode()),
    HashingScheme.BoostHash: lambda key: boost_string_hash(key.encode()),
}


def key_partition(scheme: HashingScheme, key: str, partitions_count: int) -> int:
    """The partition of a key; one given as bytes counts by its Base64 text."""
    return _HASHES[scheme](key) % partitions_count


class MessageRouter(ABC):
    """Chooses partitions for one producer."""

    @abstractmethod
    def choose_plain(self, size: int, now: float, partitions_count: int) -> int:
        """The partition of a message that has nothing but a payload of that many bytes."""

    @abstractmethod
    def choose(self, message: OutgoingMessage, now: float, partitions_count: int) -> int:
        """The partition of any message."""

    def first_partition(self, partitions_count: int) -> int:
        """The partition for the first message without a key; a lazy producer opens it first."""
        del partitions_count
        return 0


class SinglePartitionRouter(MessageRouter):
    """Sends all messages without a key to one partition."""

    def __init__(self, partition: int, scheme: HashingScheme) -> None:
        """`partition` may be any number: it is taken modulo the number of partitions."""
        self._partition = partition
        self._scheme = scheme

    def choose_plain(self, size: int, now: float, partitions_count: int) -> int:
        """The one partition."""
        del size, now
        return self._partition % partitions_count

    def choose(self, message: OutgoingMessage, now: float, partitions_count: int) -> int:
        """The partition of the key's hash; without a key as `choose_plain`."""
        if message.key is not None:
            return key_partition(self._scheme, message.partition_key(), partitions_count)
        return self.choose_plain(0, now, partitions_count)

    def first_partition(self, partitions_count: int) -> int:
        """The one partition."""
        return self._partition % partitions_count


class RoundRobinRouter(MessageRouter):
    """Sends messages without a key to one partition after the other.

    Invariant: without batching each turn is one message (`messages_limit` 1).
    """

    def __init__(
        self,
        start: int,
        scheme: HashingScheme,
        *,
        messages_limit: int = 1,
        bytes_limit: int = 0,
        turn_seconds: float = 0,
    ) -> None:
        """Begin at partition `start`.

        Args:
            start: Any number, taken modulo the number of partitions; random, so that producers
                don't all begin at the same one.
            scheme: Hashes the keys of messages that have one.
            messages_limit: Messages in one partition's turn.
            bytes_limit: Bytes in one turn; it ends before the message that exceeds them.
            turn_seconds: The longest time of one turn.
        """
        self._cursor = start
        self._scheme = scheme
        self._messages_limit = messages_limit
        self._bytes_limit = bytes_limit
        self._turn_seconds = turn_seconds
        # Messages and bytes of this turn, and when it began.
        self._messages_count = 0
        self._bytes_count = 0
        self._begun_at = 0.0

    def choose_plain(self, size: int, now: float, partitions_count: int) -> int:
        """The partition whose turn it is."""
        # Hot path: produce to partitions in `make bench-client`.
        count = self._messages_count
        if not count:
            self._begun_at = now
        elif (
            count >= self._messages_limit
            or self._bytes_count + size > self._bytes_limit
            or now - self._begun_at >= self._turn_seconds
        ):
            self._cursor += 1
            self._begun_at = now
            count = self._bytes_count = 0
        self._messages_count = count + 1
        self._bytes_count += size
        return self._cursor % partitions_count

    def choose(self, message: OutgoingMessage, now: float, partitions_count: int) -> int:
        """The partition of the key's hash; without a key as `choose_plain`."""
        if message.key is not None:
            return key_partition(self._scheme, message.partition_key(), partitions_count)
        return self.choose_plain(len(message.payload), now, partitions_count)

    def first_partition(self, partitions_count: int) -> int:
        """The first partition."""
        return self._cursor % partitions_count


class CustomRouter(MessageRouter):
    """Sends each message to the partition that the application's function returns."""

    def __init__(self, function: MessageRouterFunction) -> None:
        self._function = function

    def choose_plain(self, size: int, now: float, partitions_count: int) -> int:
        """Not called: the function takes the message itself."""
        del size, now, partitions_count
        raise AssertionError("a custom router takes whole messages")

    def choose(self, message: OutgoingMessage, now: float, partitions_count: int) -> int:
        """The function's result, checked.

        Raises:
            InvalidConfigurationError: It is not the index of a partition.
        """
        del now
        chosen = self._function(message, partitions_count)
        if not isinstance(chosen, int) or not 0 <= chosen < partitions_count:
            raise InvalidConfigurationError(
                f"message_router returned {chosen!r}: expected 0 to {partitions_count - 1}"
            )
        return chosen


def message_router(config: ProducerConfig, chance: Random) -> MessageRouter:
    """The router that a producer's options ask for."""
    if config.message_router is not None:
        return CustomRouter(config.message_router)
    start = chance.randrange(2**31)
    if config.message_routing_mode is PartitionsRoutingMode.UseSinglePartition:
        return SinglePartitionRouter(start, config.hashing_scheme)
    if not config.batching_enabled:
        return RoundRobinRouter(start, config.hashing_scheme)
    return RoundRobinRouter(
        start,
        config.hashing_scheme,
        messages_limit=config.batching_max_messages,
        bytes_limit=config.batching_max_allowed_size_in_bytes,
        turn_seconds=config.batching_max_publish_delay_ms
        / 1000
        * config.batching_partition_switch_frequency_by_publish_delay,
    )
