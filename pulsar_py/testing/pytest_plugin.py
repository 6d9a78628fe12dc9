"""Fixtures for tests that want a broker: installed with the package, nothing to configure.

    async def test_of_asyncio(pulsar_broker): ...
"""

from __future__ import annotations
