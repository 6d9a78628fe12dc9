"""The work of `pulsar-py storage`: inspects a data directory, and prints the results (edge).

Results go to standard output. Progress goes to standard error if that is a terminal.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError

from pulsar_py.cli.answering.json_lines import in_camel_case, json_line
from pulsar_py.cli.backups.progress import progress
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.errors import (
    ConfigurationError,
    DirectoryLockedError,
    FormatVersionError,
    PulsarError,
)
from pulsar_py.common.findings import Finding, OnProgress, Severity, no_progress
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot
from pulsar_py.managed_ledger.inspection import (
    METADATA,
    Topics,
    check_topics,
    expected_ends,
    read_cursors,
    read_topics,
)
from pulsar_py.metadata import instance_id
from pulsar_py.metadata.inspection import MetadataContents, read_metadata
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaLocator
from pulsar_py.storage.inspection.dumping import (
    Record,
    dump_entries,
    dump_index,
    dump_journal,
    dump_manifest,
)
from pulsar_py.storage.inspection.reading import SurveyedStore
from pulsar_py.storage.inspection.survey import DIRECTORIES, Survey, survey_storage

LEDGERS = "ledgers"
SOUND, DAMAGED, USAGE = 0, 1, 2
_SCHEMAS = "/schemas/"
_SHOWN_RANGES_COUNT = 100


def run(job: Coroutine[object, object, int]) -> int:
    """Run a command; returns its exit code. An error is printed as one line."""
    try:
        return asyncio.run(job)
    except BrokenPipeError:
        raise  # whoever read the output has enough, and click ends quietly
    except (ConfigurationError, DirectoryLockedError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return USAGE
    except (PulsarError, OSError, sqlite3.Error) as error:
        sys.stderr.write(f"Error: {error}\n")
        return DAMAGED


def answered(work: Callable[[], None]) -> int:
    """As `run`, for work that needs no loop."""

    async def job() -> int:
        work()
        return SOUND

    return run(job())


@dataclass(slots=True)
class Inspection:
    """The results of inspecting a data directory."""

    survey: Survey
    metadata: MetadataContents
    topics: Topics
    expected: dict[int, int]
    """By ledger that metadata refers to: the least id that its last entry has to have."""
    findings: list[Finding] = field(default_factory=list)
    is_instance_new: bool = False
    """Whether a repair has added the instance's id to the metadata."""

    @property
    def is_damaged(self) -> bool:
        """Whether a finding is damage, not only a note."""
        return any(each.severity is Severity.DAMAGE for each in self.findings)


@asynccontextmanager
async def opened(data_dir: Path, *, is_exclusive: bool = False) -> AsyncIterator[LocalDisk]:
    """Open the storage in a data directory, and lock it for the context.

    Args:
        data_dir: The broker's data directory.
        is_exclusive: Whether to keep out other readers too, for a repair.

    Raises:
        ConfigurationError: The directory is not a data directory.
        DirectoryLockedError: A broker uses it.
    """
    if not (data_dir / METADATA).exists() and not (data_dir / LEDGERS).is_dir():
        raise ConfigurationError(
            f"{data_dir} is not a data directory: it has neither {METADATA} nor {LEDGERS}"
        )
    disk = LocalDisk(data_dir / LEDGERS)
    try:
        await (disk.lock() if is_exclusive else disk.lock_shared())
        yield disk
    finally:
        await disk.close()


async def inspect(
    data_dir: Path,
    disk: LocalDisk,
    *,
    reads_logs: bool = True,
    on_progress: OnProgress = no_progress,
) -> Inspection:
    """Inspect metadata, ledgers, topics, cursors and schemas, and how they refer to each other.

    Args:
        data_dir: The broker's data directory.
        disk: Its storage, from `opened`.
        reads_logs: Whether to read all entry logs; otherwise only their indexes.
        on_progress: Called with the bytes that were read.

    Raises:
        FormatVersionError: A file has another format version.
    """
    with tempfile.TemporaryDirectory(prefix="pulsar-py-") as scratch:
        metadata = await asyncio.to_thread(read_metadata, data_dir / METADATA, Path(scratch))
    survey = await survey_storage(disk, reads_logs=reads_logs, on_progress=on_progress)
    if not survey.ledgers and not survey.findings and not (data_dir / METADATA).exists():
        metadata.findings.clear()  # an empty directory
    topics = read_topics(metadata.keys)
    await read_cursors(topics, metadata.keys, SurveyedStore(disk, survey), SystemClock())
    schemas, broken = schema_ends(metadata.keys)
    last_entries = {key: ledger.last_entry_id for key, ledger in survey.ledgers.items()}
    infos = {key: ledger.record.info(key) for key, ledger in survey.ledgers.items()}
    findings = [
        *(_below_ledgers(each) for each in survey.findings),
        *metadata.findings,
        *topics.findings,
        *broken,
        *check_topics(topics, last_entries, infos),
        *check_schemas(schemas, last_entries),
        *check_instance(metadata.keys, await read_cookie(disk), has_ledgers=bool(survey.ledgers)),
    ]
    expected = schemas | expected_ends(topics)
    findings += unreferenced(survey, expected)
    return Inspection(survey, metadata, topics, expected, findings)


