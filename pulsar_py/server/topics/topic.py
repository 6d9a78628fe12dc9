"""What persistent and non-persistent topics share: producers, access modes, limits, fencing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.server.topics.producer import Producer
from pulsar_py.server.topics.requests import ProducerGrant, ProducerRequest, SubscribeRequest

if TYPE_CHECKING:
    from pulsar_py.server.topics.consumer import Consumer


class Topic(ABC):
    """A topic that is loaded; owned by the `TopicRegistry`."""

    name: TopicName
    producers: Mapping[str, Producer]

    async def check_producer_allowed(self, request: ProducerRequest) -> None:
        """Backlog quota, then encryption: what PRODUCER checks before the schema.

        Raises:
            ProducerBlockedQuotaExceededError: Policy `producer_request_hold`.
            ProducerBlockedQuotaExceededExceptionError: Policy `producer_exception`.
            ServiceMetadataError: The topic requires encryption and the producer does not encrypt.
        """
        raise NotImplementedError

    async def add_producer(self, request: ProducerRequest) -> ProducerGrant:
        """Create the initial subscription if one is asked for, then take in the producer.

        Raises:
            ProducerBusyError: The name is taken, an exclusive producer is there, or too many are.
            ProducerFencedError: Exclusive access is refused.
            TopicTerminatedError, TopicFencedError, NotAllowedError
        """
        raise NotImplementedError

    @abstractmethod
    async def subscribe(self, request: SubscribeRequest) -> Consumer:
        """Add a consumer, with its subscription if that is new and may be created.

        Raises:
            SubscriptionNotFoundError, ConsumerBusyError, NotAllowedError, NamingError,
            TopicFencedError, ConsumerAssignError
        """

    @abstractmethod
    async def close(self, *, disconnect_clients: bool = True) -> None:
        """Unload: fence, tell the clients, write everything down."""

    @abstractmethod
    async def delete(self, *, force: bool = False) -> None:
        """Delete for good.

        Raises:
            TopicBusyError: Clients are connected and it is not forced.
            TopicFencedError: It is closing already.
        """

    @abstractmethod
    async def terminate(self) -> Position:
        """End the topic; returns the last position.

        Raises:
            NotAllowedError: A non-persistent topic.
        """

    @abstractmethod
    def last_message_position(self) -> Position:
        """Position of the last message, `EARLIEST` when there is none.

        Raises:
            UnknownServiceError: A non-persistent topic.
        """
