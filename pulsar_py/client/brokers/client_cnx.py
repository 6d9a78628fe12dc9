"""One connection to a broker: sends requests and passes what arrives to its receivers (edge).

Received bytes become frames, and frames become commands. SEND_RECEIPT and MESSAGE go to the
producer or consumer, responses to the caller of the request, other commands to the handler they
name. Outgoing frames are queued and written once a loop tick. The caller that connects runs the
`ClientHandshake`. What always holds: a request ends by its answer, its time-out or the end of the
connection; each handler is called once at that end; nothing is received or sent after it.

A broker that breaks the protocol loses the connection; requests fail with the reason, and producers
and consumers come back by themselves. `wire.connection_state` decides which commands may come, and
on keep-alive.

Source: ClientCnx and PulsarHandler in Pulsar's client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Final, cast

from pulsar_py.client.brokers.direct_socket import DirectSocket, direct_socket, turn_of
from pulsar_py.client.brokers.handler_table import HandlerTable, Touched
from pulsar_py.client.brokers.handlers import ConsumerHandler, ProducerHandler, TopicWatchHandler
from pulsar_py.client.brokers.handshake import ClientHandshake
from pulsar_py.client.brokers.pending_requests import PendingRequests
from pulsar_py.client.brokers.responses import ANSWERS
from pulsar_py.client.brokers.thread_reads import ThreadReads, thread_reads
from pulsar_py.common.buffer import Buffer
from pulsar_py.common.errors import (
    AuthenticationError,
    ConnectError,
    ConnectionClosedError,
    NotABrokerError,
    ProtocolError,
    RemoteProtocolError,
    service_error,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import to_signed
from pulsar_py.common.network.tls import refused_certificate
from pulsar_py.common.position import MAX_LONG
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandSendReceipt,
    FeatureFlags,
)
from pulsar_py.wire import commands
from pulsar_py.wire.alike_commands import AlikeCommands, Alone
from pulsar_py.wire.connection_state import ConnectionState, KeepAlive, KeepAliveDecision, Side
from pulsar_py.wire.frame_receiver import FrameReceiver, ReceivedFrame
from pulsar_py.wire.framing import (
    DEFAULT_MAX_MESSAGE_SIZE,
    FOREIGN,
    SIZES_SIZE,
    max_frame_bytes,
)
from pulsar_py.wire.receipt_runs import Receipt, count_following
from pulsar_py.wire.versions import Feature, allows

if TYPE_CHECKING:
    from pulsar_py.client.security.authentication import Authentication

__all__ = ["ClientCnx", "CnxSettings"]

logger = logging.getLogger(__name__)

WRITE_HIGH_WATER_BYTES: Final = 1024 * 1024
"""More than this in the socket's buffer, and the connection is not writable."""
CLOSE_FLUSH_SECONDS: Final = 2.0
"""How long a closed connection may take to send what was queued before."""
_PROGRESS_BYTES: Final = 1024
"""So many bytes in one read count as a sign of life for keep-alive, even within a frame. Fewer do
not: a broker that announced a longer frame than it sends would be taken for alive for ever, because
its PONGs are read as bytes of that frame."""

_ALONE_COUNT: Final = 2
"""The most commands in one read whose likes are awaited: those of a message that comes alone."""

_MESSAGE: Final = BaseCommand.MESSAGE
_SEND_RECEIPT: Final = BaseCommand.SEND_RECEIPT


@dataclass(frozen=True, slots=True, kw_only=True)
class CnxSettings:
    """The options of one connection."""

    remote_address: str
    """`host:port` of the broker, not of a proxy before it; for logs and errors."""
    proxy_to_broker: str | None = None
    """`host:port` of the broker that the proxy has to connect to; None without a proxy."""
    authentication: Authentication | None = None
    request_timeout_seconds: float = 30
    keep_alive_interval_seconds: float = 30


