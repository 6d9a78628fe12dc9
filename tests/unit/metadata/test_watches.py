"""Watches: who hears of which change. The rest is in the contract suite."""

from __future__ import annotations

from pulsar_py.metadata.store import Notification, NotificationType
from pulsar_py.metadata.watches import Watches

CHANGE = Notification(NotificationType.CREATED, "/a/b")


def test_watchers_of_the_path_and_of_all_above_hear() -> None:
    watches = Watches()
    heard: list[str] = []
    for prefix in ("/", "/a", "/a/b", "/a/b/c", "/b"):
        watches.add(prefix, lambda _, prefix=prefix: heard.append(prefix))  # type: ignore[misc]
    watches.notify([CHANGE])
    assert heard == ["/a/b", "/a", "/"]


def test_what_was_removed_hears_no_more_and_may_be_removed_again() -> None:
    watches = Watches()
    heard: list[Notification] = []
    remove = watches.add("/a", heard.append)
    remove()
    remove()
    watches.notify([CHANGE])
    assert heard == []


def test_a_watcher_may_end_itself_while_it_is_told() -> None:
    watches = Watches()
    heard: list[str] = []

    def first(_: Notification) -> None:
        heard.append("first")
        remove()

    remove = watches.add("/a", first)
    watches.add("/a", lambda _: heard.append("second"))
    watches.notify([CHANGE, CHANGE])
    assert heard == ["first", "second", "second"]


def test_that_changes_were_missed_is_told_at_each_prefix() -> None:
    watches = Watches()
    heard: list[Notification] = []
    for prefix in ("/", "/a/b"):
        watches.add(prefix, heard.append)
    watches.tell_anything()
    assert heard == [
        Notification(NotificationType.ANYTHING, "/"),
        Notification(NotificationType.ANYTHING, "/a/b"),
    ]
