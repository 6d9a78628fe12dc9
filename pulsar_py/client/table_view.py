"""The newest value of each key of a topic, kept fresh (edge)."""

from __future__ import annotations

from typing import Any

from pulsar_py.client.client_context import ClientContext

__all__ = ["TableView", "create_table_view"]


class TableView:
    """A mapping from keys to newest values."""


async def create_table_view(context: ClientContext, topic: str, **options: Any) -> TableView:
    """A table view that holds all that the topic held when it was asked for."""
    raise NotImplementedError
