"""Sends a consumer's acknowledgements, grouped by time and size, with or without receipts (edge).

The tracker (`ack_grouping`) knows what to send; `Acknowledger` decides when, and on which
connection. Without a connection everything stays with the tracker until there is one. With receipts
all callers that wait for the same flush share one future, which ends with the broker's answer.

What always holds: there is at most one timer; a receipt ends by the answer, the request's time-out,
the end of the connection, or `close`.

Source: PersistentAcknowledgmentsGroupingTracker in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsar_py.client.acknowledging import ack_commands
from pulsar_py.client.acknowledging.ack_grouping import AckGroup, AcknowledgmentsTracker
from pulsar_py.client.shared.retries import within
from pulsar_py.common.errors import AlreadyClosedError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_cnx import ClientCnx

__all__ = ["Acknowledger"]


class Acknowledger:
    """Sends the acknowledgements of one consumer, which owns it."""

    def __init__(
        self,
        tracker: AcknowledgmentsTracker,
        *,
        consumer_id: int,
        subject: str,
        clock: Clock,
        tasks: TaskOwner,
        new_request_id: Callable[[], int],
        group_seconds: float,
        is_receipt_wanted: bool,
        timeout_seconds: float,
    ) -> None:
        """Nothing is sent before `connected`.

        Args:
            tracker: Collects the acknowledgements.
            consumer_id: The consumer's id on its connections.
            subject: How errors name the consumer.
            clock: For the timer.
            tasks: Requests for receipts run there.
            new_request_id: For receipts.
            group_seconds: How long acknowledgements may wait for others; 0: not at all.
            is_receipt_wanted: Whether the broker has to confirm.
            timeout_seconds: Limit for the broker's answer to one flush.
        """
        self._tracker = tracker
        self._consumer_id = consumer_id
        self._subject = subject
        self._clock = clock
        self._tasks = tasks
        self._new_request_id = new_request_id
        self._group_seconds = group_seconds
        self._is_receipt_wanted = is_receipt_wanted
        self._timeout_seconds = timeout_seconds
        self._cnx: ClientCnx | None = None  # None while there is no connection
        self._timer: asyncio.TimerHandle | None = None
        # Done when the next flush is confirmed; None while nobody waits for it.
        self._receipt: asyncio.Future[None] | None = None
        # The receipt of the last flush; None before the first one.
        self._last_sent: asyncio.Future[None] | None = None
        # Receipts of flushes that were sent.
        self._unconfirmed: dict[asyncio.Future[None], None] = {}

    def connected(self, cnx: ClientCnx) -> None:
        """The broker has registered the consumer on `cnx`: send what waited."""
        self._cnx = cnx
        self.flush()

    def disconnected(self) -> None:
        """Nothing can be sent for now."""
        self._cnx = None

    def changed(self) -> None:
        """The tracker has something to send: send it after the group time, or now if it is full."""
        # Hot path: consume in `make bench-client`; once an entry.
        if self._tracker.is_full or self._group_seconds <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = self._clock.call_later(self._group_seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Send everything now, if there is a connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._cnx is None or self._tracker.is_empty:
            return
        pending = self._tracker.take()
        if self._is_receipt_wanted:
            receipt, self._receipt = self._receipt or _new_receipt(), None
            self._last_sent = receipt
            self._unconfirmed[receipt] = None
            self._tasks.spawn(self._confirm(self._cnx, pending, receipt), "ack receipt")
        else:
            self._cnx.write(ack_commands.acks(self._consumer_id, pending, None))

    async def _confirm(
        self, cnx: ClientCnx, pending: AckGroup, receipt: asyncio.Future[None]
    ) -> None:
        """Send with request ids; the answers end the receipt."""
        # One for each ACK that a flush may have: a cumulative and an individual one.
        ids = [self._new_request_id(), self._new_request_id()]
        frames = ack_commands.acks(self._consumer_id, pending, iter(ids))
        requests = [
            cnx.request(
                request_id, frame, timeout_seconds=self._timeout_seconds, subject=self._subject
            )
            for request_id, frame in zip(ids, frames, strict=False)
        ]
        results = await asyncio.gather(*requests, return_exceptions=True)
        errors = [each for each in results if isinstance(each, BaseException)]
        self._unconfirmed.pop(receipt, None)
        if receipt.done():
            return
        if errors:
            receipt.set_exception(errors[0])
        else:
            receipt.set_result(None)

    async def receipt(self) -> None:
        """Return when the flush that takes what is pending now, or has just taken it, is confirmed.

        Raises:
            ServiceError, ClientError: The flush was not confirmed; its messages may come again.
        """
        if not self._is_receipt_wanted:
            return
        receipt = self._last_sent
        if not self._tracker.is_empty:
            receipt = self._receipt = self._receipt or _new_receipt()
        if receipt is None or receipt.done():
            return
        await within(
            asyncio.shield(receipt),  # cancelling one caller must not end it for the others
            self._timeout_seconds,
            f"{self._subject}: acknowledging",
        )

    async def close(self) -> None:
        """Send what is left, and wait for its receipt, within the usual time limit."""
        receipt = self._receipt
        self.flush()
        waited = [each for each in (receipt, *self._unconfirmed) if each is not None]
        if waited and self._cnx is not None:
            await asyncio.wait(waited, timeout=self._timeout_seconds)
        self.abandon()

    def abandon(self) -> None:
        """Send nothing more; callers that wait for receipts get AlreadyClosedError."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._cnx = None
        for each in (self._receipt, *self._unconfirmed):
            if each is not None and not each.done():
                each.set_exception(AlreadyClosedError(f"{self._subject}: closed"))
        self._receipt = None
        self._unconfirmed.clear()


def _new_receipt() -> asyncio.Future[None]:
    receipt: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    receipt.add_done_callback(_retrieve)
    return receipt


def _retrieve(receipt: asyncio.Future[None]) -> None:
    """Retrieve the receipt's error: asyncio logs errors of futures that nobody awaited."""
    if not receipt.cancelled():
        receipt.exception()
