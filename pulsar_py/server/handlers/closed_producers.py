"""`ClosedProducers`: ids of producers that the broker closed recently (pure).

A client may have SENDs under way when it gets CLOSE_PRODUCER: those are dropped, while a SEND to an
id that never existed breaks the protocol. An id is kept until the end of the keep-alive interval
after the one in which the broker closed it.

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
        """Add the id of a producer that the broker closes now."""
        if self._recent is None:
            self._recent = set()
        self._recent.add(producer_id)

    def discard(self, producer_id: int) -> None:
        """Remove an id that the client uses for a new producer."""
        for ids in (self._recent, self._before):
            if ids is not None:
                ids.discard(producer_id)

    def on_interval(self) -> None:
        """Note the end of a keep-alive interval; ids closed before it began are removed."""
        self._before, self._recent = self._recent, None
