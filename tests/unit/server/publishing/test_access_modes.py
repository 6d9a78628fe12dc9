from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.errors import ProducerBusyError, ProducerFencedError
from pulsar_py.proto.PulsarApi_pb2 import ProducerAccessMode
from pulsar_py.server.publishing.access_modes import (
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


@pytest.mark.parametrize(
    ("waiting", "leaving", "epoch"),
    [
        (["b", "c"], ["b"], 2),
        (["b", "c", "d"], ["c", "b"], 3),
        (["b", "c", "d"], ["b", "c"], 3),
        (["b", "c", "d"], ["d"], 1),
    ],
)
def test_one_that_left_while_it_waited_keeps_its_turn(
    waiting: list[str], leaving: list[str], epoch: int
) -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", EXCLUSIVE, None)
    for each in waiting:
        modes.request(each, WAIT, None)
    for each in leaving:
        assert modes.leave(each) is None
    following = next(each for each in waiting if each not in leaving)
    assert modes.leave("a") == following
    assert modes.promote(following, None) == Exclusive(epoch)


def test_turns_at_the_end_of_the_queue_move_the_epoch_when_everybody_is_gone() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", SHARED, None)
    for each in ("b", "c"):
        modes.request(each, WAIT, None)
    modes.leave("c")
    modes.leave("b")
    assert modes.topic_epoch is None
    assert modes.request("d", SHARED, None).outcome == Admitted()
    modes.leave("a")
    assert modes.topic_epoch is None
    modes.leave("d")
    assert modes.topic_epoch == 1
    assert modes.request("e", EXCLUSIVE, None).outcome == Exclusive(2)


def test_a_turn_with_an_epoch_raises_the_topics_to_it() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", EXCLUSIVE, None)
    modes.request("b", WAIT, 5)
    modes.request("c", WAIT, None)
    modes.leave("b")
    modes.leave("a")
    assert modes.promote("c", None) == Exclusive(6)


def test_fencing_leaves_no_turn() -> None:
    modes: AccessModes[str] = AccessModes(None)
    modes.request("a", EXCLUSIVE, None)
    modes.request("b", WAIT, None)
    modes.leave("b")
    assert modes.request("c", FENCING, None).outcome == Exclusive(1)


@given(st.lists(st.tuples(st.booleans(), st.none() | st.integers(0, 6)), max_size=8))
def test_turns_come_to_what_one_after_the_other_would(
    waiters: list[tuple[bool, int | None]],
) -> None:
    """Whoever leaves while it waits, the epoch is as if it had left right after its promotion."""
    early: AccessModes[int] = AccessModes(None)
    late: AccessModes[int] = AccessModes(None)
    for modes in (early, late):
        modes.request(-1, EXCLUSIVE, None)
        for producer, (_, epoch) in enumerate(waiters):
            modes.request(producer, WAIT, epoch)
    for producer, (leaves_early, _) in enumerate(waiters):
        if leaves_early:
            early.leave(producer)
    for modes in (early, late):
        promoted = modes.leave(-1)
        while promoted is not None:
            modes.promote(promoted, waiters[promoted][1])
            promoted = modes.leave(promoted)
        modes.check()
    assert early.topic_epoch == late.topic_epoch


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


@pytest.mark.parametrize("mode", [EXCLUSIVE, FENCING, WAIT])
def test_an_epoch_that_no_broker_gave_is_refused_and_changes_nothing(mode: int) -> None:
    modes: AccessModes[str] = AccessModes(4)
    modes.request("a", EXCLUSIVE, None)
    decision = modes.request("b", mode, 2**64 - 1)  # type: ignore[arg-type]
    assert refusal(decision) is ProducerFencedError
    assert (decision.fenced, modes.exclusive, modes.topic_epoch) == ((), "a", 5)


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
