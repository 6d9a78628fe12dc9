"""The client: where producers, consumers, readers and table views come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from pulsar_py.client.client_context import ClientContext
from pulsar_py.client.service_url import ServiceUrlProvider
from pulsar_py.common.message_id import MessageId

__all__ = ["Client"]


class Client:
    """A client of one cluster; use it with `async with`, or call `close`."""

    def __init__(
        self,
        service_url: str | ServiceUrlProvider,
        authentication: Any = None,
        **options: Any,
    ) -> None:
        """`options` are the fields of `ClientConfig`."""
        raise NotImplementedError

    @property
    def context(self) -> ClientContext:
        """What the client's parts share; for parts of this package only."""
        raise NotImplementedError

    async def create_producer(self, topic: str, **options: Any) -> Any:
        """Calls P2's `producer.create_producer(context, topic, **options)`."""
        raise NotImplementedError

    async def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        **options: Any,
    ) -> Any:
        """Calls P4's `subscribe.subscribe(context, topic, subscription_name, **options)`."""
        raise NotImplementedError

    async def create_reader(self, topic: str, start_message_id: MessageId, **options: Any) -> Any:
        """Calls P4's `reader.create_reader(context, topic, start_message_id, **options)`."""
        raise NotImplementedError

    async def create_table_view(self, topic: str, **options: Any) -> Any:
        """Calls P4's `table_view.create_table_view(context, topic, **options)`."""
        raise NotImplementedError

    async def get_topic_partitions(self, topic: str) -> list[str]:
        """The names of a topic's partitions; its own name where it has none."""
        raise NotImplementedError

    async def update_service_url(
        self,
        service_url: str,
        *,
        authentication: Any = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        """Close all connections; producers and consumers come back at the new URL."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close what the client made, then its connections. May be called again."""
        raise NotImplementedError

    def shutdown(self) -> None:
        """Drop everything at once, without a word to brokers."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
