"""`SendResult`: the awaitable message id that `send_nowait` returns.

All messages of one entry share one `SendCompletion`, so a batch costs one object and a message one
small `SendResult`; a future is made only where somebody waits. Cancelling a wait touches neither
the message nor other waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias

from pulsar_py.common.message_id import MessageId

__all__ = ["PlainSends", "SendCompletion", "SendResult"]


PlainSends: TypeAlias = "tuple[SendCompletion, int, int]"
"""Messages in a row of one entry: the entry, the first one's index in a batch, and how many."""


class SendCompletion:
    """The result of sending one entry, for all messages in it.

    Invariant: once `is_done`, `error` or the ids are final and nobody waits.
    """

    __slots__ = (
        "_observers",
        "_waiters",
        "batch_size",
        "entry_id",
        "error",
        "is_asked_for",
        "is_done",
        "ledger_id",
        "message_id",
        "partition_index",
    )

    def __init__(self, partition_index: int = -1) -> None:
        self.is_done = False
        self.error: Exception | None = None
        self.ledger_id = -1
        self.entry_id = -1
        self.partition_index = partition_index
        # Messages in the batch; 0: the entry is one message.
        self.batch_size = 0
        # The id, where it is not just ledger and entry: of chunked and deferred messages.
        self.message_id: MessageId | None = None
        # Whether a caller took, or will take, the result; if none does, failures are logged.
        self.is_asked_for = False
        self._waiters: list[asyncio.Future[None]] | None = None
        self._observers: list[Callable[[], None]] | None = None

    def confirm(self, ledger_id: int, entry_id: int) -> None:
        """The entry is stored at this position; -1 and -1 mean a duplicate of an earlier entry."""
        # Hot path: produce in `make bench-client`.
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        assert not self.is_done, "an entry ends once"
        self.is_done = True
        if self._observers is not None or self._waiters is not None:
            self._tell()

    def fail(self, error: Exception) -> None:
        """The entry is not stored, or it is not known whether it is."""
        assert not self.is_done, "an entry ends once"
        self.error = error
        self.is_done = True
        self._tell()

    def _tell(self) -> None:
        if self._observers is not None:
            observers, self._observers = self._observers, None
            for observer in observers:
                observer()
        if self._waiters is not None:
            waiters, self._waiters = self._waiters, None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def observe(self, observer: Callable[[], None]) -> None:
        """Call `observer` when it is done; at once if it is. It must not raise."""
        self.is_asked_for = True
        if self.is_done:
            observer()
        elif self._observers is None:
            self._observers = [observer]
        else:
            self._observers.append(observer)

    @property
    def is_observed(self) -> bool:
        """Whether somebody is called when it is done."""
        return self._observers is not None

    async def wait(self) -> None:
        """Return when it is done, however it ended."""
        self.is_asked_for = True
        if not self.is_done:
            await self.waiter()

    def waiter(self) -> asyncio.Future[None]:
        """A new future, done when this is; it never fails. Only while not `is_done`."""
        self.is_asked_for = True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)
        return waiter

    def outcome(self, batch_index: int) -> MessageId:
        """The id of one of its messages, once done.

        Raises:
            ClientError, ServiceError: The message was not stored.
        """
        self.is_asked_for = True
        if self.error is not None:
            # All messages of a batch raise the same error object: without this, its traceback would
            # grow with each.
            raise self.error.with_traceback(None)
        if self.message_id is not None:
            return self.message_id
        if not self.batch_size:
            batch_index = -1
        return MessageId(
            self.ledger_id,
            self.entry_id,
            partition_index=self.partition_index,
            batch_index=batch_index,
            batch_size=self.batch_size,
        )


class SendResult:
    """One message on its way; `await` it for the message's id, as often as you like.

    Awaiting raises what `Producer.send` raises. Cancelling the await leaves the message alone.
    """

    __slots__ = ("_batch_index", "_completion")

    def __init__(self, completion: SendCompletion, batch_index: int = -1) -> None:
        self._completion = completion
        self._batch_index = batch_index

    def __await__(self) -> Generator[Any, None, MessageId]:
        completion = self._completion
        if not completion.is_done:
            yield from completion.waiter()
        return completion.outcome(self._batch_index)

    @property
    def _parts(self) -> PlainSends:
        """What it is made of."""
        return (self._completion, self._batch_index, 1)

    def done(self) -> bool:
        """Whether `result` has an answer."""
        return self._completion.is_done

    def result(self) -> MessageId:
        """The message's id.

        Raises:
            asyncio.InvalidStateError: It has neither a receipt nor an error yet.
            ClientError, ServiceError: As awaiting it.
        """
        if not self._completion.is_done:
            raise asyncio.InvalidStateError("the message has no receipt yet")
        return self._completion.outcome(self._batch_index)

    def exception(self) -> Exception | None:
        """The error that the message failed with, None if it is stored.

        Raises:
            asyncio.InvalidStateError: It has neither a receipt nor an error yet.
        """
        if not self._completion.is_done:
            raise asyncio.InvalidStateError("the message has no receipt yet")
        self._completion.is_asked_for = True
        return self._completion.error

    def add_done_callback(self, callback: Callable[[SendResult], None]) -> None:
        """Call `callback(self)` when it is done, at once if it is. It must not raise."""
        self._completion.observe(partial(callback, self))

    def __repr__(self) -> str:
        completion = self._completion
        if not completion.is_done:
            return "SendResult(on its way)"
        if completion.error is not None:
            return f"SendResult(failed: {completion.error})"
        return f"SendResult({completion.outcome(self._batch_index)})"
