"""Acknowledges and negatively acknowledges the messages of one consumer (edge).

    Consumer --> Settlement --> AcknowledgmentsTracker   collects acknowledgements
                           +--> Redeliveries             watches for time-outs, asks for redelivery
                           +--> Acknowledger             sends, and waits for receipts
                           +--> counters, interceptors

An acknowledgement is collected at once and sent with others. Only with receipts does the caller
wait, and only then can acknowledging fail; interceptors are called when the result is known. The
caller has checked that the consumer is open.

Source: ConsumerBase.acknowledgeAsync, ConsumerImpl.negativeAcknowledge in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulsar_py.client.acknowledging.ack_grouping import AcknowledgmentsTracker
from pulsar_py.client.acknowledging.acknowledger import Acknowledger
from pulsar_py.client.acknowledging.redeliveries import Redeliveries
from pulsar_py.client.consuming.interceptor_calls import InterceptorCalls
from pulsar_py.client.messages.message import Message, ReceivedEntry, ReceivedMessageId
from pulsar_py.client.messages.option_checks import check_message, messages_of
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.client.shared.statistics import ConsumerCounters
from pulsar_py.common.errors import CumulativeAcknowledgementNotAllowedError, PulsarError
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext

__all__ = ["Settlement"]


class Settlement:
    """Settles the messages of one consumer; owned by it."""

    def __init__(
        self,
        context: ClientContext,
        *,
        subject: str,
        tracker: AcknowledgmentsTracker,
        acknowledger: Acknowledger,
        redeliveries: Redeliveries,
        counters: ConsumerCounters,
        interceptors: InterceptorCalls,
        consumer_type: ConsumerType,
        is_receipt_wanted: bool,
        is_batch_index_enabled: bool,
    ) -> None:
        """Keep the parts, which are the consumer's.

        Args:
            context: Knows on which event loop the client works.
            subject: The consumer's name in errors.
            tracker: Collects acknowledgements.
            acknowledger: Sends them.
            redeliveries: Asks for entries again.
            counters: Statistics.
            interceptors: Called with each acknowledgement.
            consumer_type: Decides whether cumulative acknowledgements are allowed.
            is_receipt_wanted: Whether the broker has to confirm.
            is_batch_index_enabled: Whether single messages of a batch are acknowledged.
        """
        self._context = context
        self._subject = subject
        self._tracker = tracker
        self._acknowledger = acknowledger
        self._redeliveries = redeliveries
        self._counters = counters
        self._interceptors = interceptors
        self._type = consumer_type
        self._is_receipt_wanted = is_receipt_wanted
        self._is_batch_index_enabled = is_batch_index_enabled

    async def acknowledge(
        self, message: Message | MessageId | Sequence[Message | MessageId]
    ) -> None:
        """See `Consumer.acknowledge`, which handles a single message without receipts itself."""
        messages = messages_of(message, self._subject)
        for each in messages:
            self._acknowledge_one(each)
        if self._is_receipt_wanted:
            await self._confirmed(messages, is_cumulative=False)
        elif self._interceptors:
            self._tell_acknowledged(messages, None, is_cumulative=False)

    def _acknowledge_one(self, message: Message | MessageId) -> None:
        if not isinstance(message, Message | ReceivedMessageId):
            self._acknowledge_foreign(message)
            return
        if self._tracker.acknowledge(message.entry, message.batch_index):
            self.entry_done(message.entry)
        elif self._is_batch_index_enabled:
            self._acknowledger.changed()

    def entry_done(self, entry: ReceivedEntry) -> None:
        """The last message of an entry was acknowledged."""
        # Hot path: consume in `make bench-client`; once an entry.
        self._context.check_loop(self._subject)  # this may set a timer, or send
        self._counters.acks_sent += entry.batch_size or 1
        if self._redeliveries.is_watching:
            self._redeliveries.entry_acknowledged(entry)
        self._acknowledger.changed()

    def _acknowledge_foreign(self, message_id: MessageId) -> None:
        if self._tracker.acknowledge_id(message_id):
            self._counters.acks_sent += message_id.batch_size or 1
            self._redeliveries.acknowledged((message_id.ledger_id, message_id.entry_id))
        self._acknowledger.changed()

    async def _confirmed(
        self, messages: Sequence[Message | MessageId], *, is_cumulative: bool
    ) -> None:
        try:
            await self._acknowledger.receipt()
        except PulsarError as error:
            self._counters.ack_failures += 1
            self._tell_acknowledged(messages, error, is_cumulative=is_cumulative)
            raise
        self._tell_acknowledged(messages, None, is_cumulative=is_cumulative)

    def _tell_acknowledged(
        self,
        messages: Sequence[Message | MessageId],
        error: Exception | None,
        *,
        is_cumulative: bool,
    ) -> None:
        if not self._interceptors:
            return
        for each in messages:
            if is_cumulative:
                self._interceptors.on_acknowledge_cumulative(_id_of(each), error)
            else:
                self._interceptors.on_acknowledge(_id_of(each), error)

    async def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """See `Consumer.acknowledge_cumulative`."""
        check_message(message, self._subject)
        if self._type in (ConsumerType.Shared, ConsumerType.KeyShared):
            raise CumulativeAcknowledgementNotAllowedError(
                f"{self._subject}: a {self._type.name} subscription can't acknowledge cumulatively"
            )
        done = self._tracker.acknowledge_cumulative(_id_of(message))
        self._counters.acks_sent += 1
        if done is not None:
            self._redeliveries.acknowledged_until(done)
            self._acknowledger.changed()
        if self._is_receipt_wanted:
            await self._confirmed([message], is_cumulative=True)
        else:
            self._tell_acknowledged([message], None, is_cumulative=True)

    def refuse(self, message: Message | MessageId) -> None:
        """See `Consumer.negative_acknowledge`."""
        self._context.check_loop(self._subject)  # this sets a timer
        check_message(message, self._subject)
        if isinstance(message, Message | ReceivedMessageId):
            self._redeliveries.refuse_entry(message.entry)
        else:
            for key in self._tracker.entries_of(message):
                self._redeliveries.refuse(key, 0)


def _id_of(message: Message | MessageId) -> MessageId:
    return message.message_id() if isinstance(message, Message) else message
