"""What is tried again, and for how long."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from pulsar_py.client.shared.retries import FATAL_ONCE_OPEN, is_retriable, repeat, within
from pulsar_py.common import errors
from pulsar_py.testing.clock import VirtualClock, run_virtual

RETRIABLE = [
    errors.ClientTimeoutError,
    errors.ConnectError,
    errors.ConnectionClosedError,
    errors.LookupFailedError,
    errors.ServiceNotReadyError,
    errors.TooManyRequestsError,
    errors.ServiceMetadataError,
    errors.PersistenceError,
    errors.UnknownServiceError,
    errors.ProducerBlockedQuotaExceededError,
    errors.AuthenticationDataError,
    errors.TopicFencedError,
]


@pytest.mark.parametrize("kind", RETRIABLE)
def test_what_may_pass_is_tried_again(kind: type[Exception]) -> None:
    assert is_retriable(kind("x"))
    assert not issubclass(kind, FATAL_ONCE_OPEN)


@pytest.mark.parametrize(
    "kind",
    [
        errors.AuthenticationError,
        errors.UnusableCredentialsError,
        errors.AuthorizationError,
        errors.TopicNotFoundError,
        errors.ConsumerBusyError,
        errors.ProducerBusyError,
        errors.ProducerFencedError,
        errors.InvalidServiceUrlError,
        errors.AlreadyClosedError,
        ValueError,
    ],
)
def test_what_stays_is_not(kind: type[Exception]) -> None:
    assert not is_retriable(kind("x"))


def test_a_producer_that_has_to_encrypt_will_not_by_waiting() -> None:
    assert not is_retriable(errors.ServiceMetadataError("t: Encryption is required in t"))


def test_work_in_time_gives_its_result() -> None:
    async def work() -> None:
        assert await within(asyncio.sleep(1, "done"), 2, "thing") == "done"
        with pytest.raises(errors.ClientTimeoutError, match=r"thing: not done in 2 s"):
            await within(asyncio.sleep(3), 2, "thing")

    run_virtual(work())


def test_an_inner_time_out_is_handed_on_as_it_is() -> None:
    async def inner() -> None:
        raise errors.ClientTimeoutError("inner")

    async def work() -> None:
        with pytest.raises(errors.ClientTimeoutError, match=r"^inner$"):
            await within(inner(), 2, "thing")

    run_virtual(work())


def attempts(*outcomes: Exception | str):
    left = list(outcomes)

    async def attempt(_seconds: float) -> str:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return attempt


def repeated(attempt, timeout_seconds: float = 10.0):
    clock = VirtualClock()
    return repeat(
        attempt,
        clock=clock,
        chance=Random(1),
        timeout_seconds=timeout_seconds,
        subject="topic t",
    )


def test_attempts_go_on_until_one_succeeds() -> None:
    async def work() -> None:
        attempt = attempts(errors.ConnectError("a"), errors.ServiceNotReadyError("b"), "yes")
        assert await repeated(attempt) == "yes"
        assert 0.2 < asyncio.get_running_loop().time() <= 0.3

    run_virtual(work())


def test_what_is_not_worth_another_attempt_ends_them() -> None:
    async def work() -> None:
        with pytest.raises(errors.TopicNotFoundError):
            await repeated(attempts(errors.TopicNotFoundError("x")))
        assert asyncio.get_running_loop().time() == 0

    run_virtual(work())


def test_at_the_end_the_brokers_own_answer_is_raised() -> None:
    async def work() -> None:
        with pytest.raises(errors.ServiceNotReadyError):
            await repeated(attempts(errors.ServiceNotReadyError("x")))
        assert asyncio.get_running_loop().time() <= 10

    run_virtual(work())


def test_at_the_end_of_vain_attempts_the_last_error_is_told() -> None:
    async def work() -> None:
        with pytest.raises(errors.ClientTimeoutError, match=r"topic t: .* nobody there"):
            await repeated(attempts(errors.ConnectError("nobody there")))

    run_virtual(work())


def test_an_attempt_that_is_cut_short_does_not_hide_why_there_were_several() -> None:
    async def attempt(_seconds: float) -> str:
        if asyncio.get_running_loop().time() < 1:
            raise errors.ConnectError("nobody there")
        await asyncio.sleep(100)
        return "too late"

    async def work() -> None:
        with pytest.raises(errors.ClientTimeoutError, match=r"topic t: .* in 10 s.* nobody there"):
            await repeated(attempt)
        assert asyncio.get_running_loop().time() == 10

    run_virtual(work())
