"""Who may produce: exclusive producers, topic epochs and the queue of those that wait.

Pure. `AccessModes` is told of each request and each departure and answers what has to happen; the
topic carries it out: it persists the epoch, closes whom was fenced, promotes whom waited. Producers
are opaque tokens here. A topic's epoch is None until it had its first exclusive producer.

Invariants: an exclusive producer is alone; nobody waits while nobody produces.

Source: ProducerAccessMode in PulsarApi.proto; PIP-68.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pulsar_py.common.errors import ProducerBusyError, ProducerFencedError, ServiceError
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode

TOPIC_EPOCH_PROPERTY = "pulsar.topic.epoch"

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A shared producer, added as it is."""


@dataclass(frozen=True, slots=True)
class Exclusive:
    """The exclusive producer from now on; valid once `topic_epoch` is persisted."""

    topic_epoch: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """In the queue; `leave` of others promotes it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Not taken in."""

    error: ServiceError


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """An outcome, after those in `fenced` were thrown out (connected and waiting ones)."""

    outcome: Admitted | Exclusive | Waiting | Refused
    fenced: tuple[T, ...] = ()


class AccessModes(Generic[T]):
    """The producers of one topic, as far as access modes go."""

    def __init__(self, topic_epoch: int | None) -> None:
        self.topic_epoch = topic_epoch
        self.exclusive: T | None = None
        self.shared: set[T] = set()
        self.waiting: deque[T] = deque()

    def check(self) -> None:
        """Assert what always holds."""
        assert self.exclusive is None or not self.shared
        assert not self.waiting or self.exclusive is not None or self.shared

    def request(
        self,
        producer: T,
        mode: ProducerAccessMode.ValueType,
        topic_epoch: int | None,
        *,
        name_of_exclusive: str = "",
    ) -> Decision[T]:
        """A producer asks to be let in, with the topic epoch it had before, if any."""
        is_taken = self.exclusive is not None or bool(self.waiting)
        is_free = not is_taken and not self.shared
        if mode == ProducerAccessMode.Shared:
            if is_taken:
                text = f"Topic has an existing exclusive producer: {name_of_exclusive}"
                return Decision(Refused(ProducerBusyError(text)))
            self.shared.add(producer)
            return Decision(Admitted())
        if mode == ProducerAccessMode.ExclusiveWithFencing:
            fenced = self._throw_out_all()
            return Decision(self._become_exclusive(producer, topic_epoch), fenced)
        if is_free:
            return Decision(self._become_exclusive(producer, topic_epoch))
        if mode == ProducerAccessMode.WaitForExclusive:
            self.waiting.append(producer)
            return Decision(Waiting())
        text = (
            f"Topic has an existing exclusive producer: {name_of_exclusive}"
            if is_taken
            else "Topic has existing shared producers"
        )
        return Decision(Refused(ProducerFencedError(text)))

    def leave(self, producer: T) -> T | None:
        """A producer is gone; returns the waiting one that is to be promoted now, if any."""
        if producer in self.waiting:
            self.waiting.remove(producer)
            return None
        if producer == self.exclusive:
            self.exclusive = None
        self.shared.discard(producer)
        if self.waiting and self.exclusive is None and not self.shared:
            return self.waiting.popleft()
        return None

    def promote(self, producer: T, topic_epoch: int | None) -> Exclusive | Refused:
        """Make the one that `leave` returned exclusive."""
        assert self.exclusive is None
        assert not self.shared
        return self._become_exclusive(producer, topic_epoch)

    def _become_exclusive(self, producer: T, topic_epoch: int | None) -> Exclusive | Refused:
        current = self.topic_epoch
        if topic_epoch is not None and current is not None and topic_epoch < current:
            text = f"Topic epoch has already moved. Current epoch: {current}, producer epoch: "
            return Refused(ProducerFencedError(f"{text}{topic_epoch}"))
        if topic_epoch is not None:
            self.topic_epoch = topic_epoch
        else:
            self.topic_epoch = 0 if current is None else current + 1
        self.exclusive = producer
        return Exclusive(self.topic_epoch)

    def _throw_out_all(self) -> tuple[T, ...]:
        fenced = (*self.shared, *self.waiting)
        if self.exclusive is not None:
            fenced = (self.exclusive, *fenced)
        self.exclusive = None
        self.shared.clear()
        self.waiting.clear()
        return fenced
