"""Counts publishes without an answer, for each connection and for the whole broker.

A connection owns one `InFlightPublishes`; all of a broker's share one `PublishBuffer`. They count
entries and bytes, and call back when reading SENDs has to stop (at the limit) and when it may go on
(at half of it). Nothing here waits or reads sockets; the connection does.

Invariant: every `started` is matched by exactly one `finished`, whether the publish succeeded or
not.

Source: maxPendingPublishRequestsPerConnection, maxMessagePublishBufferSizeInMB in broker.conf.
"""

from __future__ import annotations

from collections.abc import Callable

NO_LIMIT = 1 << 62

MAX_HELD_BYTES = 256 * 1024
"""Bytes that a connection's publishes may wait with for a rate, until it stops being read. They are
not part of the broker's buffer: a limited topic must not stop other connections."""


class PublishBuffer:
    """Bytes of all publishes under way in one broker; its connections pause and resume together."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` 0 means no limit."""
        self.limit = max_bytes if max_bytes > 0 else NO_LIMIT
        self.resume_bytes = self.limit // 2
        self.bytes_count = 0
        self.is_full = False
        self._connections: dict[InFlightPublishes, None] = {}  # in order of connecting

    def add(self, connection: InFlightPublishes) -> None:
        """Add a connection, to be paused with the others."""
        self._connections[connection] = None

    def remove(self, connection: InFlightPublishes) -> None:
        """Remove a closed connection; its publishes still count until they are answered."""
        self._connections.pop(connection, None)

    def filled(self) -> None:
        """Pause all connections: the limit is reached."""
        self.is_full = True
        for connection in list(self._connections):
            connection.update()

    def drained(self) -> None:
        """Let all connections go on: half of the limit is free again."""
        self.is_full = False
        for connection in list(self._connections):
            connection.update()


class InFlightPublishes:
    """Publishes of one connection without an answer; pauses and resumes its reading."""

    __slots__ = (
        "_is_closed",
        "_on_pause",
        "_on_resume",
        "buffer",
        "entries_count",
        "held_bytes",
        "is_paused",
        "max_entries",
        "max_non_persistent",
        "non_persistent_count",
        "resume_entries",
    )

    def __init__(
        self,
        buffer: PublishBuffer,
        *,
        max_entries: int,
        max_non_persistent: int = 1000,
        on_pause: Callable[[], None],
        on_resume: Callable[[], None],
    ) -> None:
        """`max_entries` 0 means no limit of the connection's own.

        `max_non_persistent` (maxConcurrentNonPersistentMessagePerConnection) is enforced by
        non-persistent topics themselves.
        """
        self.buffer = buffer
        self.max_entries = max_entries if max_entries > 0 else NO_LIMIT
        self.resume_entries = self.max_entries // 2
        self.entries_count = 0
        self.max_non_persistent = max_non_persistent  # beyond it, publishes are dropped
        self.non_persistent_count = 0
        self.held_bytes = 0  # of `entries_count`, those that wait for a rate
        self.is_paused = False
        self._is_closed = False
        self._on_pause = on_pause
        self._on_resume = on_resume
        buffer.add(self)

    def started(self, size_bytes: int) -> None:
        """Count one received publish (`Producer.publish` has the same lines inline)."""
        self.entries_count += 1
        self.buffer.bytes_count += size_bytes
        if self.entries_count >= self.max_entries or self.buffer.bytes_count >= self.buffer.limit:
            self.on_limit()

    def on_limit(self) -> None:
        """Pause, after a limit of this connection or of all together was reached."""
        if self.entries_count >= self.max_entries:
            self.update()
        if self.buffer.bytes_count >= self.buffer.limit and not self.buffer.is_full:
            self.buffer.filled()

    def finished(self, entries_count: int, size_bytes: int) -> None:
        """Subtract publishes that were answered, or dropped."""
        self.entries_count -= entries_count
        buffer = self.buffer
        buffer.bytes_count -= size_bytes
        assert self.entries_count >= 0
        assert buffer.bytes_count >= 0
        if buffer.is_full and buffer.bytes_count <= buffer.resume_bytes:
            buffer.drained()
        if self.is_paused:
            self.update()

    def hold(self, size_bytes: int) -> None:
        """Count one publish as waiting for a rate, no longer as part of the broker's buffer."""
        buffer = self.buffer
        buffer.bytes_count -= size_bytes
        self.held_bytes += size_bytes
        if buffer.is_full and buffer.bytes_count <= buffer.resume_bytes:
            buffer.drained()
        if self.held_bytes >= MAX_HELD_BYTES:
            self.update()

    def release(self, size_bytes: int) -> None:
        """Count one publish that waited as under way again."""
        self.buffer.bytes_count += size_bytes
        self.held_bytes -= size_bytes
        assert self.held_bytes >= 0
        if self.is_paused:
            self.update()

    def update(self) -> None:
        """Pause or resume as the counts demand; safe to call at any time."""
        if self._is_closed:
            return
        limit = self.resume_entries + 1 if self.is_paused else self.max_entries
        most_held = MAX_HELD_BYTES // 2 if self.is_paused else MAX_HELD_BYTES
        should_pause = (
            self.buffer.is_full or self.entries_count >= limit or self.held_bytes >= most_held
        )
        if should_pause == self.is_paused:
            return
        self.is_paused = should_pause
        if should_pause:
            self._on_pause()
        else:
            self._on_resume()

    def close(self) -> None:
        """Call no more callbacks: the connection is closed."""
        self._is_closed = True
        self.buffer.remove(self)
