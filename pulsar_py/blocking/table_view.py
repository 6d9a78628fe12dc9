"""`TableView` without `await`: a mapping of the newest values of a topic, for any thread.

Lookups read the asyncio view directly; whoever goes through it sees it as it was at the beginning.

Source: `TableView` of the official Python client.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from types import TracebackType
from typing import Self

from pulsar_py.blocking.client_parts import ClientParts
from pulsar_py.blocking.listener_pool import ListenerPool, check_listener
from pulsar_py.client.reading import table_view
from pulsar_py.client.reading.table_view import TableViewListener
from pulsar_py.client.shared.type_variables import T_co

__all__ = ["TableView"]


class TableView(Mapping[str, T_co]):
    """A mapping from keys to newest values. Made by `Client.create_table_view`."""

    def __init__(self, shared: ClientParts, inner: table_view.TableView[T_co]) -> None:
        """Take over a view that has caught up; called in the loop."""
        self._shared = shared
        self._thread = shared.thread
        self._inner = inner
        # One thread, so that callbacks keep the order of changes.
        self._pool = ListenerPool(f"table view of {inner.topic()}", 1)

    def topic(self) -> str:
        """The topic's full name."""
        return self._inner.topic()

    def __getitem__(self, key: str) -> T_co:
        """The newest value of a key."""
        return self._inner[key]

    def __iter__(self) -> Iterator[str]:
        """The keys that there are now."""
        return iter(self._inner.copy())

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._inner)

    def keys(self) -> KeysView[str]:
        """The keys that there are now."""
        return self._inner.copy().keys()

    def values(self) -> ValuesView[T_co]:
        """The values that there are now."""
        return self._inner.copy().values()

    def items(self) -> ItemsView[str, T_co]:
        """The keys and values that there are now."""
        return self._inner.copy().items()

    def for_each(self, callback: TableViewListener[T_co]) -> None:
        """Call `callback` with each key and its value."""
        for key, value in self.items():
            callback(key, value)

    def listen(self, callback: TableViewListener[T_co]) -> None:
        """Call `callback` in a thread with each change from now on; its errors are logged."""
        check_listener("callback", callback)
        posting = self._pool.in_order(callback, f"listener of the table view of {self.topic()}")
        self._thread.call(lambda: self._inner.listen(posting))

    def for_each_and_listen(self, callback: TableViewListener[T_co]) -> None:
        """Call `callback` in a thread with each key and its value, then with each change."""
        check_listener("callback", callback)
        posting = self._pool.in_order(callback, f"listener of the table view of {self.topic()}")
        self._thread.call(lambda: self._inner.for_each_and_listen(posting))

    def refresh(self) -> None:
        """Return when everything that the topic has now is in the view.

        Raises:
            AlreadyClosedError: The view is, or was, closed.
            ServiceError, ClientError: The broker refused, or did not answer in time.
        """
        self._thread.run(self._inner.refresh())

    def close(self) -> None:
        """Stop updating the view; its contents stay readable. May be called again."""
        self._thread.run(self._close())

    async def _close(self) -> None:
        try:
            await self._inner.close()
        finally:
            self._pool.close()

    def __repr__(self) -> str:
        return f"blocking.{self._inner!r}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    __hash__ = object.__hash__  # by identity: the contents change
