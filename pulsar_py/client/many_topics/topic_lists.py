"""Tracks the topics of a pattern consumer, and divides the receiver queue among parts (pure).

`TopicList` holds the matching topics of a namespace. It takes whole lists (polling, a watcher's
first answer) and differences (a watcher's updates), and returns the topics that join and leave. A
pattern is matched against a topic's name without scheme and partition, and compared in full; a
partitioned topic is one topic here, whatever partitions are listed.

Source: TopicList in Pulsar; PatternMultiTopicsConsumerImpl in its Java client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.common.conditions import Compiler
from pulsar_py.common.errors import InvalidConfigurationError, InvalidNamespaceNameError
from pulsar_py.common.hashing import topics_hash
from pulsar_py.common.names import NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName

__all__ = [
    "TopicList",
    "TopicPattern",
    "TopicsChange",
    "receiver_queue_size_per_topic",
    "topics_change",
]

_SCHEME = re.compile(r"(persistent|non-persistent)://")


def receiver_queue_size_per_topic(
    receiver_queue_size: int, max_total_receiver_queue_size: int, topics_count: int
) -> int:
    """Messages that each of `topics_count` parts may prefetch: at least 1, at most its own limit.

    Source: `maxTotalReceiverQueueSizeAcrossPartitions`.
    """
    if topics_count <= 0:
        return receiver_queue_size
    return max(1, min(receiver_queue_size, max_total_receiver_queue_size // topics_count))


@dataclass(frozen=True, slots=True)
class TopicsChange:
    """Topics that join and leave, sorted."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def topics_change(before: AbstractSet[str], after: AbstractSet[str]) -> TopicsChange:
    """The topics that join and leave between `before` and `after`."""
    return TopicsChange(tuple(sorted(after - before)), tuple(sorted(before - after)))


class TopicPattern:
    """A regular expression over the topics of one namespace."""

    __slots__ = ("_compiled", "broker_text", "mode", "namespace_name", "text")

    def __init__(
        self,
        pattern: re.Pattern[str] | str,
        mode: RegexSubscriptionMode,
        *,
        compiler: Compiler | None = None,
    ) -> None:
        """`pattern` is `[domain://]tenant/namespace/<expression>`, or the expression alone.

        `compiler` matches the text instead of Python's `re`, without the pattern's flags.

        Raises:
            InvalidConfigurationError: The namespace is missing or not a plain name, or the
                expression doesn't compile.
        """
        text = pattern if isinstance(pattern, str) else pattern.pattern
        bare = _SCHEME.sub("", text, count=1) if _SCHEME.match(text) else text
        parts = bare.split("/", 2)
        if len(parts) != 3:  # noqa: PLR2004 - tenant, namespace, expression
            parts = ["public", "default", bare]
        try:
            self.namespace_name = NamespaceName(parts[0], parts[1])
            flags = 0 if isinstance(pattern, str) or compiler is not None else pattern.flags
            self._compiled = (compiler or partial(re.compile, flags=flags))("/".join(parts))
        except (re.error, ValueError, InvalidNamespaceNameError) as error:
            raise InvalidConfigurationError(f"topic pattern {text!r}: {error}") from error
        # Without the scheme, because names are matched without it.
        self.text = "/".join(parts)
        # The text for the broker, which does not know Python's flags: with flags it has to list all
        # topics, and only the client matches.
        plain = flags & ~re.UNICODE == 0
        self.broker_text = self.text if plain else f"{self.namespace_name}/.*"
        self.mode = _mode_of(text, mode)

    def matches(self, topic_name: TopicName) -> bool:
        """Whether the full name without scheme and partition matches, and so does the domain."""
        if topic_name.domain == PERSISTENT and self.mode is RegexSubscriptionMode.NonPersistentOnly:
            return False
        if (
            topic_name.domain == NON_PERSISTENT
            and self.mode is RegexSubscriptionMode.PersistentOnly
        ):
            return False
        base = topic_name.base
        return self._compiled.fullmatch(f"{base.namespace_name}/{base.local_name}") is not None

    def __repr__(self) -> str:
        return f"TopicPattern({self.text!r})"


def _mode_of(text: str, mode: RegexSubscriptionMode) -> RegexSubscriptionMode:
    if text.startswith("non-persistent://"):
        return RegexSubscriptionMode.NonPersistentOnly
    if text.startswith("persistent://"):
        return RegexSubscriptionMode.PersistentOnly
    return mode


class TopicList:
    """The topics of a namespace that match a pattern, as far as they are known."""

    def __init__(self, pattern: TopicPattern) -> None:
        self._pattern = pattern
        # Names as the broker lists them (partitions one by one); `hash` covers these.
        self._listed: set[str] = set()

    @property
    def topics(self) -> frozenset[str]:
        """Full names, partitioned topics once."""
        return frozenset(str(TopicName.parse(name).base) for name in self._listed)

    @property
    def hash(self) -> str:
        """The hash of the matching topics, which the broker compares on the next request."""
        return topics_hash(self._listed)

    def on_listed(self, names: Iterable[str]) -> TopicsChange:
        """Take a whole list; returns the topics that join and leave."""
        return self._become({name for name in names if self._is_wanted(name)})

    def on_updated(self, new: Iterable[str], deleted: Iterable[str]) -> TopicsChange:
        """Take a difference; returns the topics that join and leave."""
        gone = set(deleted)
        wanted = {name for name in new if self._is_wanted(name)}
        return self._become((self._listed - gone) | wanted)

    def _is_wanted(self, name: str) -> bool:
        topic_name = TopicName.parse(name)
        return not topic_name.is_system and self._pattern.matches(topic_name)

    def _become(self, listed: set[str]) -> TopicsChange:
        before = self.topics
        self._listed = listed
        return topics_change(before, self.topics)
