"""Keeps the list of this process's event loops in which a broker runs (edge).

A blocking call in such a loop's thread stops the broker that should answer it. The broker enters
its loop here, and blocking clients ask before they wait.
"""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

__all__ = ["served_by", "serves", "serves_no_more"]

_service_urls: WeakKeyDictionary[asyncio.AbstractEventLoop, list[str]] = WeakKeyDictionary()


def serves(loop: asyncio.AbstractEventLoop, service_url: str) -> None:
    """A broker runs in `loop` from now on."""
    _service_urls.setdefault(loop, []).append(service_url)


def serves_no_more(loop: asyncio.AbstractEventLoop, service_url: str) -> None:
    """The broker has ended; unknown ones are ignored."""
    urls = _service_urls.get(loop, [])
    if service_url in urls:
        urls.remove(service_url)


def served_by(loop: asyncio.AbstractEventLoop) -> str | None:
    """The service URL of a broker that runs in `loop`; None for none."""
    urls = _service_urls.get(loop)
    return urls[-1] if urls else None