def _below_ledgers(finding: Finding) -> Finding:
    path = f"{LEDGERS}/{finding.path}"
    return Finding(path, finding.offset, finding.problem, finding.severity)


def schema_ends(keys: Mapping[str, bytes]) -> tuple[dict[int, int], list[Finding]]:
    """The positions of stored schemas, by ledger, and findings of records that can't be read."""
    ends: dict[int, int] = {}
    findings = []
    for key, value in keys.items():
        if not key.startswith(_SCHEMAS):
            continue
        try:
            locator = SchemaLocator.FromString(value)
        except DecodeError as error:
            findings.append(Finding(METADATA, None, f"{key}: {error}"))
            continue
        for entry in locator.index:
            ends[entry.position.ledgerId] = entry.position.entryId
    return ends, findings


def check_schemas(ends: Mapping[int, int], last_entries: Mapping[int, int]) -> Iterator[Finding]:
    """Findings of schemas whose ledger is missing or too short."""
    for ledger_id, entry_id in ends.items():
        if last_entries.get(ledger_id, -1) < entry_id:
            yield Finding(METADATA, None, f"schemas: ledger {ledger_id} is missing or empty")


async def read_cookie(disk: LocalDisk) -> str | None:
    """The instance's id in the file beside the ledgers; None if the file is missing."""
    try:
        return (await disk.read_whole(instance_id.FILE)).decode(errors="replace").strip()
    except FileNotFoundError:
        return None


def check_instance(
    keys: Mapping[str, bytes], cookie: str | None, *, has_ledgers: bool
) -> Iterator[Finding]:
    """A finding if metadata and ledgers belong to two instances."""
    value = keys.get(instance_id.PATH)
    known = None if value is None else value.decode(errors="replace")
    if known != cookie or (known is None and has_ledgers):
        text = f"the ledgers belong to instance {cookie}, the metadata to instance {known}"
        yield Finding(f"{LEDGERS}/{instance_id.FILE}", 0 if cookie else None, text)


def unreferenced(survey: Survey, expected: Mapping[int, int]) -> Iterator[Finding]:
    """Notes of ledgers that no metadata refers to.

    Most are left by a broker that was killed while it deleted a topic.
    """
    for ledger_id, ledger in survey.ledgers.items():
        if ledger_id not in expected:
            text = (
                f"ledger {ledger_id} with {ledger.last_entry_id + 1} entries: no topic refers to it"
            )
            yield Finding(LEDGERS, None, text, Severity.NOTE)


# verify


async def verify_directory(data_dir: Path, output: str) -> int:
    """Inspect a directory and print the findings; returns the exit code."""
    async with opened(data_dir) as disk:
        try:
            with shown_progress(data_dir, "verifying") as on_progress:
                found = await inspect(data_dir, disk, on_progress=on_progress)
        except FormatVersionError as error:
            _print_findings([Finding.of(error, str(data_dir))], output)
            return DAMAGED
    _print_findings(found.findings, output)
    if output == "text":
        ledgers = found.survey.ledgers.values()
        entries = sum(each.last_entry_id + 1 for each in ledgers)
        verdict = "damaged" if found.is_damaged else "sound"
        print_line(
            f"{verdict}: {len(found.topics.topics)} topics, {len(ledgers)} ledgers, "
            f"{entries} entries, {len(found.metadata.keys)} keys"
        )
    return DAMAGED if found.is_damaged else SOUND


def _print_findings(findings: Iterable[Finding], output: str) -> None:
    for each in findings:
        if output == "json":
            record = {
                "severity": each.severity.value,
                "file": each.path,
                "offset": each.offset,
                "problem": each.problem,
            }
            print_line(json.dumps(record))
        else:
            print_line(f"{each.severity.value}: {each}")


