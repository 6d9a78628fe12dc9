"""`BookieHealth`: decides which bookies to avoid, by their last answers and failures (pure).

    failing       the last request failed; any answer ends this state
    quarantined   many requests failed within an interval: new ensembles avoid the bookie for a time
    steady        the bookie has been registered, and not failing, for a while

All requests that one event ends (a lost connection) count as one failure. A failing bookie is
probed from time to time; the pause doubles with each probe that fails, and if it fails again soon.

Source: bookieHealthCheck of BookKeeperClient in Apache BookKeeper, which looks once an interval.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

STEADY_SECONDS: Final = 60.0
"""The time after which a bookie that registered, or answered again, counts as steady."""
FIRST_PAUSE_SECONDS: Final = 0.5
MAX_PAUSE_SECONDS: Final = 5.0
"""The pause between two probes of a failing bookie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineSettings:
    """The settings of quarantine."""

    is_enabled: bool = True
    """`bookkeeperClientHealthCheckEnabled`."""
    interval_seconds: float = 60.0
    """`bookkeeperClientHealthCheckIntervalSeconds`."""
    error_threshold_per_interval: int = 5
    """`bookkeeperClientHealthCheckErrorThresholdPerInterval`."""
    quarantine_seconds: float = 1800.0
    """`bookkeeperClientHealthCheckQuarantineTimeInSeconds`."""


class _Bookie:
    __slots__ = (
        "due_seconds",
        "failures_count",
        "is_failing",
        "listed_seconds",
        "pause_seconds",
        "quarantined_until",
        "since_seconds",
        "window_seconds",
    )

    def __init__(self) -> None:
        self.is_failing = False
        self.since_seconds = float("-inf")  # when it was last back from a failure
        self.listed_seconds: float | None = None  # when it registered; None while it is not
        self.failures_count = 0  # in the interval that began at `window_seconds`
        self.window_seconds = float("-inf")
        self.quarantined_until = float("-inf")
        self.pause_seconds = 0.0
        self.due_seconds = float("-inf")  # when a failing one is to be asked


class BookieHealth:
    """The states of all bookies of one store."""

    def __init__(self, settings: QuarantineSettings | None = None) -> None:
        self._settings = settings or QuarantineSettings()
        self._bookies: dict[str, _Bookie] = {}
        self._was_listed = False
        self.quarantines_count = 0
        """The number of quarantines since the start."""

    def _bookie(self, bookie_id: str) -> _Bookie:
        bookie = self._bookies.get(bookie_id)
        if bookie is None:
            bookie = self._bookies[bookie_id] = _Bookie()
        return bookie

    def on_listed(self, writable: Collection[str], now: float) -> None:
        """Take the list of writable bookies; those of the first list count as steady."""
        for bookie_id in writable:
            bookie = self._bookie(bookie_id)
            if bookie.listed_seconds is None:
                bookie.listed_seconds = now if self._was_listed else float("-inf")
        for bookie_id, bookie in self._bookies.items():
            if bookie_id not in writable:
                bookie.listed_seconds = None
        self._was_listed = True

    def on_answered(self, bookie_id: str, now: float) -> bool:
        """Note an answer; returns whether the bookie was failing before."""
        bookie = self._bookie(bookie_id)
        if not bookie.is_failing:
            return False
        bookie.is_failing = False
        bookie.since_seconds = now
        return True

    def on_failed(self, bookie_id: str, now: float) -> bool:
        """Note a failure; returns whether the bookie was not failing before."""
        bookie = self._bookie(bookie_id)
        self._count(bookie, now)
        is_news = not bookie.is_failing
        if is_news or now >= bookie.due_seconds:
            is_again = not is_news or now - bookie.since_seconds < STEADY_SECONDS
            doubled = min(2 * bookie.pause_seconds, MAX_PAUSE_SECONDS)
            bookie.pause_seconds = max(doubled, FIRST_PAUSE_SECONDS) if is_again else (
                FIRST_PAUSE_SECONDS
            )  # fmt: skip
            bookie.due_seconds = now + bookie.pause_seconds
        bookie.is_failing = True
        return is_news

    def on_slow(self, bookie_id: str, now: float) -> None:
        """Note that too many bytes wait for the bookie: a failure, although it may be answering."""
        self._count(self._bookie(bookie_id), now)

    def _count(self, bookie: _Bookie, now: float) -> None:
        settings = self._settings
        if now - bookie.window_seconds >= settings.interval_seconds:
            bookie.window_seconds, bookie.failures_count = now, 0
        bookie.failures_count += 1
        if not settings.is_enabled or bookie.quarantined_until > now:
            return
        if bookie.failures_count >= settings.error_threshold_per_interval:
            bookie.quarantined_until = now + settings.quarantine_seconds
            self.quarantines_count += 1

    def is_failing(self, bookie_id: str) -> bool:
        """Whether its last request failed."""
        bookie = self._bookies.get(bookie_id)
        return bookie is not None and bookie.is_failing

    def is_quarantined(self, bookie_id: str, now: float) -> bool:
        """Whether new ensembles avoid the bookie."""
        bookie = self._bookies.get(bookie_id)
        return bookie is not None and bookie.quarantined_until > now

    def is_steady(self, bookie_id: str, now: float) -> bool:
        """Whether the bookie has been registered and not failing for `STEADY_SECONDS`."""
        bookie = self._bookies.get(bookie_id)
        if bookie is None or bookie.is_failing or bookie.listed_seconds is None:
            return False
        return now - max(bookie.listed_seconds, bookie.since_seconds) >= STEADY_SECONDS

    def to_be_asked(self) -> dict[str, float]:
        """The time of the next probe of each failing bookie."""
        return {
            bookie_id: bookie.due_seconds
            for bookie_id, bookie in self._bookies.items()
            if bookie.is_failing
        }
