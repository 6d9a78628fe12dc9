"""Turns: nobody starves, nobody is asked who has nothing."""

from __future__ import annotations

from pulsar_py.client.many_topics.rotation import Rotation


def test_sources_take_turns() -> None:
    rotation: Rotation[str] = Rotation()
    for source in "abc":
        rotation.add(source)
    turns = ""
    for _ in range(6):
        turn = rotation.next()
        assert turn is not None
        turns += turn
        rotation.add(turn)
    assert turns == "abcabc"


def test_a_source_that_says_so_twice_keeps_its_turn() -> None:
    rotation: Rotation[str] = Rotation()
    rotation.add("a")
    rotation.add("b")
    rotation.add("a")
    assert (rotation.next(), rotation.next(), rotation.next()) == ("a", "b", None)


def test_sources_leave() -> None:
    rotation: Rotation[str] = Rotation()
    rotation.add("a")
    rotation.add("b")
    rotation.discard("a")
    rotation.discard("unknown")
    assert "a" not in rotation
    assert len(rotation) == 1
    rotation.clear()
    assert rotation.next() is None
