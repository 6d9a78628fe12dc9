"""Computes the delay before a redelivery from the number of earlier ones (pure).

Source: RedeliveryBackoff and MultiplierRedeliveryBackoff in Pulsar's Java client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pulsar_py.client.messages.option_checks import check_options
from pulsar_py.common.errors import InvalidConfigurationError

__all__ = ["MultiplierRedeliveryBackoff", "RedeliveryBackoff"]


class RedeliveryBackoff(Protocol):
    """Chooses delays; anything with this method will do."""

    def next_delay_millis(self, redelivery_count: int) -> int:
        """Milliseconds to wait, for a message that was delivered again that often; 0 at first."""


@dataclass(frozen=True, slots=True)
class MultiplierRedeliveryBackoff:
    """Delays that grow by a factor, between two bounds."""

    min_delay_millis: int = 1000
    """The first delay."""
    max_delay_millis: int = 60_000
    """The longest delay."""
    multiplier: float = 2.0
    """Factor between one delay and the next."""

    def __post_init__(self) -> None:
        check_options(self)
        if not 0 < self.min_delay_millis <= self.max_delay_millis:
            raise InvalidConfigurationError(
                f"min_delay_millis: {self.min_delay_millis} is not within "
                f"1..max_delay_millis ({self.max_delay_millis})"
            )
        if self.multiplier < 1:
            raise InvalidConfigurationError(f"multiplier: {self.multiplier} is below 1")

    def next_delay_millis(self, redelivery_count: int) -> int:
        """`min_delay_millis * multiplier ** redelivery_count`, at most `max_delay_millis`."""
        delay = float(self.min_delay_millis)
        for _ in range(redelivery_count):
            delay *= self.multiplier
            if delay >= self.max_delay_millis or self.multiplier == 1:
                break
        return min(int(delay), self.max_delay_millis)
