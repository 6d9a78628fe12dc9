from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.errors import ProducerBusyError, ProducerFencedError
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from pulsar_py.server.topics.access_modes import (
    AccessModes,
    Admitted,
    Decision,
    Exclusive,
    Refused,
    Waiting,
)

SHARED = ProducerAccessMode.Shared
EXCLUSIVE = ProducerAccessMode.Exclusive
FENCING = ProducerAccessMode.ExclusiveWithFencing
WAIT = ProducerAccessMode.WaitForExclusive


def refusal(decision: Decision[str]) -> type[Exception]:
    assert isinstance(decision.outcome, Refused)
    return type(decision.outcome.error)


def test_the_first_exclusive_producer_gets_epoch_0_and_the_next_one_more() -> None:
    modes: AccessModes[str] = AccessModes(None)
    assert modes.request("a", EXCLUSIVE, None).outcome == Exclusive(0)
    assert modes.leave("a") is None
    assert modes.request("b", EXCLUSIVE, None).outcome == Exclusive(1)


def test_shared_producers_leave_the_epoch_alone() -> None:
    modes: AccessModes[str] = AccessModes(None)
    assert modes.request("a", SHARED, None).outcome == Admitted()
    assert modes.topic_epoch is None


def test_beside_an_exclusive_producer_nobody_is_let_in() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", EXCLUSIVE, None)
    assert refusal(modes.request("b", SHARED, None)) is ProducerBusyError
    assert refusal(modes.request("c", EXCLUSIVE, None)) is ProducerFencedError


def test_exclusive_is_refused_beside_shared_ones() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", SHARED, None)
    assert refusal(modes.request("b", EXCLUSIVE, None)) is ProducerFencedError


def test_waiting_producers_are_promoted_in_order() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", EXCLUSIVE, None)
    assert modes.request("b", WAIT, None).outcome == Waiting()
    assert modes.request("c", WAIT, None).outcome == Waiting()
    assert refusal(modes.request("d", SHARED, None)) is ProducerBusyError
    assert modes.leave("a") == "b"
    assert modes.promote("b", None) == Exclusive(1)
    assert modes.leave("b") == "c"


def test_the_last_shared_producer_makes_room_for_one_that_waits() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", SHARED, None)
    modes.request("b", WAIT, None)
    assert modes.leave("a") == "b"


def test_one_that_waits_may_leave() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", EXCLUSIVE, None)
    modes.request("b", WAIT, None)
    assert modes.leave("b") is None
    assert modes.leave("a") is None


def test_fencing_throws_out_everybody() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", EXCLUSIVE, None)
    modes.request("b", WAIT, None)
    decision = modes.request("c", FENCING, None)
    assert decision == Decision(Exclusive(1), ("a", "b"))


def test_an_exclusive_producer_comes_back_with_its_epoch() -> None:
    modes: AccessModes[str] = AccessModes(4)
    assert modes.request("a", EXCLUSIVE, 4).outcome == Exclusive(4)


def test_an_old_epoch_is_refused_but_fences_all_the_same() -> None:
    modes: AccessModes[str] = AccessModes(4)
    modes.request("a", EXCLUSIVE, None)
    decision = modes.request("b", FENCING, 3)
    assert refusal(decision) is ProducerFencedError
    assert decision.fenced == ("a",)
    assert modes.exclusive is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["join", "leave"]),
            st.integers(0, 5),
            st.sampled_from([SHARED, EXCLUSIVE, FENCING, WAIT]),
        )
    )
)
def test_invariants_hold_after_any_steps(steps: list[tuple[str, int, int]]) -> None:
    modes: AccessModes[int] = AccessModes(None)
    for action, producer, mode in steps:
        known = producer == modes.exclusive or producer in modes.shared or producer in modes.waiting
        if action == "leave":
            promoted = modes.leave(producer)
            if promoted is not None:
                modes.promote(promoted, None)
        elif not known:
            modes.request(producer, mode, None)  # type: ignore[arg-type]
        modes.check()
