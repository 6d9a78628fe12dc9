"""What happened between two answers of a broker."""

from __future__ import annotations

from typing import Any

from pulsar_py.cli.watching.top_rows import Order, TopSnapshot, TopView, rows_between

ADDRESS = "/10.0.0.1:4000"


def subscription(sent: int, backlog: int = 0, **more: Any) -> dict[str, Any]:
    consumer = {
        "address": ADDRESS,
        "consumerName": "c",
        "msgOutCounter": sent,
        "bytesOutCounter": sent * 10,
        "unackedMessages": 2,
        "clientVersion": "v1",
    }
    return {
        "msgOutCounter": sent,
        "bytesOutCounter": sent * 10,
        "msgBacklog": backlog,
        "unackedMessages": 2,
        "consumers": [consumer],
        **more,
    }


def topic(received: int, **subscriptions: Any) -> dict[str, Any]:
    sent = sum(each["msgOutCounter"] for each in subscriptions.values())
    return {
        "msgInCounter": received,
        "bytesInCounter": received * 10,
        "msgOutCounter": sent,
        "bytesOutCounter": sent * 10,
        "publishers": [{"address": ADDRESS, "msgRateIn": 7.0, "msgThroughputIn": 70.0}],
        "subscriptions": subscriptions,
    }


def snapshot(seconds: float, namespace: str | None = None, **topics: Any) -> TopSnapshot:
    answer = {"a/b": {"0x0_0xf": {"persistent": topics}}, "c/d": {"0x0_0xf": {}}}
    return TopSnapshot.of(seconds, answer, namespace)


def test_topics_have_rates_since_the_look_before() -> None:
    before = snapshot(10.0, quiet=topic(5), busy=topic(100, s=subscription(100)))
    after = snapshot(12.0, quiet=topic(5), busy=topic(300, s=subscription(200, 7)), new=topic(9))
    busy, new, quiet = rows_between(before, after, TopView.TOPICS, Order.RATE)
    assert (busy.name, busy.messages_in, busy.bytes_in) == ("busy", 100.0, 1000.0)
    assert (busy.messages_out, busy.backlog, busy.unacked) == (50.0, 7, 2)
    assert (busy.producers, busy.consumers) == (1, 1)
    assert (new.messages_in, quiet.messages_in) == (0.0, 0.0)  # it was not there before


def test_a_counter_that_went_back_begins_at_nothing() -> None:
    (row,) = rows_between(
        snapshot(0.0, t=topic(1000)), snapshot(2.0, t=topic(10)), TopView.TOPICS, Order.RATE
    )
    assert row.messages_in == 5.0


def test_subscriptions_have_backlog_and_what_stops_them() -> None:
    before = snapshot(0.0, t=topic(0, a=subscription(0), b=subscription(0)))
    stuck = subscription(0, 50, standstill=["PAUSED", "HOLE"])
    after = snapshot(1.0, t=topic(0, a=subscription(10, 1), b=stuck))
    first, second = rows_between(before, after, TopView.SUBSCRIPTIONS, Order.BACKLOG)
    assert (first.name, first.backlog, first.state) == ("t b", 50, "PAUSED HOLE")
    assert (second.name, second.messages_out) == ("t a", 10.0)


def test_connections_add_up_what_they_do_on_all_topics() -> None:
    before = snapshot(0.0, t=topic(0, a=subscription(0)), u=topic(0, b=subscription(5)))
    after = snapshot(1.0, t=topic(0, a=subscription(10)), u=topic(0, b=subscription(6)))
    (row,) = rows_between(before, after, TopView.CONNECTIONS, Order.NAME)
    assert (row.name, row.state) == ("10.0.0.1:4000", "")
    assert (row.messages_in, row.messages_out, row.unacked) == (14.0, 11.0, 4)
    assert (row.producers, row.consumers) == (2, 2)


def test_one_namespace_may_be_chosen() -> None:
    assert set(snapshot(0.0, "a/b", t=topic(0)).topics) == {"t"}
    assert not snapshot(0.0, "c/d", t=topic(0)).topics
    assert not TopSnapshot.of(0.0, {}).topics