class ClientCnx(asyncio.BufferedProtocol):
    """One connection to a broker. Owned by the ConnectionPool, shared by its handlers.

    Invariant: handlers and requests are there only while the connection is not closed.
    """

    def __init__(
        self,
        settings: CnxSettings,
        *,
        clock: Clock,
        tasks: TaskOwner,
        new_request_id: Callable[[], int],
    ) -> None:
        """The connection is usable after `connection_made` and the handshake.

        Args:
            settings: Address, credentials and limits, chosen by the pool.
            clock: For keep-alive and time limits.
            tasks: Answers to challenges run there.
            new_request_id: Gives ids that no other request of the client has.
        """
        self._settings = settings
        self._clock = clock
        self._tasks = tasks
        self.remote_address: Final = settings.remote_address
        self.next_request_id: Final = new_request_id
        self._state = ConnectionState(Side.CLIENT)
        self.alike = AlikeCommands()
        self.frames = FrameReceiver(max_frame_bytes(DEFAULT_MAX_MESSAGE_SIZE))
        self._keep_alive = KeepAlive(
            now=clock.monotonic_seconds(), interval_seconds=settings.keep_alive_interval_seconds
        )
        self._keep_alive_timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None  # None without a socket
        # The transport's loop; its turn, in which the transport is used (in a loop that has none, a
        # lock that nobody else knows: a `nullcontext` is two calls of Python); and what threads
        # that have taken the turn write to, None where they may not.
        self._loop: asyncio.AbstractEventLoop | None = None
        self.turn: AbstractContextManager[object] = RLock()
        self._direct: DirectSocket | None = None
        # By which threads that wait for messages read it themselves; None where they may not.
        self.reads: ThreadReads | None = None
        # Whether the handshake is done and the connection not closed; a plain attribute, since hot
        # paths read it.
        self.is_connected = False
        self.protocol_version = 0
        self.max_message_size = DEFAULT_MAX_MESSAGE_SIZE
        self.feature_flags = FeatureFlags()
        # False while the socket's buffer is above its mark.
        self.is_writable = True
        # Queued since the last loop tick.
        self._out: list[Buffer] = []
        # What to call just before the next flush: producers that gather messages until then.
        self._before_flush: list[Callable[[], None]] = []
        self._is_flush_due = False
        # Whether nothing was written through since the last read or flush.
        self._may_write_through = True
        self._requests = PendingRequests(clock, settings.remote_address)
        self.handlers = HandlerTable()
        # Why it is closed; None while it is not.
        self._closed_reason: str | None = None
        self.handshake: Final = ClientHandshake(
            self._state,
            remote_address=settings.remote_address,
            authentication=settings.authentication,
            proxy_to_broker=settings.proxy_to_broker,
            send=self.send,
            close=self.close,
        )
        self._writable: asyncio.Future[None] | None = None  # while somebody waits in `drain`
        # Whether there is a socket, even if the connection is closed; and the future of
        # `wait_closed`, which is done when the socket has ended.
        self.has_socket = False
        self._lost: asyncio.Future[None] | None = None

    # --- receiving -----------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        """The memory into which the transport reads next."""
        del sizehint
        return self.frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Handle the complete frames, then call `on_batch_end` of each handler that got any."""
        # Hot path: latency in `make bench-client`.
        touched: Touched = {}
        with self.turn:
            self._may_write_through = True
            try:
                piece = self.frames.piece(nbytes)
                if piece is None:
                    self._take_read(self.frames.received(nbytes), nbytes, touched)
                elif (alone := self.alike.find_alone(piece)) is not None:
                    self._take_alone(piece, alone)
                elif self.alike.is_receipt_frame(piece):
                    self._keep_alive.is_waiting = False
                    self._take_receipt(piece, nbytes)
                else:
                    self._take_read(self.frames.decode(piece), nbytes, touched)
            except Exception as error:  # noqa: BLE001 - the outermost edge of what a connection does
                self.on_failed_read(error)
            for handler in touched:
                handler.on_batch_end()

    def on_thread_read(self) -> None:
        """A thread has read a message, or a receipt, and handles it."""
        # Hot path: latency in `make bench-client`, blocking.
        self._may_write_through = True
        self._keep_alive.is_waiting = False

    def on_failed_read(self, error: BaseException) -> None:
        """Close: asyncio would log a fault of ours and go on reading.

        But nobody knows any more where the next frame begins.
        """
        if isinstance(error, ProtocolError):
            if not self.protocol_version and FOREIGN in str(error):  # no broker's first words
                self.handshake.on_failed(NotABrokerError(f"{self.remote_address}: {error}"))
            self._close_abruptly(f"broke the protocol: {error}")
            return
        logger.error(
            "connection to %s failed",
            self.remote_address,
            exc_info=error,
            extra={"broker": self.remote_address},
        )
        self._close_abruptly(f"failed on our side: {error!r}")

    def _take_read(self, frames: Sequence[ReceivedFrame], nbytes: int, touched: Touched) -> None:
        """Handle the frames of a read of so many bytes."""
        # Hot path: consume and produce in `make bench-client`.
        if self.reads is not None:
            self.reads.lent.came_else()
        if frames or nbytes >= _PROGRESS_BYTES:
            self._keep_alive.is_waiting = False
        if len(frames) == _ALONE_COUNT and self._is_receipt_and_message(*frames):
            # The message first, which is waited for more often; it is handed over before the
            # receipt is looked at.
            self._take(frames[1:], touched)
            for handler in touched:
                handler.on_batch_end()
            touched.clear()
            frames = frames[:1] if self._closed_reason is None else ()
        self._take(frames, touched)

    def _take_alone(self, piece: bytes, alone: Alone) -> None:
        """Handle a message that came alone, and the receipt before it, if there is one.

        What a thread waits for comes last: woken before, it would sleep again until the loop, at
        its other work, leaves the interpreter's lock to it.
        """
        # Hot path: latency in `make bench-client`.
        message, key, payload, start = alone
        self._keep_alive.is_waiting = False
        consumer = self.handlers.consumers.get(message.consumer_id)
        is_awaited = consumer is not None and consumer.is_awaited
        if is_awaited and self.reads is not None:
            self.reads.lent.came_alone()
        if start and is_awaited:
            self._take_receipt(piece, start)
        if consumer is not None and self._closed_reason is None:
            consumer.on_message(message, payload, key)
            consumer.on_batch_end()
        if start and not is_awaited and self._closed_reason is None:
            self._take_receipt(piece, start)

    def _take_receipt(self, piece: bytes, end: int) -> None:
        """Handle the one receipt of a read, whose frame begins `piece` and ends at `end`."""
        # Hot path: latency in `make bench-client`.
        receipt = self.alike.receipt_at(piece, SIZES_SIZE)
        if receipt is None:
            touched: Touched = {}
            self._take(((piece[SIZES_SIZE:end], None),), touched)
            for handler in touched:
                handler.on_batch_end()
            return
        producer_id, sequence_id, ledger_id, entry_id, highest = receipt
        producer = self.handlers.producers.get(producer_id)
        if producer is not None:
            producer.on_lone_receipt(sequence_id, highest, ledger_id, entry_id)

    def _is_receipt_and_message(self, first: ReceivedFrame, second: ReceivedFrame) -> bool:
        return first[1] is None and second[1] is not None and self.alike.is_receipt(first[0])

    def _take(self, frames: Sequence[ReceivedFrame], touched: Touched) -> None:
        # Hot path: consume and produce in `make bench-client`.
        producers, consumers = self.handlers.producers, self.handlers.consumers
        find = self.alike.find
        done = 0  # frames before this index have been handled with one before them
        for index, (data, payload) in enumerate(frames):
            if index < done:
                continue
            command, key = find(data)
            if command is None:
                command = self._parse(data, touched, is_alone=len(frames) <= _ALONE_COUNT)
            if isinstance(command, Receipt):
                if (producer := producers.get(command.producer_id)) is not None:
                    touched[producer] = None
                    done = index + _take_receipts(producer, command, frames, index)
            elif command is not None:
                if payload is None:
                    raise RemoteProtocolError("MESSAGE without an entry")
                if (consumer := consumers.get(command.consumer_id)) is not None:
                    touched[consumer] = None
                    consumer.on_message(command, payload, key)
            if self._closed_reason is not None:
                return

    def _parse(
        self, data: bytes, touched: Touched, *, is_alone: bool
    ) -> CommandMessage | Receipt | None:
        """The MESSAGE or SEND_RECEIPT of a frame; any other command is handled, and None returned.

        What comes alone is remembered, as the next one is likely to be like it.
        """
        # Hot path: consume and produce in `make bench-client`.
        command = commands.read_command(data)
        kind = command.type
        if kind not in self._state.legal:
            self._state.check(kind)
        if kind == _MESSAGE:
            if is_alone:
                self.alike.learn_message(data, command.message)
            return command.message
        if kind == _SEND_RECEIPT:
            receipt = _receipt_of(command.send_receipt)
            if is_alone and receipt.ledger_id >= 0:
                self.alike.learn_receipt(data, receipt)
            return receipt
        self._on_rest(command, touched)
        return None

    def _on_answer(self, command: BaseCommand) -> None:
        if command.type == BaseCommand.ERROR and command.error.request_id == commands.NO_REQUEST_ID:
            self._on_connection_error(command)
        else:
            self._requests.on_answer(command)

    def _on_connection_error(self, command: BaseCommand) -> None:
        """The broker refuses the connection itself."""
        error = service_error(
            command.error.error, f"{self.remote_address}: {command.error.message}"
        )
        self.handshake.on_failed(error)
        self.close(f"broker said: {command.error.message}")

    def _on_rest(self, command: BaseCommand, touched: Touched) -> None:
        """Handle the commands that are rare: all but MESSAGE and SEND_RECEIPT."""
        kind = command.type
        if kind in ANSWERS:
            self._on_answer(command)
        elif kind == BaseCommand.PING:
            self.send(commands.pong())
        elif kind == BaseCommand.CONNECTED:
            self._on_connected(command)
        elif kind == BaseCommand.AUTH_CHALLENGE:
            challenge = command.authChallenge.challenge.auth_data
            self._tasks.spawn(self.handshake.answer(challenge), "answer challenge")
        else:
            self.handlers.on_news(self, command, touched)

    def _on_connected(self, command: BaseCommand) -> None:
        connected = command.connected
        if connected.HasField("max_message_size"):
            if connected.max_message_size <= 0:
                raise RemoteProtocolError(
                    f"CONNECTED: max_message_size={connected.max_message_size}, expected at least 1"
                )
            self.max_message_size = connected.max_message_size
            self.frames.set_max_frame_bytes(max_frame_bytes(self.max_message_size))
        self.protocol_version = connected.protocol_version
        self.feature_flags = connected.feature_flags
        self._state.on_connected()
        self.is_connected = True
        self.handshake.on_connected()

    def supports(self, feature: Feature) -> bool:
        """Whether broker and client both know the feature."""
        return allows(self.protocol_version, feature)

    # --- requests ------------------------------------------------------------------------------

    async def request(
        self,
        request_id: int,
        frame: bytes,
        *,
        timeout_seconds: float | None = None,
        subject: str = "",
    ) -> BaseCommand:
        """Send a command that has an answer; returns it.

        Args:
            request_id: What the command carries; of `next_request_id`.
            frame: The command, made by `encode`.
            timeout_seconds: None for the client's operation timeout.
            subject: What errors name, such as the topic.

        Raises:
            ServiceError: The broker answered with an error.
            ClientTimeoutError: No answer in time; one that comes later is dropped.
            ConnectionClosedError: The connection was lost, or is closed already.
            RemoteProtocolError: The answer is not one to this command; the connection is closed.
        """
        return await self._request(
            request_id, frame, timeout_seconds=timeout_seconds, subject=subject, on_queued=_ignore
        )

    async def request_producer(
        self,
        request_id: int,
        frame: bytes,
        *,
        timeout_seconds: float | None = None,
        subject: str = "",
        on_queued: Callable[[], None] | None = None,
    ) -> BaseCommand:
        """Register a producer; returns the PRODUCER_SUCCESS that says it is ready.

        If the producer has to wait for exclusive access (`producer_ready` false), `on_queued` is
        called, and from there on the wait has no time limit. Raises as `request`.
        """
        return await self._request(
            request_id,
            frame,
            timeout_seconds=timeout_seconds,
            subject=subject,
            on_queued=on_queued or _ignore,
        )

    async def _request(
        self,
        request_id: int,
        frame: bytes,
        *,
        timeout_seconds: float | None,
        subject: str,
        on_queued: Callable[[], None],
    ) -> BaseCommand:
        if not self.is_connected:
            prefix = f"{subject}: " if subject else ""
            raise ConnectionClosedError(f"{prefix}{self._closed_text()}")
        default = self._settings.request_timeout_seconds
        return await self._requests.run(
            request_id,
            frame,
            self.send,
            timeout_seconds=default if timeout_seconds is None else timeout_seconds,
            subject=subject,
            on_queued=on_queued,
        )

    # --- sending -------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Queue one frame; it is dropped silently if the connection is closed."""
        self.write((frame,))

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Queue parts of frames; one `writelines` a loop tick carries all that is queued.

        Leave the buffers unchanged from here on. They are dropped silently if the connection is
        closed: its handlers hear of that by `on_connection_closed`.
        """
        # Hot path: produce in `make bench-client`.
        if self._transport is None:
            return
        self._out += buffers
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def before_flush(self, prepare: Callable[[], None]) -> None:
        """Call `prepare`, which may `write`, before the next flush: in the loop's next tick.

        It is called once, and also if the connection is closed by then.
        """
        self._before_flush.append(prepare)
        self._flush_soon()

    @property
    def writes_through(self) -> bool:
        """Whether `write_through` would write at once."""
        return self._may_write_through and not self._is_flush_due and self._transport is not None

    def write_through(self, buffers: Sequence[Buffer]) -> None:
        """As `write`, but the first one after a read or a flush goes out at once.

        For frames that a caller may be waiting for: a message that comes alone goes out in the turn
        of the loop in which it is sent, and costs no turn of its own. Callers that write much have
        one more system call a tick.
        """
        # Hot path: produce and one by one in `make bench-client`.
        if self._may_write_through and not self._is_flush_due and self._transport is not None:
            self._may_write_through = False
            self._transport.writelines(buffers)
        else:
            self.write(buffers)

    @property
    def writes_alone(self) -> bool:
        """Whether a thread that has the loop's turn may call `write_alone`."""
        direct = self._direct
        return (
            direct is not None
            and self._may_write_through
            and not self._is_flush_due
            and not direct.transport.get_write_buffer_size()
        )

    def write_alone(self, buffers: Sequence[Buffer]) -> None:
        """As `write_through`, without the loop; only while `writes_alone`."""
        # Hot path: latency in `make bench-client`, blocking.
        assert self._direct is not None, "`writes_alone` without a socket"
        self._may_write_through = False
        # Until it is known what is left nothing else is written, not even if Ctrl-C ends this here.
        self._is_flush_due = True
        rest = self._direct.send(buffers)
        if rest:
            assert self._loop is not None, "a socket without a loop"
            self._out.append(rest)
            self._loop.call_soon_threadsafe(self._flush)
        else:
            self._is_flush_due = False

    def _end_direct(self) -> None:
        if self.reads is not None:
            self.reads.lent.close()
            self.reads = None
        if self._direct is not None:
            self._direct.close()
            self._direct = None

    def give_up(self, reason: str) -> None:
        """Have the loop close the connection, and send nothing more; called by any thread."""
        assert self._loop is not None, "an open connection has a loop"
        self._loop.call_soon_threadsafe(self._close_abruptly, reason)

    def flush(self) -> None:
        """Write what is queued now; for what the broker should have before this turn ends."""
        if self._out or self._before_flush:
            self._flush()

    def _flush(self) -> None:
        if self._before_flush:
            self._is_flush_due = True  # what they write goes out with this flush
            prepares, self._before_flush = self._before_flush, []
            for prepare in prepares:
                prepare()
        self._is_flush_due = False
        self._may_write_through = True
        if self._transport is not None and self._out:
            out, self._out = self._out, []
            self._transport.writelines(out)

    async def drain(self) -> None:
        """Return once `is_writable`, or the connection is closed."""
        while not self.is_writable and self._closed_reason is None:
            if self._writable is None:
                self._writable = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._writable)

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        self.is_writable = False

    def resume_writing(self) -> None:
        """The socket takes more again."""
        self.is_writable = True
        self._wake_writers()

    def _wake_writers(self) -> None:
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None

    # --- handlers ------------------------------------------------------------------------------

    def register_producer(self, producer_id: int, handler: ProducerHandler) -> None:
        """Hand the producer's receipts and news to `handler`; call it before PRODUCER is sent."""
        self._check_open()
        self.handlers.producers[producer_id] = handler

    def unregister_producer(self, producer_id: int) -> None:
        """No more calls for that producer; unknown ids are fine."""
        self.handlers.producers.pop(producer_id, None)

    def register_consumer(self, consumer_id: int, handler: ConsumerHandler) -> None:
        """Hand the consumer's messages and news to `handler`; call it before SUBSCRIBE is sent."""
        self._check_open()
        self.handlers.consumers[consumer_id] = handler

    def unregister_consumer(self, consumer_id: int) -> None:
        """No more calls for that consumer; unknown ids are fine."""
        self.handlers.consumers.pop(consumer_id, None)

    def register_topic_watcher(self, watcher_id: int, handler: TopicWatchHandler) -> None:
        """Hand news of topics to `handler`."""
        self._check_open()
        self.handlers.watchers[watcher_id] = handler

    def unregister_topic_watcher(self, watcher_id: int) -> None:
        """No more news; unknown ids are fine."""
        self.handlers.watchers.pop(watcher_id, None)

    @property
    def is_idle(self) -> bool:
        """Whether it has neither handlers nor requests."""
        return not self._requests and self.handlers.is_empty

    def _check_open(self) -> None:
        if not self.is_connected:
            raise ConnectionClosedError(self._closed_text())

    # --- opening and closing -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        self._transport = cast("asyncio.Transport", transport)
        self.has_socket = True
        self._loop = asyncio.get_running_loop()
        turn = turn_of(self._loop)
        if turn is not None:
            self.turn = turn
            self._direct = direct_socket(self._transport)
            self.reads = thread_reads(self, self._loop, self._transport, self._direct)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        self._set_keep_alive_timer()

    def _set_keep_alive_timer(self) -> None:
        delay = self._keep_alive.due_at - self._clock.monotonic_seconds()
        self._keep_alive_timer = self._clock.call_later(max(delay, 0.001), self._on_tick)

    def _on_tick(self) -> None:
        decision = self._keep_alive.tick(
            self._clock.monotonic_seconds(),
            is_handshake_done=self._state.is_handshake_done,
            peer_version=self.protocol_version,
        )
        if decision.is_close:
            self._close_abruptly(f"keep-alive: {decision.value}")
            return
        if decision is KeepAliveDecision.SEND_PING:
            self.send(commands.ping())
        self._set_keep_alive_timer()

    def close(self, reason: str = "closed") -> None:
        """Close at once; handlers get `on_connection_closed`, requests fail with the reason.

        Queued frames are still sent, for at most `CLOSE_FLUSH_SECONDS`.
        """
        transport = self._transport
        if transport is not None:
            self._flush()
            transport.close()
            if transport.get_write_buffer_size():
                self._clock.call_later(CLOSE_FLUSH_SECONDS, transport.abort)
        self._on_closed(reason)

    def _close_abruptly(self, reason: str) -> None:
        """Close without sending what is queued: the peer is not to be trusted, or gone."""
        if self._transport is not None:
            self._transport.abort()
        self._on_closed(reason)

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        with self.turn:
            self._connection_lost(error)

    def _connection_lost(self, error: Exception | None) -> None:
        self.has_socket = False
        if (refusal := refused_certificate(error)) is not None:
            self.handshake.on_failed(AuthenticationError(f"{self.remote_address}: {refusal}"))
        self._on_closed("closed by the broker" if error is None else f"lost: {error}")
        if self._lost is not None:
            self._lost.set_result(None)
            self._lost = None

    async def wait_closed(self) -> None:
        """Return when the socket of a connection that was closed is gone."""
        while self.has_socket:
            if self._lost is None:
                self._lost = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._lost)

    def eof_received(self) -> None:
        """The broker closes; the transport does so too."""

    def detach_after_fork(self) -> None:
        """In a forked child: forget the socket without touching it, which the parent uses."""
        self.has_socket = False
        self.is_connected = False
        self._closed_reason = "belongs to the parent process"
        self._transport = None
        if self.reads is not None:
            self.reads.lent.forget()
            self.reads = None
        self._end_direct()

    @property
    def file_number(self) -> int:
        """The socket's descriptor, -1 without one."""
        if self._transport is None:
            return -1
        sock = self._transport.get_extra_info("socket")
        return -1 if sock is None else int(sock.fileno())

    @property
    def closed_reason(self) -> str | None:
        """Why it was closed; None while it is open."""
        return self._closed_reason

    def _closed_text(self) -> str:
        return f"connection to {self.remote_address} {self._closed_reason or 'not established'}"

    def _on_closed(self, reason: str) -> None:
        """Close, once: nothing is received or sent from here on; requests and handlers end."""
        if self._closed_reason is not None:
            return
        self._closed_reason = reason
        was_connected, self.is_connected = self.is_connected, False
        self._state.on_closed()
        self._transport = None
        if self._direct is not None:
            self._direct.end_reading()
        self._end_direct()
        self._out.clear()
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()
        self._wake_writers()
        if was_connected:  # otherwise the pool tells why there is none
            logger.info(
                "connection to %s closed: %s",
                self.remote_address,
                reason,
                extra={"broker": self.remote_address, "reason": reason},
            )
        self.handshake.on_failed(ConnectError(self._closed_text()))
        self._requests.fail_all(self._closed_text())
        self.handlers.on_connection_closed(self)


