"""`FaultyProxy`: a TCP proxy that delays, splits, stalls and cuts connections, from a seed.

    proxy = FaultyProxy("broker", 6650, random.Random(7), faults=Faults(cut_every_seconds=60))
    await proxy.start("proxy", 6650)

It uses only `create_server` and `create_connection` of the running loop, so it works in memory
(`testing.network`) and on real sockets alike. Bytes are forwarded whole and in order up to the
moment when a connection is cut. The faults of each connection and their times are drawn from the
given generator and nothing else, so in virtual time a seed replays exactly. `seen` counts the
faults by kind.

Kinds of faults, each after a time of its own, exponentially distributed around a mean:

    cut      both ends are reset at once
    torn     one more piece is forwarded in part, then both ends are reset
    stall    nothing is forwarded for a while in either direction, then everything that came
    drop     nothing is forwarded any more in one direction or both; neither end is notified
    outage   all connections are reset, and new ones too, for a while
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import cast

from pulsar_py.common.loops.tasks import TaskOwner

PIECES_BEFORE_PAUSE_COUNT = 256
"""Pieces that a direction keeps for its reader before it stops reading from its writer."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The rates of the network's faults; a mean of 0 is never."""

    delay_seconds: tuple[float, float] = (0.0, 0.0)
    """Least and most delay of a piece; pieces of one direction never overtake each other."""
    piece_bytes: int = 0
    """Pieces are cut to a random size of at most this; 0 forwards what came as it came."""
    cut_every_seconds: float = 0.0
    torn_every_seconds: float = 0.0
    stall_every_seconds: float = 0.0
    stall_seconds: tuple[float, float] = (0.5, 5.0)
    drop_every_seconds: float = 0.0
    outage_every_seconds: float = 0.0
    outage_seconds: tuple[float, float] = (0.1, 3.0)


class FaultyProxy:
    """Forwards connections to one address, with faults."""

    def __init__(
        self, target_host: str, target_port: int, chance: Random, *, faults: Faults | None = None
    ) -> None:
        """Nothing is opened before `start`.

        Args:
            target_host: The host to which connections are forwarded.
            target_port: Its port.
            chance: All random decisions are drawn from it; owned by the proxy.
            faults: The rates of faults; None for no faults but those that a test calls for.
        """
        self.faults = faults or Faults()
        self.chance = chance
        self.seen: Counter[str] = Counter()
        self.is_refusing = False  # new connections are reset at once
        self._target = target_host, target_port
        self._links: dict[_Link, None] = {}  # in order of their coming
        self._tasks = TaskOwner("faulty proxy")
        self._server: asyncio.AbstractServer | None = None
        self._outage: asyncio.TimerHandle | None = None
        self.port = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 takes a free one, which is `port` then."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._new_end, host, port)
        self._server = server
        self.port = server.sockets[0].getsockname()[1]
        self._plan_outage()

    async def close(self) -> None:
        """Stop listening and cut everything."""
        if self._server is not None:
            self._server.close()
        if self._outage is not None:
            self._outage.cancel()
        self.cut()
        await self._tasks.close()

    def cut(self) -> None:
        """Reset all connections now."""
        for link in list(self._links):
            link.cut()

    def stall(self) -> None:
        """Forward nothing of the connections that are open until `resume`."""
        for link in list(self._links):
            link.is_stalled = True

    def resume(self) -> None:
        """Forward what was held back."""
        for link in list(self._links):
            link.resume()

    def calm(self) -> None:
        """Cause no more faults; stalled connections go on, those that lose bytes are cut."""
        self.faults = Faults(delay_seconds=self.faults.delay_seconds)
        self.is_refusing = False
        if self._outage is not None:
            self._outage.cancel()
        for link in list(self._links):
            link.calm()

    @property
    def connections_count(self) -> int:
        """Connections open now."""
        return len(self._links)

    def after_about(self, mean_seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        """Run `act` after a random time."""
        delay = self.chance.expovariate(1 / mean_seconds)
        return asyncio.get_running_loop().call_later(delay, act)

    def forget(self, link: _Link) -> None:
        """Remove a connection that has ended."""
        self._links.pop(link, None)

    def _new_end(self) -> asyncio.Protocol:
        link = _Link(self)
        if not self.is_refusing:
            self._links[link] = None
            self._tasks.spawn(self._connect(link), "connect")
        else:
            self.seen["refused"] += 1
            link.is_refused = True
        return link.near

    async def _connect(self, link: _Link) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: link.far, *self._target)
        except OSError:
            link.cut()

    def _plan_outage(self) -> None:
        if self.faults.outage_every_seconds:
            self._outage = self.after_about(self.faults.outage_every_seconds, self._begin_outage)

    def _begin_outage(self) -> None:
        self.seen["outage"] += 1
        self.is_refusing = True
        self.cut()
        seconds = self.chance.uniform(*self.faults.outage_seconds)
        self._outage = asyncio.get_running_loop().call_later(seconds, self._end_outage)

    def _end_outage(self) -> None:
        self.is_refusing = False
        self._plan_outage()


