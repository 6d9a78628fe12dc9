"""Logs once a subscription that delays are shorter than the tick that they are rounded to.

A delay below `delayedDeliveryTickTimeMillis` is kept, and may take up to a tick longer: who tries
200 ms with the default of 1 s sees a delay of up to 1.2 s, and looks for it in the client.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pulsar_py.wire.entry_summary import EntrySummary

if TYPE_CHECKING:
    from pulsar_py.server.dispatch.dispatcher import DispatchHost

__all__ = ["ShortDelayNotice"]

logger = logging.getLogger(__name__)


class ShortDelayNotice:
    """Owned by the dispatcher of a Shared or Key_Shared subscription."""

    def __init__(self, host: DispatchHost) -> None:
        self._host = host
        # Once, since it would hold for each further message.
        self._was_given = False

    def on_delayed(self, summary: EntrySummary) -> None:
        """An entry is held back."""
        if self._was_given:
            return
        host = self._host
        delay_millis = summary.deliver_at_time_millis - summary.publish_time_millis
        tick_millis = host.settings.delayed_delivery_tick_millis
        if delay_millis >= tick_millis:
            return
        self._was_given = True
        logger.warning(
            "%s of %s: a delay of %d ms is below delayedDeliveryTickTimeMillis=%d, so it may take"
            " that much longer; a smaller setting makes delays finer",
            host.name,
            host.topic_name,
            delay_millis,
            tick_millis,
            extra={"topic": host.topic_name, "subscription": host.name},
        )
