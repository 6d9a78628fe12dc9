"""`Client.subscribe`: which kind of consumer a topic, list or pattern needs (edge)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pulsar_py.client.client_context import ClientContext

if TYPE_CHECKING:
    from pulsar_py.client.consumer import Consumer
    from pulsar_py.client.multi_topics_consumer import MultiTopicsConsumer

__all__ = ["subscribe"]


async def subscribe(
    context: ClientContext,
    topic: str | Sequence[str] | re.Pattern[str],
    subscription_name: str,
    **options: Any,  # Any: the fields of ConsumerConfig
) -> Consumer | MultiTopicsConsumer:
    """An open consumer: `Consumer` of a plain topic or one partition, else of many topics."""
    raise NotImplementedError
