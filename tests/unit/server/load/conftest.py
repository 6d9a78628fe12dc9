"""These tests run in virtual time."""

from __future__ import annotations

from pulsar_py.testing.clock import pytest_asyncio_loop_factories, virtual_clock

__all__ = ["pytest_asyncio_loop_factories", "virtual_clock"]
