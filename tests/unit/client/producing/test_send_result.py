"""What `send_nowait` returns: awaited, asked, observed, cancelled."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.producing.send_result import SendCompletion, SendResult
from pulsar_py.common.errors import ClientTimeoutError
from pulsar_py.common.message_id import MessageId


async def test_all_messages_of_a_batch_share_what_ends_them() -> None:
    completion = SendCompletion(partition_index=3)
    completion.batch_size = 2
    results = [SendResult(completion, index) for index in range(2)]
    waiting = asyncio.gather(*results)
    await asyncio.sleep(0)
    completion.confirm(5, 6)
    assert await waiting == [
        MessageId(5, 6, partition_index=3, batch_index=0, batch_size=2),
        MessageId(5, 6, partition_index=3, batch_index=1, batch_size=2),
    ]


async def test_an_entry_of_one_message_has_no_batch_index() -> None:
    completion = SendCompletion()
    completion.confirm(5, 6)
    assert await SendResult(completion, 0) == MessageId(5, 6)


async def test_it_can_be_awaited_again() -> None:
    completion = SendCompletion()
    result = SendResult(completion)
    completion.confirm(5, 6)
    assert await result == await result


async def test_cancelling_one_wait_leaves_the_others() -> None:
    completion = SendCompletion()
    result = SendResult(completion)

    async def wait() -> MessageId:
        return await result

    cancelled, kept = (
        asyncio.get_running_loop().create_task(wait()),
        asyncio.get_running_loop().create_task(wait()),
    )
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.sleep(0)
    assert cancelled.cancelled()
    completion.confirm(1, 2)
    assert await kept == MessageId(1, 2)


async def test_a_failure_is_raised_to_each_who_asks() -> None:
    completion = SendCompletion()
    completion.fail(ClientTimeoutError("late"))
    for _ in range(2):
        with pytest.raises(ClientTimeoutError, match="late"):
            await SendResult(completion)
    assert isinstance(SendResult(completion).exception(), ClientTimeoutError)


async def test_before_the_end_there_is_no_result() -> None:
    result = SendResult(SendCompletion())
    assert not result.done()
    with pytest.raises(asyncio.InvalidStateError):
        result.result()
    with pytest.raises(asyncio.InvalidStateError):
        result.exception()


async def test_callbacks_come_once_before_or_after_the_end() -> None:
    completion = SendCompletion()
    result = SendResult(completion)
    seen: list[SendResult] = []
    result.add_done_callback(seen.append)
    assert not seen
    completion.confirm(1, 1)
    result.add_done_callback(seen.append)
    assert seen == [result, result]
    assert result.result() == MessageId(1, 1)


def test_somebody_asking_is_remembered() -> None:
    completion = SendCompletion()
    assert not completion.is_asked_for
    SendResult(completion).add_done_callback(lambda _: None)
    assert completion.is_asked_for
