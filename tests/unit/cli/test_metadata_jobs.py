"""metadata_jobs: what is printed of keys and values."""

from __future__ import annotations

import json

import pytest

from pulsar_py.cli.metadata_jobs import get, ls, stat
from pulsar_py.cli.places import ClusterClients
from pulsar_py.common.errors import MetadataNotFoundError
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock


async def cluster() -> ClusterClients:
    store = MemoryMetadataStore(VirtualClock())
    for path, value in (
        ("/a/json", b'{"k":[1]}'),
        ("/a/text", b"2\nline"),
        ("/a/bytes", b"\x0a\x02\xff"),
        ("/a/control", b"a\x00b"),
        ("/b", b""),
    ):
        await store.put(path, value)

    async def no_ledgers() -> LedgerStore:
        raise AssertionError("nothing is asked of bookies")

    return ClusterClients(
        MetadataStores(store, store), store, "/ledgers", VirtualClock(), no_ledgers
    )


async def test_names_below_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    found = await cluster()
    await ls(found, "/", "table", is_recursive=False)
    assert capsys.readouterr().out.split() == ["a", "b"]
    await ls(found, "/a", "json", is_recursive=False)
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == {"path": "bytes"}
    await ls(found, "/", "table", is_recursive=True)
    lines = capsys.readouterr().out.split()
    assert lines == ["/a", "/a/bytes", "/a/control", "/a/json", "/a/text", "/b"]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/a/json", '{\n  "k": [\n    1\n  ]\n}\n'),
        ("/a/text", "2\nline\n"),
        ("/a/bytes", "0a02ff\n"),
        ("/a/control", "610062\n"),
    ],
)
async def test_a_value_is_readable(
    path: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await get(await cluster(), path, "table", is_raw=False)
    assert capsys.readouterr().out == shown


async def test_a_value_as_json_and_as_it_is(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    await get(await cluster(), "/a/json", "json", is_raw=False)
    assert json.loads(capsysbinary.readouterr().out) == {"path": "/a/json", "value": {"k": [1]}}
    await get(await cluster(), "/a/bytes", "table", is_raw=True)
    assert capsysbinary.readouterr().out == b"\x0a\x02\xff"


async def test_what_is_known_of_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    found = await cluster()
    await stat(found, "/a/json", "json")
    shown = json.loads(capsys.readouterr().out)
    assert (shown["version"], shown["bytes"], shown["children"]) == (0, 9, 0)
    assert shown["owner"] is None
    assert shown["created"].endswith("+00:00")


async def test_what_is_not_there_is_said() -> None:
    found = await cluster()
    for job in (
        ls(found, "/no", "table", is_recursive=False),
        get(found, "/no", "table", is_raw=False),
        stat(found, "/no", "table"),
    ):
        with pytest.raises(MetadataNotFoundError, match="/no does not exist"):
            await job
    with pytest.raises(ValueError, match="not a path"):
        await stat(found, "no/", "table")
