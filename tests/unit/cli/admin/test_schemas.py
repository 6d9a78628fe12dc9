"""Words about schemas send and print what pulsar-admin does."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.admin.replayed import Fake, differences, run

SCHEMA = (
    '{"type": "AVRO", "schema": "{\\"type\\":\\"record\\",\\"name\\":\\"r\\",\\"fields\\":[]}"}'
)


def test_what_was_recorded(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text(SCHEMA)
    assert not differences("schemas", schema_file=str(file))


def test_a_schema_that_is_no_json_is_shown_as_it_is() -> None:
    found = {"version": 0, "type": "PROTOBUF_NATIVE", "data": "bytes", "properties": None}
    _, done = run("schemas", "get", "t", fake=Fake({"schema": found}))
    assert '"schema": "bytes"' in done.stdout


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    for text in ("{}", "[]", "nothing"):
        file.write_text(text)
        server, done = run("schemas", "upload", "-f", str(file), "t")
        assert done.exit_code == 2
        assert "expected" in done.stderr
        assert not server.requests


def test_a_version_and_all_exclude_each_other() -> None:
    _, done = run("schemas", "get", "-a", "-v", "1", "t")
    assert done.exit_code == 2


def test_java_classes_are_not_read() -> None:
    _, done = run("schemas", "extract", "-j", "x.jar", "-t", "avro", "-c", "X", "t")
    assert done.exit_code == 1
    assert "Java class" in done.stderr
