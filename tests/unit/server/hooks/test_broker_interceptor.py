"""broker_interceptor: the base class does nothing, whatever it is told."""

from __future__ import annotations

from inspect import signature

import pytest

from pulsar_py.server.hooks.broker_interceptor import BrokerInterceptor

CALLS = [name for name in vars(BrokerInterceptor) if not name.startswith("_")]


@pytest.mark.parametrize("name", CALLS)
def test_no_method_has_to_be_overridden(name: str) -> None:
    method = getattr(BrokerInterceptor(), name)
    assert method(*[None] * len(signature(method).parameters)) is None
