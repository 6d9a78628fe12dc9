"""Sends a consumer's acknowledgements, grouped by time and size, with or without receipts (edge).

The tracker (`ack_grouping`) knows what to send; `Acknowledger` decides when, and on which
connection. Without a connection everything stays with the tracker until there is one. With receipts
all callers that wait for the same flush share one future, which ends with the broker's answer.

A group goes out with the first acknowledgement in the last quarter of its time. So where messages
come one by one it goes right behind one that was received, and the broker is at work for it while
nothing is under way; what a timer sends meets the next message there, at 1,000 messages a second
one in a hundred. If none comes, the timer sends the group.

Nobody who waits for a receipt waits out the group time: what is awaited goes out at the end of the
loop's step, or, while another flush is under way, as soon as that one is answered, together with
all that came meanwhile. What was under way when the connection was lost goes back to the tracker
and is sent on the next connection, and whoever waits goes on waiting.

What always holds: there is at most one timer; a receipt ends by the answer, the request's time-out,
or `close`.

Source: PersistentAcknowledgmentsGroupingTracker in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pulsar_py.client.acknowledging import ack_commands
from pulsar_py.client.acknowledging.ack_grouping import AckGroup, AcknowledgmentsTracker
from pulsar_py.client.shared.retries import within
from pulsar_py.common.errors import AlreadyClosedError, ConnectionClosedError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_cnx import ClientCnx

__all__ = ["Acknowledger"]


_NEAR_SHARE: Final = 0.75
"""The part of the group time after which the next acknowledgement takes the group with it. The rest
is longer than what threads of the blocking client let pass before they tell the loop."""


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
        # Whether the group goes out with the next acknowledgement; the timer is for none coming.
        self._is_near = False
        # Done when the next flush is confirmed; None while nobody waits for it.
        self._receipt: asyncio.Future[None] | None = None
        # The receipt of the last flush; None before the first one.
        self._last_sent: asyncio.Future[None] | None = None
        # Receipts of flushes that were sent.
        self._unconfirmed: dict[asyncio.Future[None], None] = {}
        # Those of flushes that were lost with their connection: the next flush confirms them.
        self._carried: list[asyncio.Future[None]] = []
        self._is_flush_near = False  # at the end of this step
        self._is_closing = False

    def connected(self, cnx: ClientCnx) -> None:
        """The broker has registered the consumer on `cnx`: send what waited."""
        self._cnx = cnx
        self.flush()

    def disconnected(self) -> None:
        """Nothing can be sent for now."""
        self._cnx = None

    def changed(self) -> None:
        """The tracker has something to send: send it about the group time later, or now.

        Now where the time is nearly over, or the group is full.
        """
        # Hot path: consume in `make bench-client`; once an entry.
        if self._is_near or self._tracker.is_full or self._group_seconds <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = self._clock.call_later(self._group_seconds * _NEAR_SHARE, self._on_near)

    def _on_near(self) -> None:
        self._is_near = True
        left = self._group_seconds * (1 - _NEAR_SHARE)
        self._timer = self._clock.call_later(left, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Send everything now, if there is a connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_near = False
        if self._cnx is None or self._tracker.is_empty:
            return
        pending = self._tracker.take()
        if self._is_receipt_wanted:
            receipts = [self._receipt or _new_receipt(), *self._carried]
            self._receipt, self._carried = None, []
            self._last_sent = receipts[0]
            self._unconfirmed.update(dict.fromkeys(receipts))
            self._tasks.spawn(self._confirm(self._cnx, pending, receipts), "ack receipt")
        else:
            self._cnx.write(ack_commands.acks(self._consumer_id, pending, None))

    async def _confirm(
        self, cnx: ClientCnx, pending: AckGroup, receipts: list[asyncio.Future[None]]
    ) -> None:
        """Send with request ids; the answers end the receipts."""
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
        for receipt in receipts:
            self._unconfirmed.pop(receipt, None)
        left = [receipt for receipt in receipts if not receipt.done()]
        if errors and left and self._is_lost(errors) and self._tracker.restore(pending):
            self._carried += left
            self.flush()
            return
        for receipt in left:
            if errors:
                receipt.set_exception(errors[0])
            else:
                receipt.set_result(None)
        if self._receipt is not None:  # somebody has waited for this one to be answered
            self.flush()

    def _is_lost(self, errors: list[BaseException]) -> bool:
        """Whether nothing but the loss of the connection kept a flush from being confirmed."""
        return not self._is_closing and all(
            isinstance(error, ConnectionClosedError) for error in errors
        )

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
        if receipt is self._receipt and not self._unconfirmed and not self._is_flush_near:
            self._is_flush_near = True
            asyncio.get_running_loop().call_soon(self._flush_awaited)
        await within(
            asyncio.shield(receipt),  # cancelling one caller must not end it for the others
            self._timeout_seconds,
            f"{self._subject}: acknowledging",
        )

    def _flush_awaited(self) -> None:
        self._is_flush_near = False
        self.flush()

    async def close(self) -> None:
        """Send what is left, and wait for its receipt, within the usual time limit."""
        self._is_closing = True
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
        self._is_closing = True
        for each in (self._receipt, *self._unconfirmed, *self._carried):
            if each is not None and not each.done():
                each.set_exception(AlreadyClosedError(f"{self._subject}: closed"))
        self._receipt = None
        self._unconfirmed.clear()
        self._carried.clear()


def _new_receipt() -> asyncio.Future[None]:
    receipt: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    receipt.add_done_callback(_retrieve)
    return receipt


def _retrieve(receipt: asyncio.Future[None]) -> None:
    """Retrieve the receipt's error: asyncio logs errors of futures that nobody awaited."""
    if not receipt.cancelled():
        receipt.exception()
