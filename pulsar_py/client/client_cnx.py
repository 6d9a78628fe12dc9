"""One connection to a broker. Implementation follows; names stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pulsar_py.client.handlers import ConsumerHandler, ProducerHandler, TopicWatchHandler
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, FeatureFlags
from pulsar_py.wire.versions import Feature

__all__ = ["ClientCnx"]

Buffer = bytes | bytearray | memoryview


class ClientCnx:
    """One connection to a broker, shaken hands. Owned by the ConnectionPool, shared by handlers."""

    remote_address: str
    """`host:port` of the broker; for logs and errors."""
    is_connected: bool
    """Whether the handshake is done and the connection is not closed."""
    protocol_version: int
    """What both sides go by."""
    max_message_size: int
    """Bytes of metadata and payload that the broker takes in one entry."""
    feature_flags: FeatureFlags
    """What the broker announced."""
    is_writable: bool
    """False while the socket's buffer is full; `drain` waits for the end of that."""

    def supports(self, feature: Feature) -> bool:
        """Whether broker and client both know the feature."""
        raise NotImplementedError

    def next_request_id(self) -> int:
        """A request id that no other request of this client has."""
        raise NotImplementedError

    def send(self, frame: bytes) -> None:
        """Queue one frame; dropped without a word if the connection is closed."""
        raise NotImplementedError

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Queue parts of frames; one `writelines` a loop tick carries all that is queued."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Return once `is_writable`, or the connection is closed."""
        raise NotImplementedError

    async def request(
        self,
        request_id: int,
        frame: bytes,
        *,
        timeout_seconds: float | None = None,
        subject: str = "",
    ) -> BaseCommand:
        """Send a command that has an answer; returns it.

        Args:
            request_id: What the command carries; of `next_request_id`.
            frame: The command.
            timeout_seconds: None for the client's operation timeout.
            subject: What errors name, such as the topic.

        Raises:
            ServiceError: The broker answered with an error.
            ClientTimeoutError: No answer in time; one that comes later is dropped.
            ConnectionClosedError: The connection was lost, or is closed already.
            RemoteProtocolError: The answer is not one to this command; the connection is closed.
        """
        raise NotImplementedError

    async def request_producer(
        self,
        request_id: int,
        frame: bytes,
        *,
        timeout_seconds: float | None = None,
        subject: str = "",
        on_queued: Callable[[], None] | None = None,
    ) -> BaseCommand:
        """Register a producer; returns the PRODUCER_SUCCESS that says it is ready.

        One that waits for exclusive access (`producer_ready` false) is told so by `on_queued`, and
        from there on the wait has no time limit. Raises as `request`.
        """
        raise NotImplementedError

    def register_producer(self, producer_id: int, handler: ProducerHandler) -> None:
        """Hand the producer's receipts and news to `handler`; call it before PRODUCER is sent."""
        raise NotImplementedError

    def unregister_producer(self, producer_id: int) -> None:
        """No more calls for that producer; unknown ids are fine."""
        raise NotImplementedError

    def register_consumer(self, consumer_id: int, handler: ConsumerHandler) -> None:
        """Hand the consumer's messages and news to `handler`; call it before SUBSCRIBE is sent."""
        raise NotImplementedError

    def unregister_consumer(self, consumer_id: int) -> None:
        """No more calls for that consumer; unknown ids are fine."""
        raise NotImplementedError

    def register_topic_watcher(self, watcher_id: int, handler: TopicWatchHandler) -> None:
        """Hand news of topics to `handler`."""
        raise NotImplementedError

    def unregister_topic_watcher(self, watcher_id: int) -> None:
        """No more news; unknown ids are fine."""
        raise NotImplementedError

    def close(self, reason: str = "closed") -> None:
        """Close at once; handlers get `on_connection_closed`, requests fail."""
        raise NotImplementedError
