"""Makes the error that refuses a second Exclusive consumer; it names the first one (pure).

The text begins as Apache Pulsar's does. What follows is for people who wonder which of their
processes it is: the names and addresses are those in the topic's statistics.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pulsar_py.common.errors import ConsumerBusyError

if TYPE_CHECKING:
    from pulsar_py.server.dispatch.dispatcher import DispatchConsumer

__all__ = ["place_taken"]


def place_taken(holder: DispatchConsumer) -> ConsumerBusyError:
    """The refusal of another consumer beside an Exclusive one.

    Source: AbstractDispatcherSingleActiveConsumer.addConsumer in Pulsar's broker.
    """
    since = datetime.fromtimestamp(holder.connected_since_millis / 1000, UTC)
    return ConsumerBusyError(
        f"Exclusive consumer is already connected: {holder.name!r:.200} from "
        f"{holder.connection.remote_address.removeprefix('/')} since {since:%Y-%m-%dT%H:%M:%SZ}"
    )
