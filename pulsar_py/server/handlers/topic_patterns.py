"""Matches topic names with patterns, and hashes topic lists (pure).

A pattern is matched against the whole name without its domain and without `-partition-N`. RE2
matches it in a time that is linear in the name, whatever pattern a client sends; patterns that RE2
does not know are refused. RE2 is loaded with the first pattern.

The hash is CRC32C over the sorted names joined by commas, as hex digits of its little-endian bytes.

Source: TopicList, TopicsPattern in Pulsar's common module; PIP-145.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pulsar_py.common.errors import InvalidTopicNameError
from pulsar_py.common.hashing import crc32c
from pulsar_py.common.loops.work import in_turns
from pulsar_py.common.names import PARTITION_SUFFIX

_EMPTY_HASH = "00000000"
_DOMAIN_SEPARATOR = "://"
_MAX_MEMORY_BYTES = 1 << 20


class TopicPattern:
    """A compiled pattern of topic names."""

    def __init__(self, text: str) -> None:
        """Read a pattern as clients send it, with or without a domain.

        Raises:
            InvalidTopicNameError: It does not compile.
        """
        import re2  # noqa: PLC0415 - at first use

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MAX_MEMORY_BYTES
        expression = text.partition(_DOMAIN_SEPARATOR)[2] if _DOMAIN_SEPARATOR in text else text
        try:
            self._matches = re2.compile(expression, options).fullmatch
        except re2.error as error:
            raise InvalidTopicNameError(
                f"invalid topics pattern {text!r}: {_reason(error)} (patterns are RE2's, which has "
                "no look-around and no back-references)"
            ) from None

    def matches(self, topic: str) -> bool:
        """Whether a full topic name matches."""
        return self._matches(_without_domain_and_partition(topic)) is not None

    def filter(self, topics: Iterable[str]) -> list[str]:
        """The matching topics, in their order."""
        return [topic for topic in topics if self.matches(topic)]

    async def filter_many(self, topics: Sequence[str]) -> list[str]:
        """As `filter`, for all topics of a namespace: the loop runs other tasks in between."""
        matching: list[str] = []
        async for some in in_turns(topics):
            matching += self.filter(some)
        return matching


def _reason(error: Exception) -> str:
    """RE2's message, which comes as bytes."""
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def topics_hash(topics: Iterable[str]) -> str:
    """The hash of a list of topics, which client and broker compare instead of lists."""
    names = sorted(topics)
    if not names:
        return _EMPTY_HASH
    return crc32c(",".join(names).encode()).to_bytes(4, "little").hex()


def _without_domain_and_partition(topic: str) -> str:
    name = topic.partition(_DOMAIN_SEPARATOR)[2]
    base, separator, digits = name.rpartition(PARTITION_SUFFIX)
    return base if separator and digits.isdigit() else name
