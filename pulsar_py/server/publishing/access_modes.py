"""`AccessModes`: decides which producers are admitted: exclusive ones, epochs, the queue (pure).

Each request and each departure of a producer is a call, which returns the decision; the topic
carries it out: it persists the epoch, closes fenced producers, promotes waiting ones. Producers are
opaque tokens here. A topic's epoch is None until it had its first exclusive producer.

A producer that left while it waited keeps its turn, as in Apache Pulsar: when the turn comes, the
epoch moves as if the producer had become exclusive and left at once. The effect of such turns is
summed up in two numbers, so that clients that connect and leave while another produces cost no
memory.

Invariants: an exclusive producer is alone; while no producer is admitted, none waits and no turn is
left.

Source: ProducerAccessMode in PulsarApi.proto; PIP-68.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec import Struct, field

from pulsar_py.common.errors import ProducerBusyError, ProducerFencedError, ServiceError
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode

TOPIC_EPOCH_PROPERTY = "pulsar.topic.epoch"
MAX_EPOCH = 2**62
"""The largest that a producer may name: epochs rise by one, and have to stay in Java's long."""

T = TypeVar("T", bound=Hashable)


class Admitted(Struct, frozen=True):
    """The outcome for a shared producer, which is admitted."""


class Exclusive(Struct, frozen=True):
    """The outcome for a producer that is exclusive once `topic_epoch` is persisted."""

    topic_epoch: int


class Waiting(Struct, frozen=True):
    """The outcome for a producer in the queue, which the `leave` of others promotes."""


class Refused(Struct, frozen=True):
    """The outcome for a producer that is not admitted."""

    error: ServiceError


class Decision(Struct, Generic[T], frozen=True):
    """An outcome; the producers in `fenced`, admitted or waiting, were removed for it."""

    outcome: Admitted | Exclusive | Waiting | Refused
    fenced: tuple[T, ...] = ()


class _TurnsGone(Struct, frozen=True):
    """The effect of the turns of departed producers on the topic's epoch, in order.

    A turn without an epoch adds one, a turn with one raises the epoch to it. Any sequence of these
    is `max(epoch + added, least)`, where a topic without an epoch counts as -1.
    """

    added: int = 0
    least: int = -1

    @classmethod
    def one(cls, topic_epoch: int | None) -> _TurnsGone:
        """The turn of a producer that sent this epoch."""
        return cls(added=1) if topic_epoch is None else cls(least=topic_epoch)

    def then(self, later: _TurnsGone) -> _TurnsGone:
        """The effect of these turns followed by others."""
        least = self.least + later.added if self.least >= 0 else -1
        return _TurnsGone(self.added + later.added, max(least, later.least))

    def epoch_after(self, epoch: int | None) -> int | None:
        """The topic's epoch after all these turns."""
        after = max((-1 if epoch is None else epoch) + self.added, self.least)
        return None if after < 0 else after


class _Waiter(Struct, Generic[T]):
    """A producer in the queue; `gone_ahead` are the turns of departed ones before it."""

    producer: T
    topic_epoch: int | None
    gone_ahead: _TurnsGone = field(default_factory=_TurnsGone)


class AccessModes(Generic[T]):
    """The access modes of one topic's producers."""

    def __init__(self, topic_epoch: int | None) -> None:
        self.topic_epoch = topic_epoch
        self.exclusive: T | None = None
        self.shared: dict[T, None] = {}  # in order of admission
        self._queue: deque[_Waiter[T]] = deque()  # those that wait for exclusive access
        self._gone_last = _TurnsGone()  # turns of departed ones after the last of the queue

    @property
    def waiting(self) -> tuple[T, ...]:
        """Producers that wait for exclusive access, the next one first."""
        return tuple(each.producer for each in self._queue)

    def check(self) -> None:
        """Assert what always holds."""
        assert self.exclusive is None or not self.shared
        is_used = self.exclusive is not None or bool(self.shared)
        assert is_used or (not self._queue and self._gone_last == _TurnsGone())

    def request(  # noqa: PLR0911 - a kind of answer each
        self,
        producer: T,
        mode: ProducerAccessMode.ValueType,
        topic_epoch: int | None,
        *,
        name_of_exclusive: str = "",
    ) -> Decision[T]:
        """Decide about a new producer; `topic_epoch` is the one it had before, if any."""
        if topic_epoch is not None and topic_epoch > MAX_EPOCH:
            text = f"Topic epoch {topic_epoch} was given by no broker"
            return Decision(Refused(ProducerFencedError(text)))
        is_taken = self.exclusive is not None or bool(self._queue)
        is_free = not is_taken and not self.shared
        if mode == ProducerAccessMode.Shared:
            if is_taken:
                text = f"Topic has an existing exclusive producer: {name_of_exclusive}"
                return Decision(Refused(ProducerBusyError(text)))
            self.shared[producer] = None
            return Decision(Admitted())
        if mode == ProducerAccessMode.ExclusiveWithFencing:
            fenced = self._throw_out_all()
            return Decision(self._become_exclusive(producer, topic_epoch), fenced)
        if is_free:
            return Decision(self._become_exclusive(producer, topic_epoch))
        if mode == ProducerAccessMode.WaitForExclusive:
            self._queue.append(_Waiter(producer, topic_epoch, self._gone_last))
            self._gone_last = _TurnsGone()
            return Decision(Waiting())
        text = (
            f"Topic has an existing exclusive producer: {name_of_exclusive}"
            if is_taken
            else "Topic has existing shared producers"
        )
        return Decision(Refused(ProducerFencedError(text)))

    def leave(self, producer: T) -> T | None:
        """Remove a producer; returns the waiting one that has to be promoted now, if any.

        This also moves `topic_epoch` by the turns of producers that left the queue before that one.
        """
        for index, waiter in enumerate(self._queue):
            if waiter.producer == producer:
                self._leave_queue(index)
                return None  # it was neither admitted nor waiting, so nothing changes
        if producer == self.exclusive:
            self.exclusive = None
        self.shared.pop(producer, None)
        if self.exclusive is not None or self.shared:
            return None
        if self._queue:
            following = self._queue.popleft()
            self.topic_epoch = following.gone_ahead.epoch_after(self.topic_epoch)
            return following.producer
        self.topic_epoch = self._gone_last.epoch_after(self.topic_epoch)
        self._gone_last = _TurnsGone()
        return None

    def _leave_queue(self, index: int) -> None:
        """Keep the turn of a waiting producer that has left."""
        waiter = self._queue[index]
        del self._queue[index]
        gone = waiter.gone_ahead.then(_TurnsGone.one(waiter.topic_epoch))
        if index < len(self._queue):
            following = self._queue[index]
            following.gone_ahead = gone.then(following.gone_ahead)
        else:
            self._gone_last = gone.then(self._gone_last)

    def promote(self, producer: T, topic_epoch: int | None) -> Exclusive | Refused:
        """Make the producer that `leave` returned exclusive."""
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
        """Remove all producers and all turns."""
        fenced = (*self.shared, *self.waiting)
        if self.exclusive is not None:
            fenced = (self.exclusive, *fenced)
        self.exclusive = None
        self.shared.clear()
        self._queue.clear()
        self._gone_last = _TurnsGone()
        return fenced
