"""`ServerCnx`: one client's connection to the broker (edge).

    socket -> ReceiveMemory -> FrameDecoder -> SEND: directly to its producer
                                            -> else: ConnectionState -> command table -> handler
    handlers, producers, dispatchers -> send/write -> one writelines a loop tick -> socket

It works on asyncio's and uvloop's transports. A handler is a plain function; work that has to wait
runs as a task of `Connections`. Long work is returned as a generator: it makes one step in each
turn of the loop, and later commands wait. Handlers read the fields of commands, except of SEND:
`data_received` reads those itself, so that each SEND costs only the call of its producer.

Back-pressure. Reading stops for any of four reasons, and starts again when none is left: too many
publishes without an answer, too much output that the client does not read, too many requests under
way, a long command that is served in parts (`work`). It stops for good when the broker closes.
Where the connection has consumers, too many publishes stop no more than publishes
(`waiting_publishes`), until too many of those have been read.
Queued output stays below the high mark as long as dispatchers check `is_writable`. While reading is
paused, a silent client does not count as dead: its answer may be in the socket.

Expired credentials. From the challenge for others to the answer no message goes out, and commands
wait (`unproved_frames`).

Memory. An idle connection has this object, its decoder, state and keep-alive: no task, no timer, no
buffer; dictionaries are made with the first producer or consumer.

Source: ServerCnx, PulsarHandler in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol, cast

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.errors import RemoteProtocolError, ServiceError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.connection.errors import is_expected, to_service_error
from pulsar_py.server.connection.unproved_frames import UnprovedFrames
from pulsar_py.server.connection.waiting_publishes import WaitingBudget, WaitingPublishes
from pulsar_py.server.handlers.closed_producers import ClosedProducers
from pulsar_py.server.handlers.command_connection import BrokerServices
from pulsar_py.server.handlers.command_table import HANDLERS
from pulsar_py.server.handlers.handle_connect import send_challenge
from pulsar_py.server.handlers.handle_consume import handle_plain_ack
from pulsar_py.server.handlers.handle_send import handle_send
from pulsar_py.server.handlers.large_commands import serve_large
from pulsar_py.server.handlers.pending import PendingConsumer, PendingProducer
from pulsar_py.server.handlers.plain_sends import SEND_START, serve_alike, serve_sends
from pulsar_py.server.limits.in_flight import InFlightPublishes, PublishBuffer
from pulsar_py.server.security.peer import Peer, peer_of
from pulsar_py.wire import commands
from pulsar_py.wire.connection_state import ConnectionState, Handshake, KeepAlive, Side, State
from pulsar_py.wire.framing import AlikeFrames, Frame, FrameDecoder, single_frames
from pulsar_py.wire.plain_acks import ACK_START, LEAST_PLAIN_ACK_BYTES, read_plain_ack
from pulsar_py.wire.receive_memory import READ_BYTES, ReceiveMemory
from pulsar_py.wire.versions import Feature, allows

if TYPE_CHECKING:
    from pulsar_py.server.handlers.topic_list_watcher import TopicListWatcher
    from pulsar_py.server.publishing.producer import Producer
    from pulsar_py.server.security.authentication import Authenticated, AuthenticationState
    from pulsar_py.server.security.authorization import Caller
    from pulsar_py.server.subscriptions.consumer import Consumer
    from pulsar_py.server.topics.topic import Topic

logger = logging.getLogger(__name__)


PAUSED_BY_PUBLISHES: Final = 1
PAUSED_BY_OUTPUT: Final = 2
PAUSED_BY_REQUESTS: Final = 4
PAUSED_BY_SHUTDOWN: Final = 8
PAUSED_BY_WORK: Final = 16
PAUSED_FOR_A_TURN: Final = 32

FULL_READS_IN_A_TURN: Final = 2
"""After so many full reads the loop's turn goes on, where it would read up to 32 times: the journal
writes what came while more is read. All that a connection may have under way would be one group
otherwise, and the loop and the disk would wait for each other."""

MAX_REQUESTS_UNDER_WAY: Final = 1000

_UNKNOWN_HANDSHAKE: Final = Handshake()


def _next_turn() -> Iterator[None]:
    """Work without steps of its own: it makes later commands wait for the next turn."""
    yield


class ServerCnxOwner(BrokerServices, Protocol):
    """The part of `Connections` that a connection uses, beside that of its handlers."""

    clock: Clock
    tasks: TaskOwner  # runs what handlers spawn
    publish_buffer: PublishBuffer
    receive_memory: ReceiveMemory  # of all connections

    @property
    def waiting_budget(self) -> WaitingBudget:
        """The bound of publishes that wait, of all connections together."""

    def opened(self, cnx: ServerCnx) -> None:
        """Add a connection whose socket is open."""

    def lost(self, cnx: ServerCnx) -> None:
        """Forget a connection whose socket is closed."""


class ServerCnx(asyncio.BufferedProtocol):
    """Implements `CommandConnection`; made by `Connections` for each socket accepted."""

    __slots__ = (
        "__weakref__",
        "_decoder",
        "_full_reads_count",
        "_held",
        "_in_flight",
        "_is_closed",
        "_is_flush_due",
        "_is_output_paused",
        "_is_serving_waiting",
        "_loop",
        "_may_end_turns",
        "_out",
        "_pause_reasons",
        "_probe",
        "_queued_bytes",
        "_requests_count",
        "_transport",
        "_unproved",
        "_until_lost",
        "_waiting",
        "_work",
        "_writable_waiters",
        "auth_method_name",
        "auth_state",
        "closed_producers",
        "connections",
        "consumer_topics",
        "consumers",
        "credentials",
        "handshake",
        "keep_alive",
        "newest_auth_data",
        "on_right_lost",
        "original_principal",
        "peer",
        "pending_consumers",
        "pending_producers",
        "producers",
        "proxy_credentials",
        "refreshes_original",
        "remote_address",
        "role",
        "state",
        "vouched_for",
        "watchers",
    )

    def __init__(self, connections: ServerCnxOwner) -> None:
        settings = connections.settings
        self.connections = connections
        self.state = ConnectionState(Side.BROKER)
        self.keep_alive = KeepAlive(
            now=connections.clock.monotonic_seconds(),
            interval_seconds=settings.keep_alive_interval_seconds,
        )
        self.handshake = _UNKNOWN_HANDSHAKE
        self.peer = Peer()
        self.remote_address = ""
        self.original_principal: str | None = None  # the client of a proxy
        self.role: str | None = None
        self.vouched_for: Caller | None = None  # who this process says that its client is
        self.on_right_lost: Callable[[], None] | None = (
            None  # tells whoever is behind `vouched_for`
        )
        self.auth_method_name = ""
        self.refreshes_original = False
        self.auth_state: AuthenticationState | None = None
        self.newest_auth_data: bytes | None = None  # None while none is checked
        self.credentials: Authenticated | None = None
        self.proxy_credentials: Authenticated | None = None
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.consumer_topics: dict[int, Topic] = {}  # of `consumers`
        self.closed_producers = ClosedProducers()
        self.pending_producers: dict[int, PendingProducer] = {}  # being created, or waiting
        self.pending_consumers: dict[int, PendingConsumer] = {}  # being created
        self.watchers: dict[int, TopicListWatcher] = {}
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None  # None before the socket is there
        self._decoder = FrameDecoder(
            settings.max_stranger_frame_bytes
            if connections.authenticators.is_enabled
            else settings.max_frame_bytes
        )
        self._in_flight: InFlightPublishes | None = None  # None before the first producer
        self._out: list[Buffer] = []  # queued in this tick
        self._queued_bytes = 0  # ... and how much that is
        self._is_flush_due = False
        self._full_reads_count = 0  # since it was last paused for a turn
        self._may_end_turns = False  # known once the socket is there
        self._is_output_paused = False  # the transport holds more than the high mark
        self._writable_waiters: list[Callable[[], None]] = []
        self._pause_reasons = 0
        self._requests_count = 0  # tasks of this connection under way
        self._until_lost: dict[asyncio.Task[object], None] = {}  # ends with the connection
        self._probe: asyncio.Future[bool] | None = None  # pending result of `check_liveness`
        self._is_closed = False
        self._work: Iterator[None] | None = None  # the rest of a long command under way
        self._held: list[Frame] = []  # frames received behind it
        self._unproved: UnprovedFrames | None = None  # set while credentials are awaited
        self._waiting: WaitingPublishes | None = None  # set while publishes alone are held back
        self._is_serving_waiting = False  # while some of those go on

    def __repr__(self) -> str:
        return f"ServerCnx({self.remote_address})"

    # --- the socket ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with an open socket."""
        self._transport = cast("asyncio.Transport", transport)
        settings = self.connections.settings
        self._transport.set_write_buffer_limits(
            settings.output_high_water_bytes, settings.output_low_water_bytes
        )
        # Not over TLS: where that is paused, uvloop drops what it has read if the client's end of
        # stream comes meanwhile.
        self._may_end_turns = transport.get_extra_info("ssl_object") is None
        self.peer = peer_of(transport, self.peer)
        self.remote_address = self.peer.remote_address
        self.connections.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """The memory into which the transport reads next."""
        del sizehint
        return self.connections.receive_memory.buffer(self._decoder.unfinished_frame_bytes)

    def buffer_updated(self, nbytes: int) -> None:
        """Serve every command that is complete with what was read."""
        # Hot path: publish-1k, once a read.
        memory = self.connections.receive_memory
        if nbytes >= READ_BYTES and self._may_end_turns and memory.is_filled_by(nbytes):
            self._full_reads_count += 1
            if self._full_reads_count == FULL_READS_IN_A_TURN:
                self._full_reads_count = 0
                self._pause_reading(PAUSED_FOR_A_TURN)
                self._loop.call_soon(self._resume_reading, PAUSED_FOR_A_TURN)
        self.data_received(memory.received(nbytes))

    def data_received(self, data: bytes | memoryview) -> None:  # noqa: C901 - one call a read
        """Serve every command that is complete with these bytes; a view's are used again."""
        # Hot path: publish-1k, once a read.
        if not self._is_serving_waiting:  # what waited does not tell whether the client is alive
            self.keep_alive.is_waiting = False
            if self._probe is not None:
                self._end_probe(is_alive=True)
        if self._is_closed:
            return
        try:
            decoder = self._decoder
            if isinstance(data, bytes):
                parts: list[list[Frame] | AlikeFrames] = [decoder.decode(data)]
            else:
                parts = decoder.decode_lent(data)
        except RemoteProtocolError as error:
            self.refuse(str(error))
            return
        if (
            self._work is not None
            or self._held
            or self._unproved is not None
            or self._waiting is not None
        ):
            parts = [self._due_now(single_frames(parts))]
        command = BaseCommand()  # one for all of `data`: upb frees what it parsed only with it
        for number, part in enumerate(parts, 1):
            if type(part) is AlikeFrames:
                if serve_alike(self.producers, part, command):
                    continue
                part = part.frames()  # noqa: PLW2901 - what else they may be
            self._serve_frames(cast("list[Frame]", part), command)
            if self._is_closed:
                return
            if self._work is not None:
                self._held += single_frames(parts[number:])
                return

    def _serve_frames(self, frames: list[Frame], command: BaseCommand) -> None:
        """Serve commands; those behind a long one wait. `command` is what SENDs are read with."""
        # Hot path: publish-1k, once a read.
        others_bytes = 0  # of commands that are no plain SENDs
        place, end = 0, len(frames)
        while place < end:
            body, rest = frames[place]
            if body.startswith(SEND_START) and rest is not None and len(body) <= MAX_UNITS:
                place = serve_sends(self, frames, place, command)
                continue
            place += 1
            self._on_command(body, rest)
            if self._is_closed:
                return
            others_bytes += len(body)
            # Many small commands in one read take as long as a large one: serve the rest in a
            # later turn, after other connections.
            if self._work is None and others_bytes > MAX_UNITS:
                self._begin(_next_turn())
            if self._work is not None:
                self._held = frames[place:]
                return

    def _due_now(self, frames: list[Frame]) -> list[Frame]:
        """The frames that are served now, where some wait already."""
        if self._work is not None or self._held:
            self._held += frames
            if self._work is not None:
                return []
            frames, self._held = self._held, []
        if self._unproved is not None:
            try:
                frames = self._unproved.keep(frames)
            except RemoteProtocolError as error:
                self.refuse(str(error))
                return []
        if self._waiting is not None and not self._is_serving_waiting:
            frames = self._waiting.keep(frames)
            if self._waiting.is_full:
                self._pause_reading(PAUSED_BY_PUBLISHES)
        return frames

    def eof_received(self) -> bool:
        """Return False, which closes the connection: the client will send nothing more."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave all topics: the socket is closed."""
        del exc
        self._abandon()
        self._transport = None
        self.connections.lost(self)

    def pause_writing(self) -> None:
        """Stop dispatching: the client reads less than it is sent."""
        self._is_output_paused = True

    def resume_writing(self) -> None:
        """Go on dispatching: the transport's output is below the low mark."""
        self._is_output_paused = False
        self._resume_reading(PAUSED_BY_OUTPUT)
        self._wake_writable_waiters()

    # --- commands --------------------------------------------------------------------------

    def _on_command(self, body: bytes, rest: bytes | None) -> None:
        if len(body) > MAX_UNITS:
            self._begin(serve_large(self, body, rest))
            return
        try:
            if (
                len(body) >= LEAST_PLAIN_ACK_BYTES
                and body.startswith(ACK_START)
                and self._serve_plain_ack(body)
            ):
                return
            command = commands.read_command(body)
            self.state.check(command.type)
            self.serve(command, rest)
        except RemoteProtocolError as error:
            self.refuse(str(error))

    def _serve_plain_ack(self, body: bytes) -> bool:
        """Serve an ACK without parsing it; False if it has to be parsed.

        Raises:
            RemoteProtocolError: It is not legal now.
        """
        # Hot path: benchmarks/micro_acks.
        ack = read_plain_ack(body)
        if ack is None:
            return False
        self.state.check(BaseCommand.ACK)
        return handle_plain_ack(self, ack)

    def serve(self, command: BaseCommand, rest: bytes | None) -> None:
        """Call the handler of a command whose type the connection's state allows.

        Raises:
            RemoteProtocolError: It breaks the protocol.
        """
        if command.type == BaseCommand.SEND:
            handle_send(self, command.send, rest)
            return
        handler = HANDLERS.get(command.type)
        if handler is None:
            raise RemoteProtocolError(f"{BaseCommand.Type.Name(command.type)} is not served")
        message = getattr(command, commands.FIELD_NAMES[command.type])
        try:
            work = handler(self, message)
        except RemoteProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - the outermost edge of a command
            self._on_handler_failed(error, message)
        else:
            if work is not None:
                self._begin(work)

    def _begin(self, work: Iterator[None]) -> None:
        """Serve the rest of a command, one step in each turn; later frames wait."""
        if self._work is not None:  # begun by the handler of a command that is served in parts
            self._work = chain(work, self._work)
            return
        self._work = work
        self._pause_reading(PAUSED_BY_WORK)
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        work = self._work
        if work is None:
            return
        is_done = self._is_closed
        if not is_done:
            try:
                next(work)
            except StopIteration:
                is_done = self._work is work  # else the last step has begun more work
            except RemoteProtocolError as error:
                self.refuse(str(error))
            except Exception as error:  # noqa: BLE001 - the outermost edge of a command
                self._on_handler_failed(error, None)
        if not is_done and not self._is_closed:
            self._loop.call_soon(self._go_on)
            return
        self._work = None
        if self._is_closed:
            self._held.clear()
            return
        if self._held:
            self.data_received(b"")
        if self._work is None:
            self._on_work_done()

    def _on_work_done(self) -> None:
        self._resume_reading(PAUSED_BY_WORK)
        if self._waiting is not None:
            self._loop.call_soon(self._serve_waiting)

    def _on_handler_failed(self, error: Exception, message: object) -> None:
        request_id = getattr(message, "request_id", None)
        if request_id is None:
            logger.error("handler failed", extra=self._fields(), exc_info=error)
            self.close()
            return
        self.send_error(request_id, error)

    def spawn(self, work: Coroutine[object, object, None], name: str) -> None:
        """Run the rest of a command as a task; the connection reads on meanwhile."""
        self._requests_count += 1
        if self._requests_count >= MAX_REQUESTS_UNDER_WAY:
            self._pause_reading(PAUSED_BY_REQUESTS)
        task = self.connections.tasks.spawn(work, name)
        task.add_done_callback(self._on_request_done)

    def spawn_until_lost(
        self, work: Coroutine[object, object, None], name: str
    ) -> asyncio.Task[object]:
        """Run what may take long as a task, which ends with the connection.

        It does not count among the requests that pause reading: the caller bounds such tasks.
        """
        task: asyncio.Task[object] = self.connections.tasks.spawn(work, name)
        self._until_lost[task] = None
        task.add_done_callback(self._until_lost.pop)
        return task

    def _on_request_done(self, task: asyncio.Task[object]) -> None:
        del task
        self._requests_count -= 1
        if self._requests_count <= MAX_REQUESTS_UNDER_WAY // 2:
            self._resume_reading(PAUSED_BY_REQUESTS)

    def send_error(self, request_id: int, error: BaseException) -> None:
        """Answer a request with ERROR; an unexpected error is logged with its traceback."""
        answer = self.explain(error)
        self.send(commands.error(request_id, answer.code, str(answer)))

    def explain(self, error: BaseException) -> ServiceError:
        """The error with a wire code to answer with; writes one log line."""
        if is_expected(error):
            logger.debug("request refused", extra=self._fields(reason=str(error)))
        else:
            logger.error("request failed", extra=self._fields(), exc_info=error)
        return to_service_error(error)

    def refuse(self, reason: str) -> None:
        """Close the connection because of what the client sent; writes one log line."""
        if not self._is_closed:
            logger.warning("connection refused", extra=self._fields(reason=reason))
            self.close()

    def _fields(self, **more: object) -> dict[str, object]:
        return {"remote_address": self.remote_address, **more}

    # --- used by topics and dispatchers (ClientConnection) -----------------------------------

    @property
    def client_version(self) -> str:
        """What the client called itself in CONNECT."""
        return self.handshake.client_version

    @property
    def protocol_version(self) -> int:
        """The protocol version that both sides use."""
        return self.handshake.protocol_version

    @property
    def supports_broker_entry_metadata(self) -> bool:
        """Whether MESSAGE may have broker entry metadata: client and broker settings allow it."""
        exposed = self.connections.settings.is_broker_entry_metadata_exposed
        return exposed and self.handshake.supports_broker_entry_metadata

    @property
    def is_connected(self) -> bool:
        """False once the connection is closed or closing."""
        return not self._is_closed

    @property
    def is_writable(self) -> bool:
        """False while more is queued than the high mark, and once the connection is closed.

        Also while a broker that stood still has not looked at what it owns, and while expired
        credentials have not been replaced.
        """
        return (
            not self._is_output_paused
            and not self._is_closed
            and self._unproved is None
            and not self.connections.namespaces.holds_messages()
            and self._queued_bytes < self.connections.settings.output_high_water_bytes
        )

    @property
    def unsent_bytes(self) -> int:
        """Bytes that were not handed to the socket yet."""
        transport = self._transport
        if self._is_closed or transport is None:
            return 0
        return self._queued_bytes + transport.get_write_buffer_size()

    @property
    def in_flight(self) -> InFlightPublishes:
        """The count of publishes without an answer."""
        if self._in_flight is None:
            self._in_flight = InFlightPublishes(
                self.connections.publish_buffer,
                max_entries=self.connections.settings.max_pending_publishes_per_connection,
                max_non_persistent=self.connections.settings.max_pending_non_persistent_publishes,
                on_pause=self._on_publishes_held,
                on_resume=self._on_publishes_let_go,
            )
            self._in_flight.update()
        return self._in_flight

    def _on_publishes_held(self) -> None:
        """Read no publishes any more; nothing else either, unless there are consumers."""
        if self._waiting is None and (self.consumers or self.pending_consumers):
            self._waiting = WaitingPublishes(self.connections.waiting_budget, self.producers)
        if self._waiting is None or self._waiting.is_full:
            self._pause_reading(PAUSED_BY_PUBLISHES)

    def _on_publishes_let_go(self) -> None:
        """Serve the publishes that wait, then those in the socket."""
        if self._waiting is None:
            self._resume_reading(PAUSED_BY_PUBLISHES)
        else:
            self._loop.call_soon(self._serve_waiting)

    def _serve_waiting(self) -> None:
        """Serve some of the publishes that wait, unless they are at a limit again."""
        waiting = self._waiting
        if waiting is None or self._is_closed or self.in_flight.is_paused:
            return
        if self._work is not None or self._held or self._unproved is not None:
            return  # these call it again
        self._held = waiting.take()
        self._is_serving_waiting = True
        try:
            self.data_received(b"")
        finally:
            self._is_serving_waiting = False
        if self._is_closed:
            return
        if waiting.has_room:
            self._resume_reading(PAUSED_BY_PUBLISHES)
        if self.in_flight.is_paused:
            return
        if waiting:
            self._loop.call_soon(self._serve_waiting)
        else:
            self._waiting = None
            self._resume_reading(PAUSED_BY_PUBLISHES)  # others may have filled the budget

    def send(self, frame: bytes) -> None:
        """Queue one encoded frame; dropped when the connection is closed."""
        # Hot path: publish-1k, a receipt each.
        if self._is_closed:
            return
        self._out.append(frame)
        self._queued_bytes += len(frame)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Queue frames cut into pieces, in order; dropped when the connection is closed."""
        # Hot path: tailing, a run of messages each.
        if self._is_closed:
            return
        self._out += buffers
        self._queued_bytes += sum(map(len, buffers))
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Hand everything queued in this tick to the socket."""
        self._is_flush_due = False
        transport = self._transport
        if transport is None or not self._out or transport.is_closing():
            return
        out = self._out
        self._out = []
        self._queued_bytes = 0
        transport.writelines(out)
        if self._is_output_paused:
            # Requests are not read then: their answers are always queued.
            most_bytes = 2 * self.connections.settings.output_high_water_bytes
            if transport.get_write_buffer_size() > most_bytes:
                self._pause_reading(PAUSED_BY_OUTPUT)
        elif self._writable_waiters:
            self._wake_writable_waiters()

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, from the loop, when the connection is writable or closed."""
        self._writable_waiters.append(callback)
        if self.is_writable or self._is_closed:
            self._loop.call_soon(self._wake_writable_waiters)

    def on_ownership_settled(self) -> None:
        """The broker knows what it owns."""
        if self._writable_waiters:
            self._loop.call_soon(self._wake_writable_waiters)

    def _wake_writable_waiters(self) -> None:
        if not self.is_writable and not self._is_closed:
            return
        waiters, self._writable_waiters = self._writable_waiters, []
        for callback in waiters:
            callback()

    async def check_liveness(self) -> bool:
        """Send PING; returns False once the connection is closed, for lack of an answer in time."""
        if self._is_closed:
            return False
        if not allows(self.protocol_version, Feature.PING):
            return True  # the client knows no PING: it counts as alive, and keeps its place
        if self._probe is None:
            self._probe = self._loop.create_future()
            self.send(commands.ping())
            clock = self.connections.clock
            timeout_seconds = self.connections.settings.liveness_check_timeout_seconds
            clock.call_later(timeout_seconds, self._on_probe_timeout)
        return await asyncio.shield(self._probe)

    def _end_probe(self, *, is_alive: bool) -> None:
        if self._probe is not None and not self._probe.done():
            self._probe.set_result(is_alive)
        self._probe = None

    def _on_probe_timeout(self) -> None:
        if self._probe is None:
            return
        if self._pause_reasons:
            # Its PONG may be among the bytes that back-pressure leaves unread.
            self._end_probe(is_alive=True)
            return
        logger.warning("client does not answer", extra=self._fields())
        self.close()

    def close(self) -> None:
        """Close the connection after queued output; its producers and consumers leave at once."""
        if self._is_closed:
            return
        self._flush()  # before `_abandon`, which drops queued output
        self._abandon()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close without waiting for queued output to be sent."""
        self.close()
        if self._transport is not None:
            self._transport.abort()

    def producer_closed_by_broker(self, producer_id: int) -> None:
        """Send CLOSE_PRODUCER and forget the id; below version 5, close the connection instead."""
        producer = self.producers.pop(producer_id, None)
        if producer is None:
            self.pending_producers.pop(producer_id, None)
        if not allows(self.protocol_version, Feature.CLOSE_WITHOUT_DISCONNECT):
            self.close()
            return
        self.closed_producers.add(producer_id)
        if self._waiting is not None:
            self._waiting.forget(producer_id)
        topic = None if producer is None else producer.topic.name
        self.connections.held_closes.close_producer(self, producer_id, topic)

    def consumer_closed_by_broker(self, consumer_id: int) -> None:
        """Send CLOSE_CONSUMER and forget the id; below version 5, close the connection instead."""
        topic = self.consumer_topics.get(consumer_id)
        self.forget_consumer(consumer_id)
        if not allows(self.protocol_version, Feature.CLOSE_WITHOUT_DISCONNECT):
            self.close()
            return
        name = None if topic is None else topic.name
        self.connections.held_closes.close_consumer(self, consumer_id, name)

    def uses_producer_id(self, producer_id: int) -> bool:
        """Whether a producer has the id, or is being created with it."""
        return producer_id in self.producers or producer_id in self.pending_producers

    def uses_consumer_id(self, consumer_id: int) -> bool:
        """Whether a consumer has the id, or is being created with it."""
        return consumer_id in self.consumers or consumer_id in self.pending_consumers

    def forget_consumer(self, consumer_id: int) -> Consumer | None:
        """Remove a consumer's id; returns the consumer that had it."""
        self.consumer_topics.pop(consumer_id, None)
        return self.consumers.pop(consumer_id, None)

    # --- life ------------------------------------------------------------------------------

    def _abandon(self) -> None:
        """Drop queued output and leave all topics: nothing reaches the client any more."""
        if self._is_closed:
            return
        self._is_closed = True
        self.state.on_closed()
        self._out.clear()
        self._queued_bytes = 0
        self._unproved = None
        if self._in_flight is not None:
            self._in_flight.close()
        if self._waiting is not None:
            self._waiting.clear()
        self._end_probe(is_alive=False)
        for task in self._until_lost:
            task.cancel()
        self._leave_topics()
        if self._writable_waiters:
            self._loop.call_soon(self._wake_writable_waiters)

    def _leave_topics(self) -> None:
        for pending in self.pending_producers.values():
            pending.abandon()
        for subscribing in self.pending_consumers.values():
            subscribing.abandon()
        producers, consumers = list(self.producers.values()), list(self.consumers.values())
        watchers = list(self.watchers.values())
        self.pending_producers.clear()
        self.pending_consumers.clear()
        self.producers.clear()
        self.consumers.clear()
        self.consumer_topics.clear()
        self.watchers.clear()
        for producer in producers:
            producer.on_connection_lost()
        for consumer in consumers:
            consumer.close()
        for watcher in watchers:
            watcher.close()

    def stop_reading(self) -> None:
        """Leave the client's bytes in its socket, for the time in which the broker closes."""
        self._pause_reading(PAUSED_BY_SHUTDOWN)

    def on_connected(self) -> None:
        """Take frames of any size: the client is authenticated."""
        self._decoder.set_max_frame_bytes(self.connections.settings.max_frame_bytes)

    def send_refresh_challenge(self) -> None:
        """Send AUTH_CHALLENGE in place of expired credentials, and serve nothing without others."""
        if self._unproved is None:
            self._unproved = UnprovedFrames(self.connections.settings.max_frame_bytes)
        send_challenge(self)

    def on_credentials_refreshed(self) -> None:
        """Serve what has waited for credentials, in its order."""
        waiting, self._unproved = self._unproved, None
        if waiting is None:
            return
        self._held[:0] = waiting.frames
        if self._held:
            self._begin(_next_turn())
        elif self._waiting is not None:
            self._loop.call_soon(self._serve_waiting)
        if self._writable_waiters:
            self._loop.call_soon(self._wake_writable_waiters)

    # --- reading ---------------------------------------------------------------------------

    @property
    def is_reading_paused(self) -> bool:
        """Whether back-pressure keeps the client's bytes in the socket."""
        return self._pause_reasons != 0

    @property
    def is_held_back(self) -> bool:
        """Whether its bytes stay in the socket, or its publishes wait."""
        return bool(self._pause_reasons & ~PAUSED_FOR_A_TURN) or self._waiting is not None

    def _pause_reading(self, reason: int) -> None:
        is_first = not self._pause_reasons
        self._pause_reasons |= reason
        if is_first and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _resume_reading(self, reason: int) -> None:
        if not self._pause_reasons & reason:
            return
        self._pause_reasons &= ~reason
        if self._pause_reasons or self._transport is None or self._transport.is_closing():
            return
        self.keep_alive.is_waiting = False
        self._transport.resume_reading()

    @property
    def is_handshake_done(self) -> bool:
        """Whether CONNECTED was sent."""
        return self.state.state is State.CONNECTED
