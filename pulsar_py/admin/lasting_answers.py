"""Ends an answer that is made while it is sent, such as a backup, once its caller may not have it.

Credentials may expire or be revoked meanwhile, and rights be withdrawn. So the request is checked
again as if it had just come, when a part is due and the last check is `CHECK_SECONDS` old.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from pulsar_py.admin.http_messages import AnswerEndedError, HttpError
from pulsar_py.common.errors import AuthenticationError, MetadataError
from pulsar_py.common.loops.clock import Clock

logger = logging.getLogger(__name__)

__all__ = ["CHECK_SECONDS", "while_allowed"]

CHECK_SECONDS: Final = 0.5
"""The time between two checks of a request whose answer is being sent."""


async def while_allowed(
    stream: AsyncGenerator[bytes, None], check: Callable[[], Awaitable[None]], clock: Clock
) -> AsyncGenerator[bytes, None]:
    """The parts of an answer for as long as `check` raises nothing.

    Raises:
        AnswerEndedError: The caller may not have the rest.
    """
    async with aclosing(stream):
        check_at = clock.monotonic_seconds() + CHECK_SECONDS
        async for part in stream:
            if clock.monotonic_seconds() >= check_at:
                await _ask(check)
                check_at = clock.monotonic_seconds() + CHECK_SECONDS
            yield part


async def _ask(check: Callable[[], Awaitable[None]]) -> None:
    try:
        await check()
    except (AuthenticationError, HttpError) as error:
        raise AnswerEndedError(str(error)) from error
    except MetadataError as error:
        # Whoever was let in stays while the metadata store can't be asked.
        logger.warning("rights not checked", extra={"error": str(error)})
