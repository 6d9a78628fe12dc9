"""Users' classes as tests of hooks name them: `tests.hook_classes.Named`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck
from pulsar_py.server.hooks import (
    BrokerInterceptor,
    ConsumerInfo,
    EntryFilter,
    FilterContext,
    FilteredEntry,
    FilterResult,
    ProducerInfo,
)


class ByPayload(EntryFilter):
    """Rejects payloads that begin with `no`, puts off those with `later` once, fails on `bad`."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.contexts: list[FilterContext] = []
        self.is_closed = False

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        key = (entry.ledger_id, entry.entry_id)
        is_new = key not in self.seen
        self.seen.append(key)
        self.contexts.append(context)
        if entry.payload.startswith(b"bad"):
            raise RuntimeError("a faulty filter")
        if entry.payload.startswith(b"no"):
            return FilterResult.REJECT
        if entry.payload.startswith(b"later") and is_new:
            return FilterResult.RESCHEDULE
        return FilterResult.ACCEPT

    def close(self) -> None:
        self.is_closed = True


class NothingPasses(EntryFilter):
    """Rejects everything."""

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        del entry, context
        return FilterResult.REJECT


class Numbers(EntryFilter):
    """Returns the number of REJECT, which is no result."""

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        del entry, context
        return FilterResult.REJECT.value  # type: ignore[no-any-return]


class OddPasses(EntryFilter):
    """Rejects what has an even `n` among its properties."""

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        del context
        number = next(int(pair.value) for pair in entry.metadata.properties if pair.key == "n")
        return FilterResult.ACCEPT if number % 2 else FilterResult.REJECT


ENDS_WAITING = threading.Event()
"""Lets `Waiting` and `WaitingToo` return."""


class Waiting(EntryFilter):
    """Returns when it is told to."""

    def filter_entry(self, entry: FilteredEntry, context: FilterContext) -> FilterResult:
        del entry, context
        ENDS_WAITING.wait(30)
        return FilterResult.ACCEPT

    def close(self) -> None:
        ENDS_WAITING.wait(30)


class WaitingToo(BrokerInterceptor):
    """Returns when it is told to."""

    def close(self) -> None:
        ENDS_WAITING.wait(30)


class NoFilter:
    """No filter at all."""


class Recording(BrokerInterceptor):
    """Notes each call, by its name; `text()` has what tests compare."""

    instances: ClassVar[list[Recording]] = []

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        Recording.instances.append(self)

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [args for call, args in self.calls if call == name]


def _note(name: str) -> Callable[..., None]:
    def note(self: Recording, *args: Any) -> None:
        if name == "on_pulsar_command":  # the broker uses commands again
            args = (BaseCommand.Type.Name(args[0].type), args[1])
        self.calls.append((name, args))

    return note


for _name in [each for each in vars(BrokerInterceptor) if not each.startswith("_")]:
    setattr(Recording, _name, _note(_name))


class OnlyAcked(BrokerInterceptor):
    """Listens to acknowledgements alone."""

    def __init__(self) -> None:
        self.acknowledged: list[CommandAck] = []

    def message_acked(self, consumer: ConsumerInfo, command: CommandAck) -> None:
        del consumer
        self.acknowledged.append(command)


class Failing(BrokerInterceptor):
    """Fails in two of its methods."""

    def on_message_publish(self, producer: ProducerInfo, headers_and_payload: bytes) -> None:
        raise RuntimeError("a faulty interceptor")

    def consumer_created(self, consumer: ConsumerInfo) -> None:
        raise RuntimeError("a faulty interceptor")
