"""MemoryTree: nodes that come and go, and copies that follow; the rest is in the contract suite."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import MetadataBadVersionError, MetadataNotFoundError
from pulsar_py.metadata.memory_tree import KeyChange, MemoryTree
from pulsar_py.metadata.store import NotificationType


def put(tree: MemoryTree, path: str, owner: str | None = None) -> KeyChange:
    return tree.put(path, b"", now_millis=5, owner=owner)


def test_parents_without_values_go_with_their_last_child() -> None:
    tree = MemoryTree()
    put(tree, "/a/b/c")
    put(tree, "/a/d")
    assert tree.get("/a") is None
    tree.delete("/a/b/c")
    assert tree.children("/a") == ["d"]
    tree.delete("/a/d")
    assert tree.children("/") == []
    with pytest.raises(MetadataNotFoundError):
        tree.delete("/a")


def test_numbers_stay_known_although_parent_and_children_are_gone() -> None:
    tree = MemoryTree()
    assert tree.create_sequential("/s/x-", b"", now_millis=0).path == "/s/x-0000000000"
    tree.delete_recursive("/s")
    assert tree.create_sequential("/s/y-", b"", now_millis=0).path == "/s/y-0000000001"


def test_a_number_whose_key_somebody_put_is_passed_over() -> None:
    tree = MemoryTree()
    put(tree, "/s/0000000000")
    assert tree.create_sequential("/s/", b"", now_millis=0).path == "/s/0000000001"


def test_children_are_deleted_before_their_parents() -> None:
    tree = MemoryTree()
    for path in ("/a", "/a/b", "/a/b/c", "/a/d"):
        put(tree, path)
    doomed = [change.path for change in tree.delete_recursive("/a")]
    assert sorted(doomed) == ["/a", "/a/b", "/a/b/c", "/a/d"]
    assert doomed.index("/a/b/c") < doomed.index("/a/b") < doomed.index("/a")


def test_only_the_keys_of_an_owner_that_are_still_its_own_go() -> None:
    tree = MemoryTree()
    put(tree, "/mine", "me")
    put(tree, "/remade", "me")
    put(tree, "/others", "you")
    tree.delete("/remade")
    put(tree, "/remade")
    gone = tree.delete_owned("me")
    assert gone == [KeyChange(NotificationType.DELETED, "/mine", None)]
    assert tree.delete_owned("me") == []
    assert tree.children("/") == ["others", "remade"]


def test_a_copy_follows_the_changes_of_the_original() -> None:
    tree, copy = MemoryTree(), MemoryTree()
    changes = [put(tree, "/a"), put(tree, "/a"), put(tree, "/a/b", "me"), put(tree, "/c")]
    changes += [tree.delete("/c"), *tree.delete_owned("me")]
    for change in changes:
        copy.apply(change)
    assert copy.get("/a") == tree.get("/a")
    assert copy.children("/") == tree.children("/") == ["a"]
    assert copy.delete_owned("me") == []


def test_a_refused_change_leaves_the_tree_as_it_was() -> None:
    tree = MemoryTree()
    put(tree, "/a")
    before = tree.get("/a")
    with pytest.raises(MetadataBadVersionError, match="expected version 4, it has 0"):
        tree.put("/a", b"new", now_millis=9, expected_version=4)
    assert tree.get("/a") == before