class _Link:
    """One forwarded connection: two ends, two directions, and its own plan of faults."""

    def __init__(self, proxy: FaultyProxy) -> None:
        self.proxy = proxy
        self.is_stalled = False
        self.is_refused = False
        self.is_over = False
        self.near = _End(self)  # towards whoever connected
        self.far = _End(self)  # towards the target
        self.near.other, self.far.other = self.far, self.near
        self._timers = self._plan()

    def _plan(self) -> list[asyncio.TimerHandle]:
        faults = self.proxy.faults
        plan = (
            (faults.cut_every_seconds, self._cut_by_plan),
            (faults.torn_every_seconds, self._tear),
            (faults.stall_every_seconds, self._stall),
            (faults.drop_every_seconds, self._drop),
        )
        return [self.proxy.after_about(mean, act) for mean, act in plan if mean]

    def _cut_by_plan(self) -> None:
        self.proxy.seen["cut"] += 1
        self.cut()

    def _tear(self) -> None:
        self.proxy.seen["torn"] += 1
        self.proxy.chance.choice((self.near, self.far)).is_tearing = True

    def _stall(self) -> None:
        self.proxy.seen["stall"] += 1
        self.is_stalled = True
        seconds = self.proxy.chance.uniform(*self.proxy.faults.stall_seconds)
        self._timers.append(asyncio.get_running_loop().call_later(seconds, self._stall_over))

    def _stall_over(self) -> None:
        self.resume()
        if mean := self.proxy.faults.stall_every_seconds:
            self._timers.append(self.proxy.after_about(mean, self._stall))

    def _drop(self) -> None:
        self.proxy.seen["drop"] += 1
        for end in self.proxy.chance.choice(((self.near,), (self.far,), (self.near, self.far))):
            end.is_dropping = True

    def resume(self) -> None:
        """Forward what was held back."""
        self.is_stalled = False
        self.near.forward()
        self.far.forward()

    def calm(self) -> None:
        """Stop faults on this connection; if it has lost bytes, it can only be cut."""
        for timer in self._timers:
            timer.cancel()
        if self.near.is_dropping or self.far.is_dropping:
            self.cut()
            return
        self.near.is_tearing = self.far.is_tearing = False
        self.resume()

    def cut(self) -> None:
        """Reset both ends."""
        if self.is_over:
            return
        self.is_over = True
        for timer in self._timers:
            timer.cancel()
        self.proxy.forget(self)
        for end in (self.near, self.far):
            end.end()

    def on_end_lost(self, end: _End) -> None:
        """One end is gone: the other gets the bytes under way, then the end; not while dropping."""
        if self.is_over or not end.other.is_connected:
            self.cut()
        elif not end.is_dropping:
            end.finish()


class _End(asyncio.Protocol):
    """One socket; what it receives waits in `_pieces` until it is due at the other one."""

    def __init__(self, link: _Link) -> None:
        self._link = link
        self.other: _End = self
        self.is_dropping = False
        self.is_tearing = False
        self._transport: asyncio.Transport | None = None
        self._pieces: deque[tuple[float, bytes]] = deque()  # due at, bytes
        self._timer: asyncio.TimerHandle | None = None
        self._is_finishing = False

    @property
    def is_connected(self) -> bool:
        """Whether the socket is there."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the open socket."""
        self._transport = cast("asyncio.Transport", transport)
        if self._link.is_over or self._link.is_refused:
            self._transport.abort()
            return
        self.other.forward()

    def data_received(self, data: bytes) -> None:
        """Keep the bytes until they are due."""
        link = self._link
        if self.is_dropping or link.is_over:
            return
        if self.is_tearing:
            self._tear(data)
            return
        proxy, faults = link.proxy, link.proxy.faults
        now = asyncio.get_running_loop().time()
        for piece in _cut_up(data, faults.piece_bytes, proxy.chance):
            due = now + proxy.chance.uniform(*faults.delay_seconds)
            if self._pieces:
                due = max(due, self._pieces[-1][0])
            self._pieces.append((due, piece))
        if len(self._pieces) > PIECES_BEFORE_PAUSE_COUNT and self._transport is not None:
            self._transport.pause_reading()
        self.forward()

    def _tear(self, data: bytes) -> None:
        if self.other.is_connected:
            self.other.write(b"".join(piece for _, piece in self._pieces))
            self.other.write(data[: self._link.proxy.chance.randrange(len(data))])
            self.other.flush_and_end()
        self._link.cut()

    def forward(self) -> None:
        """Forward the pieces that are due, unless stalled; set a timer for the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._link.is_stalled or self._link.is_over or not self.other.is_connected:
            return
        loop = asyncio.get_running_loop()
        due_by = loop.time() + 1e-9
        while self._pieces and self._pieces[0][0] <= due_by:
            self.other.write(self._pieces.popleft()[1])
        if self._pieces:
            self._timer = loop.call_at(self._pieces[0][0], self.forward)
        elif self._is_finishing:
            self.other.flush_and_end()
            self._link.cut()
        elif self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def finish(self) -> None:
        """Close the peer's end after the kept bytes; no more will come."""
        self._is_finishing = True
        self.forward()

    def write(self, data: bytes) -> None:
        """Send to this end's peer."""
        assert self._transport is not None
        self._transport.write(data)

    def flush_and_end(self) -> None:
        """Close in order."""
        assert self._transport is not None
        self._transport.close()

    def end(self) -> None:
        """Reset, unless it is closing in order."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the socket is gone."""
        del exc
        self._link.on_end_lost(self)


def _cut_up(data: bytes, piece_bytes: int, chance: Random) -> list[bytes]:
    if not piece_bytes:
        return [data]
    pieces = []
    start = 0
    while start < len(data):
        end = start + chance.randint(1, piece_bytes)
        pieces.append(data[start:end])
        start = end
    return pieces
