"""`TopicState`: whether a topic serves, as far as those see it who have topics without their code.

A broker that nobody talks to has no topic, and does not import what topics are made of.
"""

from __future__ import annotations

from enum import Enum, auto


class TopicState(Enum):
    """The state of a topic; `Topic` has the transitions."""

    OPEN = auto()
    FENCED = auto()
    CLOSING = auto()
    CLOSED = auto()