def _ignore() -> None:
    """Does nothing: the callback of a request whose caller does not wait for it to be written."""


def _receipt_of(command: CommandSendReceipt) -> Receipt:
    message_id = command.message_id
    ledger_id, entry_id = message_id.ledgerId, message_id.entryId
    highest = command.highest_sequence_id
    if ledger_id > MAX_LONG or highest > MAX_LONG:
        ledger_id, entry_id = to_signed(ledger_id), to_signed(entry_id)
        highest = to_signed(highest)
    return Receipt(command.producer_id, command.sequence_id, ledger_id, entry_id, highest)


def _take_receipts(
    producer: ProducerHandler, receipt: Receipt, frames: Sequence[ReceivedFrame], at: int
) -> int:
    """Hand over the receipt of `frames[at]` and those that continue it; returns how many."""
    # Hot path: produce in `make bench-client`.
    _, sequence_id, ledger_id, entry_id, highest = receipt
    producer.on_send_receipt(sequence_id, highest, ledger_id, entry_id)
    if ledger_id < 0 or entry_id < 0:  # a duplicate, or from a broker at fault
        return 1
    following = count_following(frames, at, receipt)
    if following:
        producer.on_send_receipts(sequence_id + 1, highest, ledger_id, entry_id + 1, following)
    return 1 + following
