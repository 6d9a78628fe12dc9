"""`SettingsRefresh`: has loaded topics use changed settings (edge).

Topics are marked when a policy or setting of theirs may have changed, and then brought up to date
one after the other. Where policies can't be read, or a topic can't do what they ask for now, it is
tried again until it succeeds or the topic is gone: no change is lost. What is read for a topic is
read after it was marked, so the newest settings are applied last.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import (
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    PulsarError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import TopicName
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.server.topics.topic_state import TopicState

if TYPE_CHECKING:
    from pulsar_py.server.topics.topic import Topic


logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.5
"""Seconds between two attempts for the topics that failed."""

_MAY_PASS = (MetadataUnavailableError, MetadataOutcomeUnknownError, StoreUnavailableError)


class SettingsRefresh:
    """Topics whose settings may have changed; owned by the `TopicRegistry`."""

    def __init__(
        self, settings_of: Callable[[TopicName], Awaitable[TopicSettings]], tasks: TaskOwner
    ) -> None:
        """`settings_of` gives the settings that a topic should have now."""
        self._settings_of = settings_of
        self._tasks = tasks
        self._marked: dict[Topic, None] = {}
        self._is_running = False

    def mark(self, topics: Iterable[Topic]) -> None:
        """Bring these topics up to date soon."""
        self._marked.update(dict.fromkeys(topics))
        if self._marked and not self._is_running:
            self._is_running = True
            self._tasks.spawn(self._run(), "apply settings")

    async def _run(self) -> None:
        failed: dict[Topic, None] = {}
        try:
            while self._marked or failed:
                if not self._marked:
                    await asyncio.sleep(RETRY_SECONDS)
                    self._marked.update(failed)
                    failed.clear()
                topic = next(iter(self._marked))
                del self._marked[topic]  # it may be marked again meanwhile
                if not await self._bring_up_to_date(topic):
                    failed[topic] = None
        finally:
            self._is_running = False

    async def _bring_up_to_date(self, topic: Topic) -> bool:
        """Whether nothing is left to do."""
        try:
            settings = await self._settings_of(topic.name)
            if topic.state is TopicState.FENCED:
                return False  # it may open again
            if topic.state is TopicState.OPEN and settings != topic.settings:
                await topic.apply_settings(settings)
        except PulsarError as error:
            is_done = not isinstance(error, _MAY_PASS) or topic.state is TopicState.CLOSED
            logger.warning(
                "settings not applied" if is_done else "settings not applied yet",
                extra={"topic": str(topic.name), "error": str(error)},
            )
            return is_done
        return True
