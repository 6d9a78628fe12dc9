"""Keeps the requests of one connection until they are answered.

What always holds: a request ends exactly once, by its answer, its time-out, or the end of the
connection; an answer to an unknown request (one that timed out or was cancelled) is dropped. An
answer to PRODUCER that is not ready yet (`producer_ready` false: the producer waits for exclusive
access) does not end the request, and takes its time-out away.

Source: ClientCnx in Pulsar's client (`pendingRequests`, `requestTimeoutQueue`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from pulsar_py.client.brokers.responses import ANSWER_OF, answer_error, request_id_of, request_type
from pulsar_py.common.errors import ClientTimeoutError, ConnectionClosedError, RemoteProtocolError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand

__all__ = ["PendingRequests", "fail"]


class _Request:
    """One request that has no answer yet."""

    __slots__ = ("answer", "expected", "on_queued", "timer")

    def __init__(
        self, answer: asyncio.Future[BaseCommand], expected: int, on_queued: Callable[[], None]
    ) -> None:
        self.answer = answer
        # The type of the answer that means success.
        self.expected = expected
        # Called when the broker answers a PRODUCER that it has to wait for exclusive access.
        self.on_queued = on_queued
        # The timer of the time-out; None once there is no time limit.
        self.timer: asyncio.TimerHandle | None = None

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class PendingRequests:
    """The unanswered requests of one connection. Owned by a ClientCnx, and lives as long."""

    __slots__ = ("_clock", "_peer", "_requests")

    def __init__(self, clock: Clock, peer: str) -> None:
        """`peer` is what errors call the broker."""
        self._clock = clock
        self._peer = peer
        self._requests: dict[int, _Request] = {}

    def __len__(self) -> int:
        return len(self._requests)

    async def run(
        self,
        request_id: int,
        frame: bytes,
        send: Callable[[bytes], None],
        *,
        timeout_seconds: float,
        subject: str,
        on_queued: Callable[[], None],
    ) -> BaseCommand:
        """Send the frame; returns its answer. Raises as `ClientCnx.request`."""
        assert request_id not in self._requests, f"request {request_id} is under way already"
        prefix = f"{subject}: " if subject else ""
        kind = cast("BaseCommand.Type.ValueType", request_type(frame))
        request = _Request(asyncio.get_running_loop().create_future(), ANSWER_OF[kind], on_queued)
        text = f"{self._peer} did not answer {BaseCommand.Type.Name(kind)} in {timeout_seconds:g} s"
        request.timer = self._clock.call_later(
            timeout_seconds, lambda: fail(request.answer, ClientTimeoutError(prefix + text))
        )
        self._requests[request_id] = request
        send(frame)
        try:
            answer = await request.answer
        except ConnectionClosedError as error:
            raise ConnectionClosedError(f"{prefix}{error}") from None
        except RemoteProtocolError as error:
            raise RemoteProtocolError(f"{prefix}{error}") from None
        finally:
            request.stop_timer()
            self._requests.pop(request_id, None)
        refusal = answer_error(answer)
        if refusal is not None:
            raise type(refusal)(f"{prefix}{refusal}")
        return answer

    def on_answer(self, command: BaseCommand) -> None:
        """Pass an answer to the caller that waits for it.

        Raises:
            RemoteProtocolError: It is not one to the command that was sent.
        """
        request = self._requests.get(request_id_of(command))
        if request is None or request.answer.done():
            return
        if command.type not in (request.expected, BaseCommand.ERROR):
            expected = cast("BaseCommand.Type.ValueType", request.expected)
            got, wanted = (BaseCommand.Type.Name(each) for each in (command.type, expected))
            text = f"{self._peer} answered {got} where {wanted} was expected"
            request.answer.set_exception(RemoteProtocolError(text))
            raise RemoteProtocolError(text)
        is_queued = (
            command.type == BaseCommand.PRODUCER_SUCCESS
            and not command.producer_success.producer_ready
        )
        if is_queued:
            request.stop_timer()
            request.on_queued()
        else:
            request.answer.set_result(command)

    def fail_all(self, text: str) -> None:
        """End all requests with a ConnectionClosedError: the connection closed, `text` is why."""
        for request in self._requests.values():
            fail(request.answer, ConnectionClosedError(text))


def fail(future: asyncio.Future[BaseCommand] | asyncio.Future[None], error: Exception) -> None:
    """End a future with an error, if nothing else has ended it."""
    if not future.done():
        future.set_exception(error)
