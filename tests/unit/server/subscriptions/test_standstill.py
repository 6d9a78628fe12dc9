"""What each cause says, and which are told at all; `test_dispatch_state` sets them up for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pulsar_py.common.position import Position
from pulsar_py.server.subscriptions.standstill import (
    MAX_NAMED,
    SLOW_READ_MILLIS,
    BlockedHash,
    Cause,
    ConsumerState,
    DispatchState,
    EntryPlace,
    Hole,
    LookAhead,
    PutOff,
    RateState,
    Reason,
    reasons,
)


def consumer(name: str = "c", **fields: object) -> ConsumerState:
    values: dict[str, object] = {
        "address": "/10.0.0.1:5",
        "available_permits": 5,
        "unacked_messages": 0,
        "max_unacked_messages": 0,
        "is_blocked": False,
        "is_writable": True,
    }
    return ConsumerState(name=name, **(values | fields))  # type: ignore[arg-type]


def state(**fields: object) -> DispatchState:
    values = {"consumers_count": 1, "backlog_entries": 7, "has_unsent": True}
    return DispatchState(**(values | fields))  # type: ignore[arg-type]


def only(**fields: object) -> Reason:
    (found,) = reasons(state(**fields))
    return found


def test_what_moves_has_no_reason() -> None:
    assert reasons(state()) == ()


def test_a_subscription_that_is_not_open_has_one_reason() -> None:
    assert [each.cause for each in reasons(DispatchState(is_open=False, state="RESETTING"))] == [
        Cause.NOT_OPEN
    ]


def test_when_the_next_delayed_entry_is_due_is_told_as_a_time() -> None:
    for millis, text in (
        (1_795_975_703_552, "2026-11-29 18:08:23Z"),
        (2**62, f"{2**62} ms since 1970"),
    ):
        found = only(has_unsent=False, delayed_entries=2, next_delivery_millis=millis)
        assert f"the next until {text}; wait" in found.message
        assert found.fields["nextDeliveryMillis"] == millis


def test_a_sentence_names_the_thing_the_value_and_what_helps() -> None:
    reason = only(awaited=[consumer("worker-3", available_permits=-2)])
    assert reason.cause is Cause.NO_PERMITS
    assert reason.message == (
        "Consumer 'worker-3' asked for no more messages (permits: -2); receive what the client has "
        "queued, resume it, or enlarge its receiver queue."
    )
    assert reason.fields == {
        "consumersCount": 1,
        "consumers": [{"name": "worker-3", "permits": -2}],
    }


def test_many_consumers_are_counted_and_some_of_them_named() -> None:
    away = [consumer(f"c{index}", is_writable=False) for index in range(30)]
    reason = only(awaited=away)
    assert reason.cause is Cause.SLOW_SOCKET
    assert reason.message.startswith("Consumer 'c0' and 29 others does not read")
    assert reason.fields["consumersCount"] == 30
    assert isinstance(reason.fields["consumers"], list)
    assert len(reason.fields["consumers"]) == MAX_NAMED


def test_one_consumer_may_have_two_reasons() -> None:
    away = consumer(is_blocked=True, max_unacked_messages=3, unacked_messages=3, is_writable=False)
    found = reasons(state(awaited=[away]))
    assert [each.cause for each in found] == [Cause.CONSUMER_UNACKED_LIMIT, Cause.SLOW_SOCKET]


def test_rates_name_whose_they_are_and_what_they_are() -> None:
    rate = RateState(scope="topic", messages_per_second=10, bytes_per_second=0, wait_seconds=0.0501)
    reason = only(rates=[rate])
    assert "rate of the topic, 10 messages/s, is used up for 0.050 s" in reason.message
    assert reason.fields["waitMillis"] == 50


def test_who_can_send_nothing_is_not_told_of_permits_and_rates() -> None:
    rate = RateState(scope="topic", messages_per_second=1, bytes_per_second=0, wait_seconds=1)
    found = reasons(state(has_unsent=False, awaited=[consumer(available_permits=0)], rates=[rate]))
    assert [each.cause for each in found] == [Cause.UNACKNOWLEDGED]


def test_what_a_filter_put_off_was_not_sent() -> None:
    put_off = PutOff(position=Position(3, 4), wait_millis=50)
    reason = only(has_unsent=False, put_off=put_off)
    assert reason.cause is Cause.PUT_OFF
    assert "put off entry 3:4" in reason.message
    assert reason.fields == {"position": "3:4", "waitMillis": 50}


def test_a_read_is_a_reason_once_it_is_slow() -> None:
    assert reasons(state(read_millis=SLOW_READ_MILLIS - 1)) == ()
    assert only(read_millis=SLOW_READ_MILLIS).cause is Cause.SLOW_READ


def test_the_limit_of_reading_ahead_names_the_setting_that_it_comes_from() -> None:
    reason = only(look_ahead=LookAhead(waiting_entries=5, limit=4, setting="aSetting"))
    assert reason.message.endswith("raise aSetting.")
    assert reason.fields["setting"] == "aSetting"


def test_a_hole_says_where_its_entry_is() -> None:
    for place, words in {
        EntryPlace.CONSUMER: "consumer 'c' has it",
        EntryPlace.DELAYED: "it is delayed",
        EntryPlace.PUT_OFF: "an entry filter put it off",
        EntryPlace.WAITING: "waits to be sent again",
        EntryPlace.UNREAD: "nobody was sent it",
    }.items():
        hole = Hole(position=Position(3, 4), ranges_count=2, place=place, holder="c")
        reason = only(hole=hole)
        assert reason.cause is Cause.HOLE
        assert words in reason.message
        assert "3:4" in reason.message
        assert reason.fields["place"] == place.name


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"is_paused": True}, "paused while 1 entry waits; "),
        ({"consumers_count": 0}, "connected and 1 entry waits; "),
        ({"has_unsent": False}, "The one entry of the backlog was sent and not acknowledged; "),
        (
            {"hole": Hole(position=Position(1, 0), ranges_count=1, place=EntryPlace.DELAYED)},
            "while entries in 1 range behind",
        ),
    ],
)
def test_one_is_not_told_as_many(fields: dict[str, object], words: str) -> None:
    assert words in only(backlog_entries=1, **fields).message


def test_every_field_is_json_and_every_cause_has_a_sentence() -> None:
    everything = state(
        is_paused=True,
        awaited=[consumer(is_blocked=True), consumer(available_permits=0, is_writable=False)],
        unacked_messages=9,
        subscription_unacked_limit=8,
        broker_unacked_limit=9,
        rates=[
            RateState(scope="topic", messages_per_second=1, bytes_per_second=1, wait_seconds=0.5)
        ],
        retry_millis=1,
        read_millis=5000,
        switch_millis=1,
        held_back_after=Position(1, 1),
        blocked_hashes=[BlockedHash(sticky_hash=5, holder="c", pending_entries=2)],
        hashes_without_consumer=[6],
        look_ahead=LookAhead(waiting_entries=3, limit=3, setting="aSetting"),
        delayed_entries=1,
        next_delivery_millis=5,
        put_off=PutOff(position=Position(1, 2), wait_millis=3),
        hole=Hole(position=Position(1, 0), ranges_count=1, place=EntryPlace.DELAYED),
    )
    found = [
        *reasons(everything),
        *reasons(state(has_unsent=False)),
        *reasons(state(consumers_count=0, backlog_entries=0)),
        *reasons(DispatchState(is_open=False)),
    ]
    assert {each.cause for each in found} == set(Cause)
    for each in found:
        assert json.loads(json.dumps(each.fields)) == each.fields
        assert each.message.endswith(".")


def test_every_code_is_documented() -> None:
    text = (Path(__file__).parents[4] / "docs" / "OPERATIONS.md").read_text("utf-8")
    for cause in Cause:
        assert f"`{cause}`" in text, cause
