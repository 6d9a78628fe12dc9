"""Both clients at one broker, and tests that run with each of them on either side.

These use real sockets and real time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pulsar
import pytest
import pytest_asyncio

import pulsar_py
from tests.interop.client.sides import Official, Ours, Side
from tests.interop.conftest import Address


@pytest_asyncio.fixture
async def our_client(address: Address) -> AsyncIterator[pulsar_py.Client]:
    async with pulsar_py.Client(address.service_url) as client:
        yield client


@pytest.fixture
def ours(our_client: pulsar_py.Client) -> Ours:
    return Ours(our_client)


@pytest.fixture
def official(client: pulsar.Client) -> Official:
    return Official(client)


@pytest.fixture(params=["ours-to-official", "official-to-ours"])
def sides(request: pytest.FixtureRequest, ours: Ours, official: Official) -> tuple[Side, Side]:
    """Who writes and who reads."""
    return (ours, official) if request.param == "ours-to-official" else (official, ours)


@pytest.fixture
def writer(sides: tuple[Side, Side]) -> Side:
    return sides[0]


@pytest.fixture
def reader(sides: tuple[Side, Side]) -> Side:
    return sides[1]
