"""`TableView`: a mapping of the newest value of each key of a topic, kept fresh (edge).

A reader reads the topic from its beginning (compacted, where it was compacted). The view is
returned when the reader has reached the end that the topic had then, and one task keeps it fresh
from there on. A message without a value, or with an empty one, deletes its key; messages without a
key are ignored.

Lookups don't await: the mapping changes only between two steps of the event loop.

Source: TableViewImpl in Pulsar's Java client; TableView of the official Python client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.messages.message import Message
from pulsar_py.client.reading.catch_up import CatchUp
from pulsar_py.client.reading.reader import Reader, create_reader
from pulsar_py.client.shared.absent_names import blocks
from pulsar_py.client.shared.type_variables import T, T_co
from pulsar_py.common.errors import AlreadyClosedError, ClientTimeoutError, PulsarError
from pulsar_py.common.failures import ErrorsLogged, OnFailureAwait
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId
from pulsar_py.common.names import TopicName

__all__ = ["TableView", "TableViewListener", "create_table_view"]

logger = logging.getLogger(__name__)

TableViewListener: TypeAlias = Callable[[str, T | None], None]
"""Called with a key and its new value, None when the key was deleted."""

_PATIENCE_MILLIS: Final = 1000
"""Time to wait for an expected message before the broker is asked again whether there is one."""
_READS_WITHOUT_BREAK: Final = 100


@blocks
class TableView(Mapping[str, T_co]):
    """A mapping from keys to newest values. Made by `Client.create_table_view`."""

    def __init__(self, context: ClientContext, reader: Reader[T_co]) -> None:
        """Own an open reader; `start` fills the view."""
        self._context = context
        self._reader = reader
        self._values: dict[str, T_co] = {}
        self._listeners: list[TableViewListener[T_co]] = []
        # The last message read of each topic or partition.
        self._read: dict[str, MessageId] = {}
        # Callers that wait in `refresh`, and the messages that they wait for.
        self._refreshes: dict[asyncio.Future[None], CatchUp] = {}
        self._tasks = TaskOwner(f"table view of {reader.topic()}")
        self._is_closed = False

    async def start(self) -> None:
        """Read what the topic has now, then keep reading; on an error the reader is closed.

        Raises:
            ServiceError, ClientError: The topic could not be read.
        """
        async with OnFailureAwait(self.close):
            await self._read_existing()
        self._context.register_child(self)
        self._tasks.spawn(self._keep_fresh(), "keep fresh")

    async def _read_existing(self) -> None:
        missing = await self._missing()
        while not missing.is_done:
            message = await self._read_or_give_up()
            if message is None:
                return
            self._handle(message)
            missing.on_read(message.topic_name(), message.message_id())

    async def _missing(self) -> CatchUp:
        """The positions to catch up with; none for a non-persistent topic."""
        if not TopicName.parse(self.topic()).is_persistent:
            return CatchUp((), self._read)
        return CatchUp(await self._reader.get_last_message_ids(), self._read)

    async def _read_or_give_up(self) -> Message[T_co] | None:
        """The next message; None if there are no more, though the last ones were not reached.

        They may have been deleted, or left out by compaction, since the broker named them.
        """
        while True:
            message = await self._reader.read_nowait()
            if message is not None:
                return message
            if not await self._reader.has_message_available():
                return None
            try:
                return await self._reader.read_next(_PATIENCE_MILLIS)
            except ClientTimeoutError:
                continue

    async def _keep_fresh(self) -> None:
        reads_count = 0
        async for message in self._reader:
            self._handle(message)
            reads_count += 1
            if reads_count % _READS_WITHOUT_BREAK == 0:
                await asyncio.sleep(0)
        self._end_refreshes()

    def _handle(self, message: Message[T_co]) -> None:
        try:
            self._apply(message)
        except PulsarError:  # a value that the schema can't read: the old one stays
            logger.warning(
                "%s: value not read, of key %r",
                message.topic_name(),
                message.partition_key(),
                extra={"topic": message.topic_name(), "key": message.partition_key()},
                exc_info=True,
            )
        topic_name, message_id = message.topic_name(), message.message_id()
        self._read[topic_name] = message_id
        for waiter, missing in list(self._refreshes.items()):
            if missing.on_read(topic_name, message_id) and not waiter.done():
                waiter.set_result(None)

    def _apply(self, message: Message[T_co]) -> None:
        if not message.has_key():
            logger.debug("message without key", extra={"topic": message.topic_name()})
            return
        key = message.partition_key()
        value = None if message.size() == 0 else message.value()
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        for listener in self._listeners:
            self._call(listener, key, value)

    def _call(self, listener: TableViewListener[T_co], key: str, value: T_co | None) -> None:
        # Application code may raise anything; the other listeners and the view have to go on.
        topic = self.topic()
        extra = {"topic": topic, "key": key}
        with ErrorsLogged(
            logger, "%s: table view listener failed at key %r", topic, key, extra=extra
        ):
            listener(key, value)

    # --- contents ------------------------------------------------------------------------------

    def topic(self) -> str:
        """The topic's full name."""
        return self._reader.topic()

    def __getitem__(self, key: str) -> T_co:
        """The newest value of a key."""
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        """The keys. The view may change while you await: iterate over `list(view)` if you do."""
        return iter(self._values)

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._values)

    def copy(self) -> dict[str, T_co]:
        """What it holds now, as a dictionary; may be asked by any thread."""
        return self._values.copy()

    def for_each(self, callback: TableViewListener[T_co]) -> None:
        """Call `callback` with each key and its value."""
        for key, value in list(self._values.items()):
            callback(key, value)

    def listen(self, callback: TableViewListener[T_co]) -> None:
        """Call `callback` with each change from now on; an error that it raises is logged."""
        self._listeners.append(callback)

    def for_each_and_listen(self, callback: TableViewListener[T_co]) -> None:
        """Call `callback` with each key and its value, then with each change; none is missed."""
        self.for_each(callback)
        self.listen(callback)

    async def refresh(self) -> None:
        """Return when everything that the topic has now is in the view.

        Raises:
            AlreadyClosedError: The view is, or was, closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        self._check_open()
        missing = await self._missing()
        if missing.is_done:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._refreshes[waiter] = missing
        try:
            while not waiter.done():
                await asyncio.wait([waiter], timeout=_PATIENCE_MILLIS / 1000)
                self._check_open()
                if not await self._reader.has_message_available():
                    return  # the expected messages were deleted, or compacted away
        finally:
            del self._refreshes[waiter]

    # --- closing -------------------------------------------------------------------------------

    def _check_open(self) -> None:
        self._context.check_usable()
        if self._is_closed:
            raise AlreadyClosedError(f"the table view of {self.topic()} is closed")

    def _end_refreshes(self) -> None:
        for waiter in self._refreshes:
            if not waiter.done():
                waiter.set_result(None)  # `refresh` raises AlreadyClosedError then

    async def close(self) -> None:
        """Stop updating the view; its contents stay readable. May be called again."""
        self._end()
        try:
            await self._tasks.close()
        finally:
            await self._reader.close()

    def abandon(self) -> None:
        """As `close`, without waiting for the broker."""
        self._end()
        self._tasks.abandon()
        self._reader.abandon()

    def _end(self) -> None:
        self._is_closed = True
        self._context.unregister_child(self)
        self._end_refreshes()

    async def __aenter__(self) -> Self:
        """The view itself, which is open."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"TableView({self.topic()}, {len(self._values)} keys, {state})"

    __hash__ = object.__hash__  # by identity: the contents change


async def create_table_view(
    context: ClientContext,
    topic: str,
    subscription_name: str | None = None,
    schema: Any = None,  # Any: a Schema of any value type; None reads bytes
    *,
    is_read_compacted: bool | None = None,
    **options: Any,  # Any: more fields of ReaderConfig
) -> TableView:
    """Create a table view; returns when it holds all that the topic held when this was called.

    Args:
        context: The client's shared parts.
        topic: A topic, partitioned or not.
        subscription_name: The reader's subscription in the broker's statistics; None: generated.
        schema: Decodes values; None for bytes.
        is_read_compacted: Whether to read the compacted topic; None: if it is persistent.
        **options: Reader options: `crypto_key_reader`, `auto_update_partitions_interval_seconds`.

    Raises:
        InvalidConfigurationError: An argument or option is not valid.
        ServiceError, ClientError: It could not be opened within the operation timeout.
    """
    if is_read_compacted is None:
        is_read_compacted = TopicName.parse(topic).is_persistent
    reader = await create_reader(
        context,
        topic,
        EARLIEST_MESSAGE_ID,
        schema=schema,
        subscription_name=subscription_name,
        is_read_compacted=is_read_compacted,
        **options,
    )
    view = TableView(context, reader)
    await view.start()
    return view
