"""Seeks, and asks the broker for the last message of the topic (edge).

Requests wait for a connection and are repeated when it is lost, or when the broker has just closed
the consumer (it answers that it does not know it), all within the operation timeout.
A seek makes the broker close the consumer, which then registers anew: from the moment SEEK is sent,
a new registration begins at the target. `has_message_available` looks into the
queue first, then compares the broker's last message with the last one that the application got.

Source: ConsumerImpl.seekAsync, hasMessageAvailableAsync in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pulsar_py.client.acknowledging.ack_grouping import AcknowledgmentsTracker
from pulsar_py.client.acknowledging.redeliveries import Redeliveries
from pulsar_py.client.consuming.broker_statistics import BrokerConsumerStatistics
from pulsar_py.client.consuming.position_data import seek_data
from pulsar_py.client.messages.message import EntryKey, Message
from pulsar_py.client.receiving.receiver import Receiver
from pulsar_py.client.receiving.start_position import StartPosition, before
from pulsar_py.client.shared.retries import repeat
from pulsar_py.common.errors import (
    ServiceError,
    ServiceMetadataError,
    ServiceNotReadyError,
    TooManyRequestsError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.common.message_id import LATEST_MESSAGE_ID, MessageId, position_of
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandGetLastMessageIdResponse
from pulsar_py.wire import client_commands

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext
    from pulsar_py.client.brokers.connection_handler import ConnectionHandler

__all__ = ["SubscriptionPosition", "is_after"]

_WORTH_ANOTHER = (ServiceNotReadyError, TooManyRequestsError)
"""Answers of a broker after which a request is repeated; others are final."""


class SubscriptionPosition:
    """The position of one consumer in its topic; owned by the consumer."""

    def __init__(
        self,
        context: ClientContext,
        handler: ConnectionHandler,
        receiver: Receiver,
        *,
        consumer_id: int,
        subject: str,
        tracker: AcknowledgmentsTracker,
        redeliveries: Redeliveries,
        start: MessageId | None,
        is_inclusive: bool,
        is_durable: bool,
        partition_index: int,
    ) -> None:
        """`start` is where a non-durable subscription begins; the rest are the consumer's parts."""
        self._context = context
        self._handler = handler
        self._receiver = receiver
        self._consumer_id = consumer_id
        self._subject = subject
        self._tracker = tracker
        self._redeliveries = redeliveries
        self._is_inclusive = is_inclusive
        self._is_durable = is_durable
        self._partition_index = partition_index
        self._set_start(None if start is None else StartPosition(start, is_inclusive))
        self._seeking = asyncio.Lock()
        # The target of a seek that is under way, in a tuple: a position, or None for a time. None
        # instead of the tuple: no seek is under way.
        self._target: tuple[StartPosition | None] | None = None

    def _set_start(self, start: StartPosition | None) -> None:
        self._receiver.queue.start = start

    @property
    def _start(self) -> StartPosition | None:
        return self._receiver.queue.start

    def next_registration(self) -> MessageId | None:
        """The start position of the registration that begins now; drops all that was received.

        None for a durable subscription, whose position the broker stores. A non-durable one begins
        after the last message that the application got, or before the first one in the queue.
        """
        receiver = self._receiver
        chunk: EntryKey | None = None  # the first one of a message that was not handed out
        if self._target is not None:
            self._moved(self._target[0])
        elif not self._is_durable:
            receiver.recall()
            chunk, head = receiver.queue.first_chunk_key(), receiver.queue.head_key()
            if receiver.last is not None:
                self._set_start(StartPosition(receiver.last.message_id(), is_floor=True))
            elif head is not None and not self._is_within_start(head):
                self._set_start(StartPosition(before(head, -1, 0)))
        receiver.clear()
        self._redeliveries.clear()
        start = self._start
        if self._is_durable or start is None:
            return None
        # An incomplete chunked message can only be completed from its first chunk on.
        if chunk is not None and chunk <= (start.message_id.ledger_id, start.message_id.entry_id):
            return before(chunk, -1, 0)
        return start.message_id

    def closed_by_broker(self) -> None:
        """Assume that another consumer, or a REST call, has moved the subscription.

        Messages that were skipped or acknowledged before may come again, then, and are delivered.
        """
        start = self._start
        if not self._is_durable or self._target is not None or not self._receiver.queue.is_begun:
            return
        self._tracker.forget_sent()
        if start is not None and start.message_id.batch_index < 0:
            self._set_start(None)

    def _is_within_start(self, key: tuple[int, int]) -> bool:
        """Whether the start is a message of this entry: more exact than the entry itself."""
        start = self._start
        return start is not None and key == (start.message_id.ledger_id, start.message_id.entry_id)

    async def _request(self, build: Callable[[int], bytes]) -> BaseCommand:
        """The answer to a request; `build` gets its id.

        Raises:
            ServiceError: The broker refused.
            ClientError: No answer within the operation timeout, or the consumer is closed.
        """

        async def attempt(seconds: float) -> BaseCommand | ServiceError:
            cnx = await self._handler.wait_connected()
            request_id = cnx.next_request_id()
            try:
                return await cnx.request(
                    request_id, build(request_id), timeout_seconds=seconds, subject=self._subject
                )
            except _WORTH_ANOTHER:
                raise
            except ServiceError as error:
                if isinstance(error, ServiceMetadataError) and self._handler.cnx is not cnx:
                    raise  # the broker had closed the consumer before it got this
                return error

        answer = await repeat(
            attempt,
            clock=self._context.clock,
            chance=self._context.random,
            timeout_seconds=self._context.config.operation_timeout_seconds,
            subject=self._subject,
        )
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    async def seek(self, target: MessageId | int) -> None:
        """Move the subscription; returns when the consumer is there.

        Raises:
            ServiceError, ClientError: It was not moved, or it is not known whether it was.
        """
        async with self._seeking:
            position = None
            if isinstance(target, MessageId):
                position = StartPosition(target, self._is_inclusive)
            epoch = self._handler.epoch
            stay = partial(self._stay, self._start, self._receiver.last)
            self._target = (position,)
            try:
                with OnFailure(stay):
                    await self._request(lambda request_id: self._seek_frame(request_id, target))
                    # The broker closes the consumer for a seek. If it has registered anew already,
                    # `next_registration` has moved it, and new messages may be queued.
                    if self._handler.epoch == epoch:
                        self._moved(position)
            finally:
                self._target = None
        await self._wait_until_back()

    def _stay(self, start: StartPosition | None, last: Message | None) -> None:
        self._set_start(start)
        self._receiver.last = last

    def _seek_frame(self, request_id: int, target: MessageId | int) -> bytes:
        if isinstance(target, MessageId):
            return client_commands.seek_to_id(self._consumer_id, request_id, seek_data(target))
        return client_commands.seek_to_time(self._consumer_id, request_id, target)

    def _moved(self, position: StartPosition | None) -> None:
        """Drop received messages and collected acknowledgements: they are from before the seek."""
        self._set_start(position)
        self._receiver.last = None
        self._tracker.clear()
        self._receiver.clear()
        self._redeliveries.clear()

    async def _wait_until_back(self) -> None:
        async def attempt(seconds: float) -> None:
            del seconds
            await self._handler.wait_connected()

        await repeat(
            attempt,
            clock=self._context.clock,
            chance=self._context.random,
            timeout_seconds=self._context.config.operation_timeout_seconds,
            subject=self._subject,
        )

    async def get_last_message_id(self) -> MessageId:
        """The topic's last message; ledger and entry -1 if it has none.

        Raises:
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        last = MessageId.from_data((await self._last()).last_message_id)
        last.partition_index = self._partition_index
        return last

    async def ends(self) -> tuple[Position, Position]:
        """The topic's last entry and the subscription's mark-delete position; raises as above."""
        response = await self._last()
        acknowledged = EARLIEST
        if response.HasField("consumer_mark_delete_position"):
            acknowledged = position_of(response.consumer_mark_delete_position)
        return position_of(response.last_message_id), acknowledged

    async def _last(self) -> CommandGetLastMessageIdResponse:
        answer = await self._request(
            lambda request_id: client_commands.get_last_message_id(self._consumer_id, request_id)
        )
        return answer.getLastMessageIdResponse

    async def broker_statistics(self) -> BrokerConsumerStatistics:
        """The broker's statistics of the consumer; raises as `get_last_message_id`."""
        answer = await self._request(
            lambda request_id: client_commands.consumer_stats(self._consumer_id, request_id)
        )
        return BrokerConsumerStatistics.of(answer.consumerStatsResponse)

    async def unsubscribe(self, *, is_forced: bool) -> None:
        """Delete the subscription; raises as `get_last_message_id`."""
        await self._request(
            lambda request_id: client_commands.unsubscribe(
                self._consumer_id, request_id, is_forced=is_forced
            )
        )

    async def has_message_available(self) -> bool:
        """Whether there is a message after the last one that the application got.

        Raises:
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        if self._receiver.is_ready:
            return True
        response = await self._last()
        if self._receiver.is_ready:
            return True
        last = MessageId.from_data(response.last_message_id)
        if last.entry_id < 0 or self._receiver.queue.passed_key >= (last.ledger_id, last.entry_id):
            return False  # the last entry can't be handed out: damaged, or an incomplete chunk
        return await self._is_after_start(last, response)

    async def _is_after_start(
        self, last: MessageId, response: CommandGetLastMessageIdResponse
    ) -> bool:
        received, start = self._receiver.last, self._start
        if received is not None:
            return is_after(last, received.message_id())
        if start is not None:
            if start.message_id != LATEST_MESSAGE_ID:
                return is_after(last, start.message_id, is_inclusive=start.is_inclusive)
            if start.is_inclusive:
                await self.seek(last)  # begin with the last message there is
                return True
        return self._is_after_mark_delete(last, response)

    def _is_after_mark_delete(
        self, last: MessageId, response: CommandGetLastMessageIdResponse
    ) -> bool:
        """Compare with the subscription's mark-delete position, if nothing was received yet."""
        if not response.HasField("consumer_mark_delete_position"):
            return self._start is None
        return is_after(last, MessageId.from_data(response.consumer_mark_delete_position))


def is_after(last: MessageId, position: MessageId, *, is_inclusive: bool = False) -> bool:
    """Whether `last` comes after a position; the same entry does if it has later messages."""
    entry = (last.ledger_id, last.entry_id)
    other = (position.ledger_id, position.entry_id)
    if entry != other:
        return entry > other
    if is_inclusive:
        return True
    return position.batch_index >= 0 and last.batch_index > position.batch_index
