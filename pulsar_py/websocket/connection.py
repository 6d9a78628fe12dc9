"""`WebSocketConnection`: messages of text over a socket that a handshake has handed over (edge).

    open -> close sent -> peer's close, or its end, or CLOSING_SECONDS -> lost
         -> peer's close, which is answered ->                            lost

Frames are wsproto's. A message may have `max_text_bytes`, in however many fragments. Compressed
input is inflated a slice at a time, so that a few bytes can't become gigabytes before they are
counted. Output counts as taken while the transport's buffer is below its high mark: whoever sends a
lot waits for `until_writable` before each message. Text that the peer sends beyond what its dialog
takes stays in the socket (`pause_reading`); so does all of it while the peer leaves more than
`MAX_UNREAD_BYTES` of answers unread, since each frame of its own may have one.

Invariant: the dialog is told `on_closed` exactly once, and nothing after it.

Source: RFC 6455, RFC 7692; AbstractWebSocketHandler in Pulsar.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    TextMessage,
)
from wsproto.extensions import Extension, PerMessageDeflate
from wsproto.frame_protocol import CloseReason
from wsproto.handshake import H11Handshake
from wsproto.utilities import LocalProtocolError

from pulsar_py.common.loops.clock import Clock

__all__ = ["Dialog", "WebSocketConnection", "WebSocketLimits"]

CLOSING_SECONDS: Final = 2.0
"""How long the peer has to answer a close frame."""
SLICE_BYTES: Final = 1024
"""Compressed bytes that are inflated at a time: at most a thousand times as many."""
MAX_UNREAD_BYTES: Final = 4 * 1024 * 1024
"""Output that waits for the peer before nothing more is taken from it. It is large, since some
clients send a long time before they read."""
PING_PAYLOAD: Final = b"PING"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketLimits:
    """The limits of one connection; 0 seconds is never."""

    max_text_bytes: int
    idle_seconds: float
    ping_seconds: float


class Dialog(Protocol):
    """What a connection is for; owns nothing of the socket."""

    def on_open(self) -> None:
        """The connection is open: messages can be sent."""

    def on_text(self, text: str) -> None:
        """A message of the peer."""

    def on_closed(self) -> None:
        """The connection has ended, or never began."""


class WebSocketConnection:
    """One connection, from its answer 101 on; a `Successor` of its HTTP connection."""

    def __init__(
        self,
        headers: list[tuple[bytes, bytes]],
        target: str,
        *,
        clock: Clock,
        limits: WebSocketLimits,
    ) -> None:
        """Take a request for an upgrade.

        Raises:
            wsproto.utilities.RemoteProtocolError: It is not one that RFC 6455 allows.
        """
        handshake = H11Handshake(ConnectionType.SERVER)
        handshake.initiate_upgrade_connection(headers, target)
        self._handshake = handshake
        self._clock = clock
        self._limits = limits
        self._frames: Connection | None = None  # None before `begin`
        self._transport: asyncio.Transport | None = None  # None before and after
        self._dialog: Dialog | None = None  # None before `begin`, and once it was told of the end
        self._close_at_begin: tuple[int, str] | None = None  # why it ends as soon as it is open
        self._parts: list[str] = []  # of the message that is being received
        self._parts_bytes = 0
        self._is_compressed = False
        self._is_write_paused = False
        self._holds: set[str] = set()  # why nothing is read: "dialog", "unread"
        self._writable: asyncio.Future[None] | None = None  # while somebody waits
        self._moved_at = 0.0  # when anything came or went
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def attach(self, dialog: Dialog) -> None:
        """Say whom messages are for; before `begin`."""
        self._dialog = dialog

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._frames is not None and self._frames.state is ConnectionState.OPEN

    # --- the socket ------------------------------------------------------------------------

    def begin(self, transport: asyncio.Transport) -> None:
        """Answer 101."""
        self._transport = transport
        extensions: list[Extension] = [PerMessageDeflate()]
        transport.write(self._handshake.send(AcceptConnection(extensions=extensions)))
        assert self._handshake.connection is not None, "it was accepted"
        self._frames = self._handshake.connection
        self._is_compressed = any(each.enabled() for each in extensions)
        self._moved_at = self._clock.monotonic_seconds()
        self._set_timer("idle", self._limits.idle_seconds)
        self._set_timer("ping", self._limits.ping_seconds)
        if self._close_at_begin is not None:
            self.close(*self._close_at_begin)
        elif self._dialog is not None:
            self._dialog.on_open()

    def data_received(self, data: bytes) -> None:
        """Handle the frames that are complete with these bytes."""
        assert self._frames is not None
        self._moved_at = self._clock.monotonic_seconds()
        step = SLICE_BYTES if self._is_compressed else max(len(data), 1)
        for start in range(0, len(data), step):
            if self._frames.state in {ConnectionState.CLOSED, ConnectionState.REMOTE_CLOSING}:
                return
            self._frames.receive_data(data[start : start + step])
            for event in self._frames.events():
                self._handle(event)

    def connection_lost(self) -> None:
        """The socket is gone."""
        self._transport = None
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._end_dialog()

    def pause_writing(self) -> None:
        """The peer reads less than it is sent."""
        self._is_write_paused = True

    def resume_writing(self) -> None:
        """Resume sending: the client has read."""
        self._is_write_paused = False
        if "unread" in self._holds:
            self._release_input("unread")
        self._wake_writer()

    def pause_reading(self) -> None:
        """Leave the peer's messages in the socket."""
        self._hold_input("dialog")

    def resume_reading(self) -> None:
        """Take them again."""
        self._release_input("dialog")

    def _hold_input(self, reason: str) -> None:
        self._holds.add(reason)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _release_input(self, *reasons: str) -> None:
        self._holds.difference_update(reasons)
        if self._holds or self._transport is None or self._transport.is_closing():
            return
        self._transport.resume_reading()

    # --- messages --------------------------------------------------------------------------

    def send_text(self, text: str) -> None:
        """Send a message; dropped once the connection is closing."""
        if self.is_open:
            self._send(TextMessage(data=text))

    async def until_writable(self) -> None:
        """Return when the peer has taken most of what it was sent, or the connection has ended."""
        while self._is_write_paused and self.is_open and self._transport is not None:
            self._writable = asyncio.get_running_loop().create_future()
            await self._writable
            self._writable = None

    def close(self, code: int, reason: str) -> None:
        """Send a close frame, and end when the peer has answered it; before `begin`, then."""
        if self._frames is None:
            self._close_at_begin = (code, reason)
        if not self.is_open:
            return
        self._send(CloseConnection(code=code, reason=reason[:100]))
        self._end_dialog()
        self._release_input("dialog", "unread")  # its answer
        self._set_timer("closing", CLOSING_SECONDS)
        if self._transport is not None and self._transport.can_write_eof():
            with suppress(OSError):  # the peer has gone
                self._transport.write_eof()

    def _send(self, event: Event) -> None:
        if self._frames is None or self._transport is None or self._transport.is_closing():
            return
        try:
            data = self._frames.send(event)
        except LocalProtocolError:  # the state does not allow it any more
            return
        self._moved_at = self._clock.monotonic_seconds()
        self._transport.write(bytes(data))
        if self.is_open and self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._hold_input("unread")

    def _handle(self, event: Event) -> None:
        assert self._frames is not None
        if isinstance(event, CloseConnection):
            self._on_close(event)
        elif not self.is_open:
            return
        elif isinstance(event, Ping):
            self._send(event.response())
        elif isinstance(event, TextMessage):
            self._on_text(event)
        elif isinstance(event, BytesMessage) and self._count(len(event.data)):
            self._parts_bytes *= not event.message_finished  # nobody reads it

    def _on_close(self, event: CloseConnection) -> None:
        """The peer closes, or has broken the protocol."""
        assert self._frames is not None
        if self._frames.state is ConnectionState.OPEN:
            code = event.code if isinstance(event.code, int) else CloseReason.PROTOCOL_ERROR
            self.close(int(code), event.reason or "protocol error")
            return
        if self._frames.state is ConnectionState.REMOTE_CLOSING:
            self._send(event.response())
        self._end_dialog()
        if self._transport is not None:
            self._transport.close()

    def _on_text(self, event: TextMessage) -> None:
        if not self._count(len(event.data.encode())):
            return
        self._parts.append(event.data)
        if event.message_finished:
            text = "".join(self._parts)
            self._parts.clear()
            self._parts_bytes = 0
            if self._dialog is not None:
                self._dialog.on_text(text)

    def _count(self, more_bytes: int) -> bool:
        """Count a part of a message; False once it is too large, and the connection closes."""
        self._parts_bytes += more_bytes
        limit = self._limits.max_text_bytes
        if self._parts_bytes <= limit:
            return True
        self._parts.clear()
        reason = f"message too large: more than {limit} bytes (webSocketMaxTextFrameSize)"
        self.close(CloseReason.MESSAGE_TOO_BIG, reason)
        return False

    # --- time ------------------------------------------------------------------------------

    def _set_timer(self, name: str, seconds: float) -> None:
        if seconds > 0:
            action = {"idle": self._on_idle, "ping": self._on_ping, "closing": self._on_overdue}
            self._timers[name] = self._clock.call_later(seconds, action[name])

    def _on_idle(self) -> None:
        rest = self._moved_at + self._limits.idle_seconds - self._clock.monotonic_seconds()
        if rest > 0:
            self._set_timer("idle", rest)
        else:
            self.close(CloseReason.GOING_AWAY, "Connection Idle Timeout")

    def _on_ping(self) -> None:
        if self.is_open:
            self._send(Ping(payload=PING_PAYLOAD))
            self._set_timer("ping", self._limits.ping_seconds)

    def _on_overdue(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # --- end -------------------------------------------------------------------------------

    def _end_dialog(self) -> None:
        dialog, self._dialog = self._dialog, None
        self._wake_writer()
        if dialog is not None:
            dialog.on_closed()

    def _wake_writer(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
