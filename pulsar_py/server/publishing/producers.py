"""`TopicProducers`: admits the producers of one topic by names, limits and access modes (edge).

`AccessModes` decides; this module does the I/O around the decision (it probes a connection that may
be dead, and stores the epoch) and carries it out. A producer has its name from the moment it is
admitted, before anything is awaited, so that no two get the same.

Source: AbstractTopic.addProducer, incrementTopicEpochIfNeeded in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Protocol

from pulsar_py.common.errors import (
    ManagedLedgerError,
    MetadataError,
    NamingError,
    PersistenceError,
    ProducerBusyError,
    ProducerFencedError,
    ServiceError,
    TopicFencedError,
)
from pulsar_py.common.failures import OnFailure
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.publishing.access_modes import AccessModes, Exclusive, Refused, Waiting
from pulsar_py.server.publishing.producer import (
    Append,
    AppendRun,
    Producer,
    ProducerContext,
    ProducerTopic,
)
from pulsar_py.server.publishing.requests import ProducerGrant, ProducerRequest

logger = logging.getLogger(__name__)

NO_SEQUENCE_ID = -1


class ProducersOwner(ProducerTopic, Protocol):
    """The part of a topic that `TopicProducers` uses."""

    @property
    def settings(self) -> TopicSettings:
        """The effective settings now."""

    @property
    def is_system(self) -> bool:
        """Whether it is a system topic, which has no limits."""

    @property
    def context(self) -> ProducerContext:
        """The parts that all producers share."""

    def takes_producers(self) -> bool:
        """Whether the topic is open."""

    def check_takes_producers(self) -> None:
        """Raise if the topic is not open."""

    def append_function(self) -> Append:
        """The function with which producers append entries."""

    def append_run_function(self, append: Append) -> AppendRun | None:
        """The function that appends a run as `append` does its entries; None if there is none."""

    def last_sequence_id(self, producer_name: str) -> int:
        """The sequence id for PRODUCER_SUCCESS."""

    def on_producer_added(self, producer: Producer) -> None:
        """Called when a producer is admitted."""

    def on_producer_removed(self, producer: Producer) -> None:
        """Called when an admitted producer has left."""

    async def store_topic_epoch(self, topic_epoch: int) -> None:
        """Store the epoch durably; its producer may publish after that."""


class TopicProducers:
    """The producers of one topic, which owns it.

    Invariant: every producer in `by_name` is exclusive or shared in the access modes.
    """

    def __init__(self, owner: ProducersOwner, *, topic_epoch: int | None) -> None:
        self._owner = owner
        self._by_name: dict[str, Producer] = {}
        self._access: AccessModes[Producer] = AccessModes(topic_epoch)
        self.messages_gone_count = 0  # messages of producers that have left
        self.bytes_gone_count = 0

    @property
    def by_name(self) -> Mapping[str, Producer]:
        """Admitted producers; those that wait for exclusive access are not among them."""
        return self._by_name

    @property
    def topic_epoch(self) -> int | None:
        """Number of exclusive producers so far, None before the first."""
        return self._access.topic_epoch

    @property
    def waiting_count(self) -> int:
        """Producers that wait for exclusive access."""
        return len(self._access.waiting)

    async def add(self, request: ProducerRequest) -> ProducerGrant:
        """Admit a producer.

        Raises:
            ProducerBusyError: The name is taken, an exclusive producer is there, or too many are.
            ProducerFencedError: Exclusive access is refused.
            TopicTerminatedError, TopicFencedError: The topic takes no producers.
        """
        owner = self._owner
        name = request.name
        if name is None:
            name = await owner.context.new_producer_name()
        await self._wait_for_name(name, request)
        owner.check_takes_producers()
        self._check_limits(request)
        now_millis = owner.context.clock.wall_time_millis()
        append = owner.append_function()
        producer = Producer(owner, request, name, append, now_millis=now_millis)
        producer.set_append(append, owner.append_run_function(append))
        return await self._let_in(producer)

    async def _let_in(self, producer: Producer) -> ProducerGrant:
        request = producer.request
        exclusive = self._access.exclusive
        decision = self._access.request(
            producer,
            request.access_mode,
            request.topic_epoch,
            name_of_exclusive=exclusive.name if exclusive else "",
        )
        for fenced in decision.fenced:
            self._throw_out(fenced)
        if isinstance(decision.outcome, Refused):
            raise decision.outcome.error
        if isinstance(decision.outcome, Waiting):
            return ProducerGrant(producer, producer.name, NO_SEQUENCE_ID, None, is_ready=False)
        self._by_name[producer.name] = producer
        return await self._grant(producer, decision.outcome)

    async def _grant(self, producer: Producer, outcome: object) -> ProducerGrant:
        if isinstance(outcome, Exclusive):
            with OnFailure(partial(self.remove, producer)):
                await self._owner.store_topic_epoch(outcome.topic_epoch)
            if producer.is_closed or self._by_name.get(producer.name) is not producer:
                self.remove(producer)
                raise TopicFencedError(
                    f"{self._owner.name}: the topic or the producer was closed meanwhile"
                )
        producer.become_ready()
        self._owner.on_producer_added(producer)
        return ProducerGrant(
            producer,
            producer.name,
            self._owner.last_sequence_id(producer.name),
            self.topic_epoch,
            is_ready=True,
        )

    def _throw_out(self, producer: Producer) -> None:
        was_waiting = producer.name not in self._by_name
        producer.fence()
        if self._by_name.get(producer.name) is producer:
            self._drop(producer)
        elif was_waiting:
            producer.tell_ready(ProducerFencedError("Fenced out"))

    async def _wait_for_name(self, name: str, request: ProducerRequest) -> None:
        """Return once the name is free; its holder is probed if it may be dead."""
        while (holder := self._by_name.get(name)) is not None:
            is_same = (
                holder.connection is request.connection
                and holder.producer_id == request.producer_id
            )
            if is_same and holder.epoch < request.epoch:
                holder.replace()
                return
            is_other = holder.connection is not request.connection
            if not is_other or await holder.connection.check_liveness():
                topic = self._owner.name
                raise NamingError(
                    f"Producer with name '{name}' is already connected to topic '{topic}'"
                )
            if self._by_name.get(name) is holder:
                holder.on_connection_lost()

    def _check_limits(self, request: ProducerRequest) -> None:
        if self._owner.is_system:
            return
        limit = self._owner.settings.max_producers
        if 0 < limit <= len(self._by_name):
            raise ProducerBusyError(f"Topic '{self._owner.name}' reached max producers limit")
        limit = self._owner.settings.max_same_address_producers
        if limit <= 0:
            return
        host = host_of(request.connection.remote_address)
        same = sum(
            host_of(each.connection.remote_address) == host for each in self._by_name.values()
        )
        if same >= limit:
            raise ProducerBusyError(
                f"Topic '{self._owner.name}' reached max same address producers limit"
            )

    def remove(self, producer: Producer) -> None:
        """Remove a producer, which calls this; the next that waits is promoted."""
        self._drop(producer)
        epoch_before = self.topic_epoch
        promoted = self._access.leave(producer)
        if not self._owner.takes_producers():
            return
        if promoted is not None:
            self._promote(promoted)
        elif self.topic_epoch != epoch_before:
            self._owner.context.tasks.spawn(self._store_epoch(), "topic epoch")

    async def _store_epoch(self) -> None:
        """Store the epoch after turns of departed producers have moved it."""
        topic_epoch = self.topic_epoch
        assert topic_epoch is not None, "an epoch only grows"
        try:
            await self._owner.store_topic_epoch(topic_epoch)
        except (ServiceError, MetadataError, ManagedLedgerError) as error:
            logger.warning(
                "topic epoch not stored", extra={"topic": str(self._owner.name)}, exc_info=error
            )

    def _drop(self, producer: Producer) -> None:
        if self._by_name.get(producer.name) is not producer:
            return
        del self._by_name[producer.name]
        self.messages_gone_count += producer.messages_in_count
        self.bytes_gone_count += producer.bytes_in_count
        self._owner.on_producer_removed(producer)

    def _promote(self, producer: Producer) -> None:
        """Make the producer that waited longest exclusive, without an await in between."""
        outcome = self._access.promote(producer, producer.request.topic_epoch)
        if isinstance(outcome, Refused):
            producer.fence()
            producer.tell_ready(outcome.error)
            self.remove(producer)
            return
        self._by_name[producer.name] = producer
        self._owner.context.tasks.spawn(
            self._finish_promotion(producer, outcome), f"promote {producer.name}"
        )

    async def _finish_promotion(self, producer: Producer, outcome: Exclusive) -> None:
        try:
            grant = await self._grant(producer, outcome)
        except (ServiceError, MetadataError, ManagedLedgerError) as error:
            producer.fence()
            producer.tell_ready(
                error if isinstance(error, ServiceError) else PersistenceError(str(error))
            )
        else:
            producer.tell_ready(grant)

    def disconnect_all(self) -> None:
        """Send CLOSE_PRODUCER to all producers, those that wait included."""
        for waiting in list(self._access.waiting):
            waiting.disconnect()
        for producer in list(self._by_name.values()):
            producer.disconnect()

    def set_append(self, append: Append) -> None:
        """Use another function to append entries, after the topic's settings changed."""
        append_run = self._owner.append_run_function(append)
        for producer in (*self._by_name.values(), *self._access.waiting):
            producer.set_append(append, append_run)

    def roll_rates(self, seconds: float) -> None:
        """Start a new window of rates; the last one was this long."""
        for producer in self._by_name.values():
            producer.roll_rates(seconds)


def host_of(remote_address: str) -> str:
    """The host of `/host:port`."""
    return remote_address.lstrip("/").rpartition(":")[0]
