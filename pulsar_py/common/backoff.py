"""Computes delays between attempts: they double up to a limit, with a random part (pure).

Chance comes in as a `random.Random`, time as `now`. A backoff may have a deadline for the
first success (`mandatory_stop_seconds`): the delay that would pass it is cut so that one attempt
happens just before.

Source: Backoff and BackoffBuilder in Pulsar's client.
"""

from __future__ import annotations

from random import Random
from typing import Final

DEFAULT_INITIAL_SECONDS: Final = 0.1
DEFAULT_MAXIMUM_SECONDS: Final = 60.0

_JITTER = 0.1  # a delay is shortened by up to this part of it


class Backoff:
    """The delays between the attempts at one operation.

    They begin with `initial_seconds` and double up to `maximum_seconds`; the constructor raises
    ValueError unless 0 < `initial_seconds` <= `maximum_seconds`.
    """

    __slots__ = (
        "_chance",
        "_first_at",
        "_initial_seconds",
        "_is_mandatory_stop_made",
        "_mandatory_stop_seconds",
        "_maximum_seconds",
        "_next_seconds",
    )

    def __init__(
        self,
        chance: Random,
        *,
        initial_seconds: float = DEFAULT_INITIAL_SECONDS,
        maximum_seconds: float = DEFAULT_MAXIMUM_SECONDS,
        mandatory_stop_seconds: float | None = None,
    ) -> None:
        if not 0 < initial_seconds <= maximum_seconds:
            raise ValueError(
                f"delays of {initial_seconds} to {maximum_seconds} seconds: "
                "expected 0 < initial <= maximum"
            )
        self._chance = chance
        self._initial_seconds = initial_seconds
        self._maximum_seconds = maximum_seconds
        self._mandatory_stop_seconds = mandatory_stop_seconds
        # The delay that comes next, before its random part is taken off.
        self._next_seconds = initial_seconds
        # When the first delay was asked for; None before.
        self._first_at: float | None = None
        self._is_mandatory_stop_made = False

    def next_delay(self, now: float) -> float:
        """Seconds to wait before the next attempt; chance takes off up to a tenth."""
        current = self._next_seconds
        self._next_seconds = min(current * 2, self._maximum_seconds)
        if self._mandatory_stop_seconds is not None and not self._is_mandatory_stop_made:
            current = self._cut(current, now, self._mandatory_stop_seconds)
        return current * (1 - _JITTER * self._chance.random())

    def _cut(self, current: float, now: float, mandatory_stop_seconds: float) -> float:
        if self._first_at is None:
            self._first_at = now
        elapsed = now - self._first_at
        if elapsed + current <= mandatory_stop_seconds:
            return current
        self._is_mandatory_stop_made = True
        return max(self._initial_seconds, mandatory_stop_seconds - elapsed)

    @property
    def is_mandatory_stop_made(self) -> bool:
        """Whether the last attempt before the deadline has been given out."""
        return self._is_mandatory_stop_made

    def reset(self) -> None:
        """Start again with the initial delay, after a success."""
        self._next_seconds = self._initial_seconds
        self._first_at = None
        self._is_mandatory_stop_made = False
