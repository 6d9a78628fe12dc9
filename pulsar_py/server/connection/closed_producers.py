"""ClosedProducers: ids of producers that the broker closed recently (pure).

A client may have SENDs under way when it gets CLOSE_PRODUCER: those are dropped, while a SEND to an
id that never was breaks the protocol. An id is kept until the second keep-alive interval after
ends.

Source: recentlyClosedProducers of ServerCnx in Pulsar's broker.
"""

from __future__ import annotations


class ClosedProducers:
    """The closed ids of one connection. Owned by it; has no sets while there are none."""

    __slots__ = ("_before", "_recent")

    def __init__(self) -> None:
        self._recent: set[int] | None = None  # since the last interval ended
        self._before: set[int] | None = None  # in the interval before

    def __contains__(self, producer_id: int) -> bool:
        return any(ids is not None and producer_id in ids for ids in (self._recent, self._before))

    def add(self, producer_id: int) -> None:
        """The broker closed it now."""
        if self._recent is None:
            self._recent = set()
        self._recent.add(producer_id)

    def discard(self, producer_id: int) -> None:
        """The client uses the id for a new producer."""
        for ids in (self._recent, self._before):
            if ids is not None:
                ids.discard(producer_id)

    def on_interval(self) -> None:
        """A keep-alive interval has passed: ids closed long ago are unknown again."""
        self._before, self._recent = self._recent, None
