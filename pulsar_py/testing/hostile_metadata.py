"""`HostileMetadata`: a simulated metadata service with all faults that the contract allows.

    service = HostileMetadata(random.Random(7), clock, HostileSettings(unknown_share=0.01))
    store = service.connect("broker-1", clock)

Clients share the keys (`hostile_service`); each has one session, a connection on which requests
and answers stay in order, and a view that may lag. Heartbeats keep the session alive. The server
counts a session's time from the last request it received, the client from the time when it sent
the last request that was answered: so whatever the delays, a client is in doubt before the server
can have given its keys to others. All chance is drawn from one generator, so in virtual time a seed
replays exactly.

    client.cut(3.0)    the connection is lost: pending requests fail, the session may survive
    client.expire()    the connection is lost for longer than the session lives
    client.miss(3.0)   no changes are told for so long; then ANYTHING is, and nothing can be asked
    client.freeze()    answers, events and heartbeats are held until `thaw`, without a notice
    client.cut_off()   its process has died
    service.calm()     no faults by themselves any more
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, TypeVar

from pulsar_py.common.errors import (
    MetadataError,
    MetadataNotFoundError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    SessionInDoubtError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import (
    MetadataStore,
    Notification,
    Session,
    SessionEvent,
    Versioned,
    Watcher,
    check_creates,
)
from pulsar_py.metadata.watches import Watches
from pulsar_py.testing.hostile_requests import HostileRequest, Lane
from pulsar_py.testing.hostile_service import HostileService, HostileSettings
from pulsar_py.testing.hostile_session import HostileSession

T = TypeVar("T")


class HostileMetadata:
    """The service, which makes its clients."""

    def __init__(
        self, chance: Random, clock: Clock, settings: HostileSettings | None = None
    ) -> None:
        """`clock` gives keys their times; settings None is a service without faults."""
        self.service = HostileService(chance, clock, settings or HostileSettings())
        self.clients: list[HostileClient] = []

    def connect(self, name: str, clock: Clock) -> HostileClient:
        """Make a client with a session; `clock` is its process's. Needs a running loop."""
        client = HostileClient(self.service, name, clock)
        self.clients.append(client)
        return client

    def calm(self) -> None:
        """Stop random faults (delays and lag stay), and thaw all clients."""
        old = self.service.settings
        self.service.settings = HostileSettings(
            session_timeout_seconds=old.session_timeout_seconds,
            limits=old.limits,
            are_parents_keys=old.are_parents_keys,
            delay_seconds=old.delay_seconds,
            lag_seconds=old.lag_seconds,
        )
        for client in self.clients:
            client.thaw()


