"""Prints the files of a storage, one record after the other (edge).

A record is a mapping of plain values, ready for JSON: `file`, `offset`, `kind`, and fields that
depend on the kind. A place that can't be read is a record of the kind `damaged`. Of entries their
lengths are shown and, if asked for, their first bytes in hexadecimal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.entry_logs.entry_log import DIRECTORY as LOG_DIRECTORY
from pulsar_py.storage.index.index_format import Page, split_key
from pulsar_py.storage.index.index_table import DIRECTORY as TABLE_DIRECTORY
from pulsar_py.storage.inspection.walking import (
    FoundBlock,
    Gap,
    may_be_torn,
    walk_blocks,
    walk_pages,
    walk_runs,
)
from pulsar_py.storage.journal.file_header import (
    FILE_HEADER_BYTES,
    decode_file_header,
    lost_headers,
)
from pulsar_py.storage.journal.journal_files import DIRECTORY as JOURNAL_DIRECTORY
from pulsar_py.storage.journal.journal_format import Section
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.location import Location
from pulsar_py.storage.shared.manifest import PATH as MANIFEST_PATH
from pulsar_py.storage.shared.manifest import Manifest

Value = str | int | bool | None | Sequence[object] | Mapping[str, object]
Record = dict[str, Value]


async def dump_manifest(disk: Disk) -> AsyncIterator[Record]:
    """The manifest's content."""
    try:
        manifest = Manifest.decode(await disk.read_whole(MANIFEST_PATH))
    except FileNotFoundError:
        return
    except CorruptDataError as error:
        yield {"file": MANIFEST_PATH, "offset": 0, "kind": "damaged", "problem": str(error)}
        return
    yield {
        "file": MANIFEST_PATH,
        "offset": 0,
        "kind": "manifest",
        "journal": list(manifest.mark),
        "logs": {
            str(log_id): [log.size_bytes, log.live_bytes] for log_id, log in manifest.logs.items()
        },
        "tables": list(manifest.tables),
        "next_log": manifest.next_log_id,
        "next_table": manifest.next_table_id,
    }


async def dump_journal(disk: Disk, *, shown_bytes: int = 0) -> AsyncIterator[Record]:
    """Headers, sections and records of all journal files, confirmed or not."""
    for path in await _files(disk, JOURNAL_DIRECTORY):
        file = await disk.open_read(path)
        try:
            header = decode_file_header(await file.read_at(0, FILE_HEADER_BYTES), path)
            if header is not None:
                yield {
                    "file": path,
                    "offset": 0,
                    "kind": "header",
                    "id": header.file_id,
                    "version": header.version,
                    "generation": header.generation,
                    "begun": header.is_begun,
                    "used_again": header.is_used_again,
                    "previous": [header.previous_id, header.previous_end],
                }
            life = header or lost_headers(int(path.rpartition("/")[2]))[0]
            start = life.first_offset if life.is_begun else file.size_bytes
            async for found in walk_blocks(file, life, start, None):
                if isinstance(found, Gap):
                    if found.end is not None or await may_be_torn(file, life, found.offset):
                        yield _damaged(path, found)
                    continue
                for record in _block(found, shown_bytes):
                    yield {"file": path, "offset": found.offset, **record}
        finally:
            await file.close()


def _block(found: FoundBlock, shown_bytes: int) -> list[Record]:
    records: list[Record] = [
        {
            "kind": "section",
            "ledger": section.ledger_id,
            **_section(section, shown_bytes),
        }
        for section in found.block.sections
    ]
    return records + [_ledger(ledger_id, record) for ledger_id, record in found.block.records]


async def dump_entries(disk: Disk, *, shown_bytes: int = 0) -> AsyncIterator[Record]:
    """Runs of all entry logs, whether or not the index refers to them."""
    for path in await _files(disk, LOG_DIRECTORY):
        file = await disk.open_read(path)
        try:
            async for found in walk_runs(file):
                if isinstance(found, Gap):
                    yield _damaged(path, found)
                    continue
                yield {
                    "file": path,
                    "offset": found.offset,
                    "kind": "run",
                    "ledger": found.run.ledger_id,
                    **_entries(found.run.first_entry_id, found.run.entries, shown_bytes),
                }
        finally:
            await file.close()


async def dump_index(disk: Disk) -> AsyncIterator[Record]:
    """Keys and values of all index tables."""
    for path in await _files(disk, TABLE_DIRECTORY):
        file = await disk.open_read(path)
        errors: list[CorruptDataError] = []
        try:
            table_id = int(path.rpartition("/")[2])
            async for offset, page in walk_pages(file, table_id, errors.append):
                for record in _page(page):
                    yield {"file": path, "offset": offset, **record}
        finally:
            await file.close()
        for error in errors:
            yield {"file": path, "offset": None, "kind": "damaged", "problem": str(error)}


def _page(page: Page) -> list[Record]:
    records: list[Record] = []
    for key, value in page.items():
        ledger_id, first_entry_id = split_key(key)
        if first_entry_id < 0:
            records.append(_ledger(ledger_id, LedgerRecord.decode(value)))
            continue
        location = Location.decode(value)
        records.append(
            {
                "kind": "location",
                "ledger": ledger_id,
                "first_entry": first_entry_id,
                "entries": location.count,
                "log": location.log_id,
                "at": location.offset,
                "bytes": location.length,
            }
        )
    return records


def _ledger(ledger_id: int, record: LedgerRecord) -> Record:
    return {
        "kind": "ledger",
        "ledger": ledger_id,
        "closed": record.is_closed,
        "fenced": record.is_fenced,
        "deleted": record.is_deleted,
        "last_entry": record.last_entry_id,
        "bytes": record.length_bytes,
        "metadata": {key: value.hex() for key, value in record.custom_metadata.items()},
    }


def _section(section: Section, shown_bytes: int) -> Record:
    if not section.runs:
        return _entries(section.first_entry_id, section.entries, shown_bytes)
    return {
        "first_entry": section.first_entry_id,
        "entries": len(section.lengths),
        "bytes": section.size_bytes,
        "runs": [
            {"log": each.log_id, "at": each.offset, "bytes": each.length, "entries": each.count}
            for each in section.runs
        ],
    }


def _entries(first_entry_id: int, entries: Sequence[EntryBytes], shown_bytes: int) -> Record:
    record: Record = {
        "first_entry": first_entry_id,
        "entries": len(entries),
        "bytes": sum(map(len, entries)),
    }
    if shown_bytes:
        record["data"] = [entry[:shown_bytes].hex() for entry in entries]
    return record


def _damaged(path: str, gap: Gap) -> Record:
    return {"file": path, "offset": gap.offset, "kind": "damaged", "end": gap.end}


async def _files(disk: Disk, directory: str) -> list[str]:
    names = await disk.list_directory(directory)
    return [f"{directory}/{name}" for name in names if name.isdigit()]
