"""Both metadata stores against a dictionary, in any order of operations, restarts included."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataExistsError,
    MetadataNotEmptyError,
    MetadataNotFoundError,
)
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore, Session

PATHS = st.lists(st.sampled_from(["a", "b", "a0", "a-"]), min_size=1, max_size=3).map(
    lambda parts: "/" + "/".join(parts)
)
VALUES = st.binary(max_size=4)


class StoreMachine(RuleBasedStateMachine):
    """Operations on a store and on its model; subclasses say which store."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.store = self.run(self.open())
        self.keys: dict[str, tuple[bytes, int, Session | None]] = {}  # the model
        self.sequences: dict[str, int] = {}
        self.sessions: list[Session] = []
        self.notified: set[str] = set()
        self.store.watch("/", lambda each: self.notified.add(each.path))

    async def open(self) -> MetadataStore:
        return MemoryMetadataStore(SystemClock())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.loop.close()
        self.directory.cleanup()

    @rule(path=PATHS, value=VALUES)
    def put(self, path: str, value: bytes) -> None:
        _, version, owner = self.keys.get(path, (b"", -1, None))
        assert self.run(self.store.put(path, value)) == version + 1
        self.keys[path] = (value, version + 1, owner)

    @rule(path=PATHS, value=VALUES, expected=st.integers(-1, 3))
    def compare_and_set(self, path: str, value: bytes, expected: int) -> None:
        _, version, owner = self.keys.get(path, (b"", -1, None))
        work = self.store.put(path, value, expected_version=expected)
        if expected == version:
            assert self.run(work) == version + 1
            self.keys[path] = (value, version + 1, owner)
        else:
            error = MetadataExistsError if expected == MUST_NOT_EXIST else MetadataBadVersionError
            with pytest.raises(error):
                self.run(work)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        if any(key.startswith(path + "/") for key in self.keys):
            with pytest.raises(MetadataNotEmptyError):
                self.run(self.store.delete(path))
        elif self.keys.pop(path, None) is None:
            with pytest.raises(MetadataNotFoundError):
                self.run(self.store.delete(path))
        else:
            self.run(self.store.delete(path))

    @rule(path=PATHS)
    def delete_recursive(self, path: str) -> None:
        self.run(self.store.delete_recursive(path))
        for key in list(self.keys):
            if key == path or key.startswith(path + "/"):
                del self.keys[key]

    @rule(path=PATHS, which=st.none() | st.integers(0, 3))
    def create_sequential(self, path: str, which: int | None) -> None:
        session = None if which is None else self.session(which)
        created = self.run(self.store.create_sequential(f"{path}-", b"", session))
        parent = path[: path.rindex("/")]
        number = self.sequences.get(parent, 0)
        assert created == f"{path}-{number:010d}"
        self.sequences[parent] = number + 1
        self.keys[created] = (b"", 0, session)

    def session(self, which: int) -> Session | None:
        return self.sessions[which] if which < len(self.sessions) else None

    @rule()
    def open_session(self) -> None:
        self.sessions.append(self.run(self.store.open_session()))

    @rule(path=PATHS, value=VALUES, which=st.integers(0, 3))
    def put_ephemeral(self, path: str, value: bytes, which: int) -> None:
        session = self.session(which)
        if session is None:
            return
        work = self.store.put(path, value, expected_version=MUST_NOT_EXIST, session=session)
        if path in self.keys:
            with pytest.raises(MetadataExistsError):
                self.run(work)
        else:
            assert self.run(work) == 0
            self.keys[path] = (value, 0, session)

    @rule(which=st.integers(0, 3))
    def close_session(self, which: int) -> None:
        if which < len(self.sessions):
            session = self.sessions.pop(which)
            self.run(session.close())
            self.drop_keys_of(session)

    def drop_keys_of(self, session: Session) -> None:
        self.keys = {path: key for path, key in self.keys.items() if key[2] is not session}

    @invariant()
    def store_is_as_the_model(self) -> None:
        self.run(self.compare())

    async def compare(self) -> None:
        for path, (value, version, session) in self.keys.items():
            found = await self.store.get(path)
            assert found is not None, path
            assert (found.value, found.version) == (value, version)
            assert found.owner == (session.session_id if session else None)
        for parent in ["/", *self.keys]:
            prefix = parent.rstrip("/") + "/"
            below = {path.removeprefix(prefix) for path in self.keys if path.startswith(prefix)}
            assert await self.store.children(parent) == sorted(
                {each.split("/")[0] for each in below}
            )


class SqliteMachine(StoreMachine):
    """With a restart, too."""

    async def open(self) -> MetadataStore:
        return await SqliteMetadataStore.open(
            Path(self.directory.name) / "metadata.sqlite", SystemClock()
        )

    @rule()
    def restart(self) -> None:
        self.run(self.store.close())
        self.store = self.run(self.open())
        for session in self.sessions:
            self.drop_keys_of(session)
        self.sessions.clear()


TestMemoryMetadataStore = StoreMachine.TestCase
TestSqliteMetadataStore = SqliteMachine.TestCase
