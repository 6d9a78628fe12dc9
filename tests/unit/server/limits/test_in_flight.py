from __future__ import annotations

from pulsar_py.server.limits.in_flight import InFlightPublishes, PublishBuffer


def connection(
    buffer: PublishBuffer, log: list[str], name: str, **limits: int
) -> InFlightPublishes:
    return InFlightPublishes(
        buffer,
        max_entries=limits.get("max_entries", 0),
        on_pause=lambda: log.append(f"{name} pause"),
        on_resume=lambda: log.append(f"{name} resume"),
    )


def test_a_connection_pauses_at_its_limit_and_resumes_at_half() -> None:
    log: list[str] = []
    cnx = connection(PublishBuffer(0), log, "a", max_entries=4)
    for _ in range(4):
        cnx.started(1)
    assert log == ["a pause"]
    cnx.finished(1, 1)
    assert log == ["a pause"]
    cnx.finished(1, 1)
    assert log == ["a pause", "a resume"]


def test_a_full_buffer_pauses_everybody_and_half_of_it_lets_them_go_on() -> None:
    log: list[str] = []
    buffer = PublishBuffer(100)
    one, two = connection(buffer, log, "a"), connection(buffer, log, "b")
    one.started(100)
    assert sorted(log) == ["a pause", "b pause"]
    one.finished(1, 49)
    assert len(log) == 2
    two.started(0)
    two.finished(1, 0)
    assert len(log) == 2
    one.started(0)
    one.finished(1, 1)
    assert sorted(log[2:]) == ["a resume", "b resume"]


def test_no_limit_never_pauses() -> None:
    log: list[str] = []
    cnx = connection(PublishBuffer(-1), log, "a")
    for _ in range(10_000):
        cnx.started(1 << 20)
    assert log == []


def test_a_closed_connection_is_told_nothing_but_counted_out() -> None:
    log: list[str] = []
    buffer = PublishBuffer(10)
    one, two = connection(buffer, log, "a"), connection(buffer, log, "b")
    one.started(10)
    log.clear()
    one.close()
    one.finished(1, 10)
    assert log == ["b resume"]
    assert two.is_paused is False
    assert buffer.bytes_count == 0
