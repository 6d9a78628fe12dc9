"""What the jobs decide beside the inspections themselves."""

from __future__ import annotations

import io
import sqlite3
import sys
from pathlib import Path

import pytest

from pulsar_py.cli.storage.jobs import (
    DAMAGED,
    USAGE,
    check_instance,
    check_schemas,
    run,
    schema_ends,
    shown_progress,
)
from pulsar_py.common.errors import ConfigurationError, CorruptDataError, DirectoryLockedError
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaLocator


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("so"), USAGE),
        (DirectoryLockedError("so"), USAGE),
        (CorruptDataError("so"), DAMAGED),
        (OSError("so"), DAMAGED),
        (sqlite3.IntegrityError("so"), DAMAGED),
    ],
)
def test_errors_are_one_line_and_a_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def job() -> int:
        raise error

    assert run(job()) == code
    assert capsys.readouterr().err == "Error: so\n"


def test_schemas_are_found_and_checked() -> None:
    locator = SchemaLocator()
    for ledger_id in (4, 6):
        entry = locator.index.add(version=0, hash=b"")
        entry.position.ledgerId, entry.position.entryId = ledger_id, 0
    locator.info.CopyFrom(locator.index[0])
    keys = {"/schemas/a/b/c": locator.SerializeToString(), "/schemas/a/b/d": b"\xff\xff"}
    ends, findings = schema_ends(keys)
    assert ends == {4: 0, 6: 0}
    assert [each.problem.partition(":")[0] for each in findings] == ["/schemas/a/b/d"]
    assert [each.problem for each in check_schemas(ends, {4: 0, 6: -1})] == [
        "schemas: ledger 6 is missing or empty"
    ]


@pytest.mark.parametrize(
    ("known", "cookie", "has_ledgers", "is_sound"),
    [
        (b"a", "a", True, True),
        (b"a", "b", True, False),
        (b"a", None, False, False),
        (None, "b", True, False),
        (None, None, True, False),
        (None, None, False, True),
    ],
)
def test_metadata_and_ledgers_are_of_one_instance(
    *, known: bytes | None, cookie: str | None, has_ledgers: bool, is_sound: bool
) -> None:
    keys = {} if known is None else {"/ledgers/INSTANCEID": known}
    assert (list(check_instance(keys, cookie, has_ledgers=has_ledgers)) == []) is is_sound


def test_progress_is_shown_on_a_terminal_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown_progress(tmp_path, "reading") as on_progress:
        on_progress("journal/1", 50)
    assert not capsys.readouterr().err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    journal = tmp_path / "ledgers" / "journal"
    journal.mkdir(parents=True)
    (journal / "1").write_bytes(bytes(100))
    with shown_progress(tmp_path, "reading") as on_progress:
        on_progress("journal/1", 50)
    assert "reading" in terminal.getvalue()
