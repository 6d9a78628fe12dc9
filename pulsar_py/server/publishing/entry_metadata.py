"""`EntryStamper`: puts broker entry metadata, with index and broker time, before an entry (pure).

It counts the topic's messages and returns a copy of each entry with the block in front. The index
of an entry is the number of its last message, counted from 0 over the topic's life.

Source: PIP-70; AppendIndexMetadataInterceptor and AppendBrokerTimestampMetadataInterceptor.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata
from pulsar_py.wire.payload import add_broker_entry_metadata

INDEX_INTERCEPTOR = "AppendIndexMetadataInterceptor"
TIMESTAMP_INTERCEPTOR = "AppendBrokerTimestampMetadataInterceptor"


class EntryStamper:
    """Adds broker entry metadata to the entries of one topic."""

    def __init__(self, interceptors: Sequence[str], *, last_index: int = -1) -> None:
        """`interceptors` are class names with or without package; unknown ones do nothing."""
        names = {name.rpartition(".")[2] for name in interceptors}
        self.adds_index = INDEX_INTERCEPTOR in names
        self.adds_timestamp = TIMESTAMP_INTERCEPTOR in names
        self.last_index = last_index  # of the newest message

    @property
    def is_needed(self) -> bool:
        """Whether the settings ask for any broker entry metadata."""
        return self.adds_index or self.adds_timestamp

    def stamp(self, data: bytes, messages_count: int, now_millis: int) -> bytes:
        """The entry with its block in front, in the form that is stored."""
        metadata = BrokerEntryMetadata()
        if self.adds_timestamp:
            metadata.broker_timestamp = now_millis
        if self.adds_index:
            self.last_index += max(messages_count, 1)
            metadata.index = self.last_index
        return add_broker_entry_metadata(data, metadata)