def print_line(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")


# dump


async def dump_directory(
    data_dir: Path, output: str, kinds: Sequence[str], shown_bytes: int
) -> int:
    """Print the records of some kinds; the exit code is 1 if one can't be read."""
    is_damaged = False
    async with opened(data_dir) as disk:
        for kind in kinds:
            async for record in _records(data_dir, disk, kind, shown_bytes):
                is_damaged |= record.get("kind") == "damaged"
                print_line(json_line(in_camel_case(record)) if output == "json" else _text(record))
    return DAMAGED if is_damaged else SOUND


async def _records(
    data_dir: Path, disk: LocalDisk, kind: str, shown_bytes: int
) -> AsyncIterator[Record]:
    sources = {
        "manifest": lambda: dump_manifest(disk),
        "journal": lambda: dump_journal(disk, shown_bytes=shown_bytes),
        "entries": lambda: dump_entries(disk, shown_bytes=shown_bytes),
        "index": lambda: dump_index(disk),
    }
    if kind in sources:
        async for record in sources[kind]():
            yield record
        return
    found = await inspect(data_dir, disk)
    for record in _topic_records(found.topics) if kind == "topics" else _cursors(found.topics):
        yield record


def _text(record: Record) -> str:
    """A record as `file:offset kind name=value ...`."""
    rest = dict(record)
    place = f"{rest.pop('file', '')}:{rest.pop('offset', '')}"
    kind = rest.pop("kind", "")
    return " ".join([place, str(kind), *(f"{name}={value}" for name, value in rest.items())])


def _topic_records(topics: Topics) -> Iterator[Record]:
    for topic in topics.topics.values():
        yield {
            "file": METADATA,
            "offset": None,
            "kind": "topic",
            "topic": topic.name,
            "ledgers": [
                {
                    "ledger": each.ledger_id,
                    "closed": each.is_closed,
                    "entries": each.entries_count,
                    "bytes": each.size_bytes,
                }
                for each in topic.ledgers.ledgers
            ],
            "properties": dict(topic.ledgers.properties),
        }


def _cursors(topics: Topics) -> Iterator[Record]:
    for topic in topics.topics.values():
        for name, record in topic.cursors.items():
            yield {
                "file": METADATA,
                "offset": None,
                "kind": "cursor",
                "topic": topic.name,
                "cursor": name,
                "cursor_ledger": record.cursor_ledger_id,
                **_cursor_state(topic.states.get(name, record.snapshot)),
            }


def _cursor_state(state: CursorSnapshot) -> Record:
    acknowledged = state.individual_deleted_messages
    ranges = list(acknowledged.ranges())
    return {
        "mark_delete": str(state.mark_delete_position),
        "ranges_count": len(ranges),
        "ranges": [f"{each[0]}:{each[1]}-{each[2]}" for each in ranges[:_SHOWN_RANGES_COUNT]],
        "batches_count": len(state.batch_deleted_indexes),
        "properties": dict(state.properties),
    }


# stats


async def stats_of_directory(data_dir: Path, output: str) -> int:
    """Print the numbers of the directory and of its topics; returns the exit code."""
    async with opened(data_dir) as disk:
        found = await inspect(data_dir, disk, reads_logs=False)
    total, topics = totals(found), topic_totals(found)
    if output == "json":
        print_line(json_line(in_camel_case({"kind": "total", **total})))
        for topic in topics:
            print_line(json_line(in_camel_case({"kind": "topic", **topic})))
        return SOUND
    for name, value in total.items():
        print_line(f"{name:20} {value}")
    for topic in topics:
        print_line(" ".join(f"{name}={value}" for name, value in topic.items()))
    return SOUND


def totals(found: Inspection) -> dict[str, int | float]:
    """The numbers of the whole directory, by name."""
    logs = found.survey.manifest.logs.values()
    size = sum(log.size_bytes for log in logs)
    live = sum(log.live_bytes for log in logs)
    ledgers = found.survey.ledgers
    return {
        "topics": len(found.topics.topics),
        "cursors": sum(len(topic.cursors) for topic in found.topics.topics.values()),
        "ledgers": len(ledgers),
        "unreferenced_ledgers": len(ledgers.keys() - found.expected.keys()),
        "entries": sum(each.last_entry_id + 1 for each in ledgers.values()),
        "entry_bytes": sum(each.record.length_bytes for each in ledgers.values()),
        "entry_logs": len(logs),
        "entry_log_bytes": size,
        "garbage_bytes": size - live,
        "garbage_share": round((size - live) / size, 4) if size else 0.0,
        "index_tables": len(found.survey.manifest.tables),
        "journal_files": len(found.survey.journal),
        "metadata_keys": len(found.metadata.keys),
    }


def topic_totals(found: Inspection) -> list[dict[str, str | int]]:
    """The numbers of each topic, the largest topic first."""
    rows: list[dict[str, str | int]] = []
    for topic in found.topics.topics.values():
        sums: Counter[str] = Counter()
        for each in topic.ledgers.ledgers:
            ledger = found.survey.ledgers.get(each.ledger_id)
            if ledger is not None:
                sums["entries"] += ledger.last_entry_id + 1
                sums["bytes"] += ledger.record.length_bytes
        rows.append(
            {
                "topic": topic.name,
                "ledgers": len(topic.ledgers.ledgers),
                "cursors": len(topic.cursors),
                "entries": sums["entries"],
                "bytes": sums["bytes"],
            }
        )
    return sorted(rows, key=lambda row: (-int(row["bytes"]), str(row["topic"])))


# progress


@contextmanager
def shown_progress(data_dir: Path, what: str) -> Iterator[OnProgress]:
    """Show a bar for reading a whole directory, on a terminal; the value moves it by bytes."""
    total = sum(
        path.stat().st_size
        for name in DIRECTORIES
        for path in (data_dir / LEDGERS / name).glob("*")
    )
    with progress(what, total) as moved:
        yield lambda _, size_bytes: moved(size_bytes)
