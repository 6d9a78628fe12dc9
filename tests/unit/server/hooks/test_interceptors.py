"""interceptors: who is told what, and that errors go no further."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.server.hooks.contained import HookErrors
from pulsar_py.server.hooks.interceptors import Interceptors
from tests.hook_classes import Recording

FAILING = "tests.hook_classes.Failing"
RECORDING = "tests.hook_classes.Recording"


def test_only_what_a_class_overrides_is_called() -> None:
    errors = HookErrors(SystemClock())
    interceptors = Interceptors(errors, [FAILING])
    assert interceptors.hears("message_acked", "on_message_publish")
    assert not interceptors.hears("message_acked", "close")
    interceptors.tell("message_acked", None, None)
    assert not errors.total
    assert not Interceptors(errors).hears("close")


def test_an_error_is_counted_and_the_next_is_told() -> None:
    errors = HookErrors(SystemClock())
    interceptors = Interceptors(errors, [FAILING, RECORDING])
    interceptors.tell("consumer_created", "it")
    recording = interceptors.made[1][1]
    assert isinstance(recording, Recording)
    assert recording.named("consumer_created") == [("it",)]
    assert errors.counts == {FAILING + ".consumer_created": 1}
    interceptors.close()
    assert recording.named("close") == [()]


def test_a_name_has_to_be_that_of_an_interceptor() -> None:
    with pytest.raises(ConfigurationError, match="brokerInterceptors"):
        Interceptors(HookErrors(SystemClock()), ["tests.hook_classes.ByPayload"])
