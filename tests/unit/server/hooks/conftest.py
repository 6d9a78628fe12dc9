"""These tests run in virtual time, on real stores in memory."""

from pulsar_py.testing.clock import pytest_asyncio_loop_factories, virtual_clock

__all__ = ["pytest_asyncio_loop_factories", "virtual_clock"]
