"""What a consumer does with its schema: SUBSCRIBE, values, and versions that it does not know.

A thin seam: without a schema there is nothing to do, and values are bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pulsar_py.client.message import ValueDecoder
from pulsar_py.proto.PulsarApi_pb2 import Schema as WireSchema

if TYPE_CHECKING:
    from pulsar_py.client.client_context import ClientContext

__all__ = ["ConsumerSchema"]


class ConsumerSchema:
    """The schema of one consumer; owned by it."""

    def __init__(self, context: ClientContext, topic: str, schema: Any) -> None:
        """`schema` None: values are bytes. Any: a Schema of any value type."""
        del context, topic
        self._schema = schema
        # Reads values; None: they are the payload.
        self.decoder: ValueDecoder | None = None
        # Tells whether a version has to be fetched first; None: none ever has.
        self.is_version_missing: Callable[[bytes], bool] | None = None

    def to_wire(self) -> WireSchema | None:
        """As SUBSCRIBE carries it; None for bytes."""
        return None

    async def load(self, version: bytes) -> None:
        """Fetch that version of the topic's schema."""