class HostileClient(MetadataStore):
    """One client of the service; a broker's metadata store."""

    def __init__(self, service: HostileService, name: str, clock: Clock) -> None:
        """Only `HostileMetadata.connect` calls this."""
        self.service = service
        self.name = name
        self.clock = clock
        self.limits = service.settings.limits
        self.is_frozen = False
        self._loop = asyncio.get_running_loop()
        self._watches = Watches()
        self._out, self._in = Lane(service), Lane(service)
        self._held_out: list[HostileRequest] = []  # not sent while frozen
        self._held_in: list[Callable[[], None]] = []  # came while frozen
        self._waiting: dict[HostileRequest, None] = {}  # unanswered, in order
        self._late: list[
            tuple[asyncio.TimerHandle, HostileRequest]
        ] = []  # changes that may yet be made
        self._connection = 0  # the number of the current connection
        self._is_connected = True
        self._is_in_doubt = False  # and its listeners were notified
        self._is_away = False  # since a cut, until the server answered again
        self._is_missing_changes = False
        self._is_busy = False  # it sends nothing for now
        self._is_closed = False
        self._is_cut_off = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._view = service.add_view(self._on_change)
        self._session = HostileSession(self, service.open_session())
        self._beat()
        self._plan_faults()

    # Reads

    async def get(self, path: str) -> Versioned | None:
        """The value at `path`, as this client's view has it."""
        paths.check(path)
        return await self._ask(path, lambda: self._view.tree.get(path), is_change=False)

    async def exists(self, path: str) -> bool:
        """Whether the key has a value, as this client's view has it."""
        return await self.get(path) is not None

    async def children(self, path: str) -> list[str]:
        """Sorted names of the direct children, as this client's view has them."""
        paths.check(path)
        names = await self._ask(path, lambda: self._view.tree.children(path), is_change=False)
        self.limits.check_children(path, names)
        return names

    async def sync(self, path: str) -> None:
        """Bring the view up to the keys' state at the time when the server gets this request."""
        paths.check(path)
        await self._ask(path, self._sync, is_change=False)

    def _sync(self) -> None:
        """Decide about late changes of unknown outcome: each is made now, or never."""
        for timer, request in self._late:
            if not timer.cancelled() and timer.when() > self._loop.time():
                timer.cancel()
                if self._happens(0.5):
                    self._make(request)
        self._late.clear()
        self._catch_up()

    def _catch_up(self) -> None:
        self._view.catch_up(self.service.changes_count)

    # Changes

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        """Store a value; returns its new version."""
        paths.check(path)
        self.limits.check_value(path, value)
        if session is not None:
            check_creates(path, expected_version)
        owner, kept = self._owner(session), bytes(value)
        return await self._ask(
            path, lambda: self.service.put(path, kept, expected_version, owner), is_change=True
        )

    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        """Create a key of `prefix` and a number that its parent never gave before; returns it."""
        paths.check_sequential(prefix)
        self.limits.check_value(prefix, value)
        owner, kept = self._owner(session), bytes(value)
        return await self._ask(
            prefix, lambda: self.service.create_sequential(prefix, kept, owner), is_change=True
        )

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        """Delete a key that has no children."""
        paths.check(path)
        await self._ask(path, lambda: self.service.delete(path, expected_version), is_change=True)

    async def delete_recursive(self, path: str) -> None:
        """Delete all keys below a key, then the key itself, one request each.

        Raises:
            MetadataOutcomeUnknownError: Some may be left.
        """
        paths.check(path)
        self._check_writable(path)
        doomed = await self._ask(path, lambda: self.service.below(path), is_change=False)
        is_partial = self._happens(self.service.settings.partial_delete_share)
        share = self.service.chance.randrange(len(doomed) + 1) if is_partial else len(doomed)
        try:
            async with asyncio.timeout(self.limits.operation_timeout_seconds):
                results = await asyncio.gather(
                    *(self.delete(each) for each in doomed[:share]), return_exceptions=True
                )
        except TimeoutError:
            raise MetadataOutcomeUnknownError(f"{path}: some of it may be left") from None
        failures = [
            each
            for each in results
            if isinstance(each, BaseException) and not isinstance(each, MetadataNotFoundError)
        ]
        if failures or is_partial:
            raise MetadataOutcomeUnknownError(f"{path}: some of it may be left: {failures}")

    def _owner(self, session: Session | None) -> str | None:
        if session is None:
            return None
        self._check_open()
        if session is not self._session:
            raise MetadataError(f"session {session.session_id} is closed")
        return session.session_id

    # Watches and the session

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` for changes at or below `prefix`, when the view has them."""
        return self._watches.add(prefix, watcher)

    async def open_session(self) -> Session:
        """The session of this client; each client has just one."""
        self._check_open()
        return self._session

    async def end_session(self, session: HostileSession) -> None:
        """End the session at the server and begin another; called by the session."""
        session.is_open = False
        ended = session.session_id
        self._session = HostileSession(self, self.service.open_session())
        self._is_in_doubt = False
        await self._ask(ended, lambda: self.service.end_session(ended), is_change=True)

    async def close(self) -> None:
        """End the session; pending requests fail with an unknown outcome. May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        self._session.is_open = False
        for timer in self._timers.values():
            timer.cancel()
        self._fail_waiting("the client was closed")
        self.service.remove_view(self._view)
        if self._is_connected and not self.is_frozen:  # otherwise the session expires by itself
            self.service.end_session(self._session.session_id)

    # Requests and answers

    async def _ask(self, path: str, work: Callable[[], T], *, is_change: bool) -> T:
        self._check_open()
        if is_change:
            self._check_writable(path)
        is_out = not self._is_connected or self._is_busy
        if is_out or self._happens(self.service.settings.unavailable_share):
            raise MetadataUnavailableError(f"{path}: {self.name} has no connection")
        future: asyncio.Future[T] = self._loop.create_future()
        request = self._request(work, future, is_change=is_change)
        self._waiting[request] = None
        request.timer = self._loop.call_later(
            self.limits.operation_timeout_seconds, self._fail, request, "no answer in time"
        )
        if self.is_frozen:
            self._held_out.append(request)
        else:
            self._send(request)
        return await future

    def _request(
        self, work: Callable[[], Any], future: asyncio.Future[Any], *, is_change: bool
    ) -> HostileRequest:
        return HostileRequest(
            work,
            future,
            is_change,
            self._session.session_id,
            self._connection,
            self.clock.monotonic_seconds(),
        )

    def _send(self, request: HostileRequest) -> None:
        self._out.send(lambda: self._serve(request))

    def _serve(self, request: HostileRequest) -> None:
        """Let the server handle a request; on a connection that was cut it may be lost instead."""
        is_cut = request.connection != self._connection
        if is_cut and self._happens(0.5):
            return
        if not self.service.touch(request.session_id):
            self._answer(request, lambda: self._learn_expiry(request))
            return
        if request.is_change and self._happens(self.service.settings.unknown_share):
            self._serve_without_answer(request)
            return
        is_silent = request in self._waiting and self._happens(self.service.settings.silent_share)
        if is_silent and self._happens(0.5):
            return
        settle = self._work_of(request, is_cut=is_cut)
        if not is_silent:
            self._answer(request, settle)

    def _work_of(self, request: HostileRequest, *, is_cut: bool) -> Callable[[], None]:
        """Do what is asked; returns what the answer does."""
        try:
            result = request.work()
        except MetadataError as failure:
            return partial(self._settle, request, error=failure)
        if request.is_change and not is_cut:
            self._catch_up()  # a client's reads see its own changes
        return partial(self._settle, request, result=result)

    def _serve_without_answer(self, request: HostileRequest) -> None:
        self.service.unknown_count += 1
        fate = self.service.chance.choice(("made", "not made", "late"))
        if fate == "made":
            self._make(request)
        elif fate == "late":
            late_seconds = self.service.chance.uniform(*self.service.settings.late_seconds)
            timer = self._loop.call_later(late_seconds, self._make, request)
            self._late.append((timer, request))
        self._answer(request, lambda: self._fail(request, "the answer was lost"))

    def _make(self, request: HostileRequest) -> None:
        if self.service.touch(request.session_id):
            try:
                request.work()
            except MetadataError:
                return  # refused, and the client gets no answer

    def _answer(self, request: HostileRequest, deliver: Callable[[], None]) -> None:
        def arrive() -> None:
            if request.connection == self._connection:
                deliver()

        self._tell(arrive)

    def _tell(self, deliver: Callable[[], None]) -> None:
        def arrive() -> None:
            if self.is_frozen:
                self._held_in.append(deliver)
            elif not self._is_closed:
                deliver()

        self._in.send(arrive)

    def _settle(
        self,
        request: HostileRequest,
        *,
        result: object = None,
        error: Exception | None = None,
    ) -> None:
        self._hear(request)
        self._forget(request)
        if request.future.done():
            return
        if error is None:
            request.future.set_result(result)
        else:
            request.future.set_exception(error)

    def _fail(self, request: HostileRequest, why: str) -> None:
        """End a request with an error: unavailable, or for changes an unknown outcome."""
        was_sent = request not in self._held_out
        if not was_sent:
            self._held_out.remove(request)
        self._forget(request)
        if not request.future.done():
            is_unknown = request.is_change and was_sent
            kind = MetadataOutcomeUnknownError if is_unknown else MetadataUnavailableError
            request.future.set_exception(kind(f"{self.name}: {why}"))

    def _fail_waiting(self, why: str) -> None:
        for request in tuple(self._waiting):
            self._fail(request, why)

    def _forget(self, request: HostileRequest) -> None:
        self._waiting.pop(request, None)
        if request.timer is not None:
            request.timer.cancel()

    def _check_open(self) -> None:
        if self._is_closed:
            raise MetadataError("the metadata store is closed")

    def _check_writable(self, path: str) -> None:
        self._check_open()
        if not self._session.is_good:
            raise SessionInDoubtError(f"{path}: the session of {self.name} may have ended")

    # The session's life

    def _hear(self, request: HostileRequest) -> None:
        """Take an answer as a proof that the session lived when its request was sent."""
        session = self._session
        if request.session_id != session.session_id:
            return
        session.last_news_seconds = max(session.last_news_seconds, request.sent_seconds)
        if (self._is_away or self._is_in_doubt) and session.is_good:
            self._reconnected()

    def _reconnected(self) -> None:
        """Notify listeners that the same session is back, once for each loss or doubt."""
        if self._is_away or self._is_in_doubt:
            self._is_away = self._is_in_doubt = False
            self._session.tell(SessionEvent.RECONNECTED)
            self._watches.tell_anything()

    def _learn_expiry(self, request: HostileRequest) -> None:
        self._forget(request)
        if request.session_id == self._session.session_id:
            session = self._session
            session.session_id = self.service.open_session()
            session.last_news_seconds = self.clock.monotonic_seconds()
            self._is_away = self._is_in_doubt = False
            session.tell(SessionEvent.NEW_SESSION)
            self._watches.tell_anything()
        if not request.future.done():
            request.future.set_exception(
                SessionInDoubtError(f"{self.name}: session {request.session_id} has expired")
            )

    def _beat(self) -> None:
        """Send heartbeats, and notify listeners when answers stay out for too long."""
        if self._is_closed:
            return
        every_seconds = self.service.settings.session_timeout_seconds / 6
        self._timers["beat"] = self._loop.call_later(every_seconds, self._beat)
        if self.is_frozen:
            return
        if not self._session.is_good and not self._is_in_doubt:
            self._is_in_doubt = True
            self._session.tell(SessionEvent.IN_DOUBT)
        if self._is_connected:
            self._send_heartbeat()

    def _send_heartbeat(self) -> None:
        future = self._loop.create_future()
        future.add_done_callback(lambda done: done.exception())  # else asyncio would log its error
        self._send(self._request(lambda: None, future, is_change=False))

    # Watches

    def _on_change(self, change: Notification) -> None:
        if self._is_missing_changes:
            return
        if self._happens(self.service.settings.lost_watch_share):
            self._tell_anything_later()
            return
        connection = self._connection

        def tell() -> None:
            if connection == self._connection and self._is_connected:
                self._watches.notify([change])

        self._tell(tell)

    def _tell_anything_later(self) -> None:
        late_seconds = self.service.chance.uniform(*self.service.settings.lost_watch_seconds)
        self._loop.call_later(late_seconds, self._tell, self._watches.tell_anything)

    # Faults

    def _happens(self, share: float) -> bool:
        return share > 0 and self.service.chance.random() < share

    def cut(self, seconds: float) -> None:
        """Lose the connection for so long; an outage that is under way becomes longer."""
        if self._is_closed:
            return
        was_connected, self._is_connected = self._is_connected, False
        self._is_away = True
        self._connection += 1
        if (timer := self._timers.pop("reconnect", None)) is not None:
            timer.cancel()
        self._timers["reconnect"] = self._loop.call_later(seconds, self._reconnect)
        self._fail_waiting("the connection was lost")
        if was_connected:
            self._hold_or(lambda: self._session.tell(SessionEvent.CONNECTION_LOST))

    def expire(self) -> None:
        """Cut the connection for longer than the session lives."""
        self.cut(self.service.settings.session_timeout_seconds * 1.1)

    def miss(self, seconds: float, busy_seconds: float = 0.1) -> None:
        """Let changes not be told for so long, then `ANYTHING`.

        Nothing can be asked for the `busy_seconds` that follow.
        """
        self._is_missing_changes = True
        self._loop.call_later(seconds, self._tell, partial(self._end_missing, busy_seconds))

    def _end_missing(self, busy_seconds: float) -> None:
        self._is_missing_changes, self._is_busy = False, True
        self._loop.call_later(busy_seconds, self._end_busy)
        self._watches.tell_anything()

    def _end_busy(self) -> None:
        self._is_busy = False

    def freeze(self) -> None:
        """Hold everything that arrives or would be sent, without a notice to anyone."""
        self.is_frozen = True

    def thaw(self) -> None:
        """Deliver what arrived meanwhile, in order, then send what was held.

        It does nothing if the client is not frozen, or was cut off.
        """
        if not self.is_frozen or self._is_cut_off:
            return
        self.is_frozen = False
        held_in, self._held_in = self._held_in, []
        for deliver in held_in:
            deliver()
        if self._is_closed:
            return
        held_out, self._held_out = self._held_out, []
        for request in held_out:
            if request.is_change and not self._session.is_good:
                self._forget(request)
                if not request.future.done():
                    request.future.set_exception(
                        SessionInDoubtError(f"the session of {self.name} may have ended")
                    )
            else:
                self._send(request)
        self._timers["beat"].cancel()
        self._beat()

    def cut_off(self) -> None:
        """Let its process have died: nothing more is sent or heard, and the session expires."""
        self.freeze()
        self._is_cut_off = True
        for timer in self._timers.values():
            timer.cancel()
        self.service.remove_view(self._view)

    def _hold_or(self, deliver: Callable[[], None]) -> None:
        """Deliver an event now, or if frozen after everything that was held before it."""
        if self.is_frozen:
            self._held_in.append(deliver)
        else:
            deliver()

    def _reconnect(self) -> None:
        self._is_connected = True
        if not self.is_frozen:  # otherwise `thaw` does this
            self._send_heartbeat()

    def _plan_faults(self) -> None:
        settings = self.service.settings
        for name, every_seconds, act in (
            ("outage", settings.outage_every_seconds, self._outage),
            ("expire", settings.expire_every_seconds, self.expire),
            ("freeze", settings.freeze_every_seconds, self._freeze_for_a_while),
        ):
            if every_seconds > 0:
                self._plan(name, every_seconds, act)

    def _plan(self, name: str, every_seconds: float, act: Callable[[], None]) -> None:
        def happen() -> None:
            if getattr(self.service.settings, f"{name}_every_seconds") > 0:
                act()
                self._plan(name, every_seconds, act)

        wait_seconds = self.service.chance.expovariate(1 / every_seconds)
        self._timers[name] = self._loop.call_later(wait_seconds, happen)

    def _outage(self) -> None:
        self.cut(self.service.chance.uniform(*self.service.settings.outage_seconds))

    def _freeze_for_a_while(self) -> None:
        self.freeze()
        seconds = self.service.chance.uniform(*self.service.settings.freeze_seconds)
        self._timers["thaw"] = self._loop.call_later(seconds, self.thaw)
