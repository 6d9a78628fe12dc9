"""Handlers are tested through a connection, above the same stand-ins."""

from __future__ import annotations

from tests.unit.server.connection.conftest import (
    pytest_asyncio_loop_factories,
    schemas,
    server,
    settings,
    virtual_clock,
)

__all__ = ["pytest_asyncio_loop_factories", "schemas", "server", "settings", "virtual_clock"]
