"""Requests that have no answer yet."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from pulsar_py.client.brokers.pending_requests import PendingRequests, fail
from pulsar_py.common.errors import (
    ClientTimeoutError,
    ConnectionClosedError,
    RemoteProtocolError,
    ServiceMetadataError,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.wire import client_commands, commands
from pulsar_py.wire.framing import SIZES_SIZE


def parsed(frame: bytes) -> BaseCommand:
    return commands.read_command(frame[SIZES_SIZE:])


class Desk:
    """Requests to nobody, which tests answer by hand."""

    def __init__(self) -> None:
        self.requests = PendingRequests(VirtualClock(), "broker:1")
        self.sent: list[bytes] = []

    def ask(self, request_id: int, seconds: float = 5) -> asyncio.Task[BaseCommand]:
        work = self.requests.run(
            request_id,
            client_commands.unsubscribe(1, request_id),
            self.sent.append,
            timeout_seconds=seconds,
            subject="topic t",
            on_queued=lambda: None,
        )
        return asyncio.get_running_loop().create_task(work)


def virtual(test: Any) -> Any:
    def run() -> None:
        async def work() -> Coroutine[Any, Any, None]:
            return await test(Desk())

        run_virtual(work())

    run.__name__ = test.__name__
    return run


@virtual
async def test_answers_come_in_any_order(desk: Desk) -> None:
    first, second = desk.ask(1), desk.ask(2)
    await asyncio.sleep(0)
    assert len(desk.requests) == len(desk.sent) == 2
    desk.requests.on_answer(parsed(commands.success(2)))
    desk.requests.on_answer(parsed(commands.success(1)))
    assert (await first).success.request_id == 1
    assert (await second).success.request_id == 2
    assert len(desk.requests) == 0


@virtual
async def test_an_error_is_raised_with_the_subject(desk: Desk) -> None:
    request = desk.ask(1)
    await asyncio.sleep(0)
    desk.requests.on_answer(parsed(commands.error(1, ServerError.MetadataError, "why")))
    with pytest.raises(ServiceMetadataError, match="topic t: why"):
        await request


@virtual
async def test_time_ends_a_request_and_its_late_answer_is_dropped(desk: Desk) -> None:
    request = desk.ask(1)
    with pytest.raises(ClientTimeoutError, match=r"topic t: broker:1 .* UNSUBSCRIBE in 5 s"):
        await request
    desk.requests.on_answer(parsed(commands.success(1)))
    assert len(desk.requests) == 0


@virtual
async def test_an_answer_of_another_kind_is_the_brokers_fault(desk: Desk) -> None:
    request = desk.ask(1)
    await asyncio.sleep(0)
    with pytest.raises(RemoteProtocolError, match="PRODUCER_SUCCESS where SUCCESS"):
        desk.requests.on_answer(parsed(commands.producer_success(1, "p")))
    with pytest.raises(RemoteProtocolError, match="topic t: broker:1"):
        await request


@virtual
async def test_the_end_of_the_connection_ends_all(desk: Desk) -> None:
    requests = [desk.ask(1), desk.ask(2)]
    await asyncio.sleep(0)
    desk.requests.fail_all("gone")
    for request in requests:
        with pytest.raises(ConnectionClosedError, match="topic t: gone"):
            await request


@virtual
async def test_the_first_end_stands(desk: Desk) -> None:
    future = asyncio.get_running_loop().create_future()
    future.set_result(None)
    fail(future, ValueError("late"))
    assert future.result() is None
