"""The work of `pulsar-py storage recover`: repairs a damaged data directory (edge).

It inspects the whole directory first. Sound files stay where they are. Each file that is replaced
is linked or copied into the side folder before, and `lost.txt` there lists the losses.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

from pulsar_py.cli.answering.answers import answer
from pulsar_py.cli.storage.jobs import (
    DAMAGED,
    LEDGERS,
    SOUND,
    Inspection,
    inspect,
    opened,
    read_cookie,
    shown_progress,
)
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.findings import Finding, OnProgress, Severity
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.managed_ledger.inspection import METADATA
from pulsar_py.metadata import instance_id, paths
from pulsar_py.metadata.inspection import SIDE_FILES, write_metadata
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.storage.inspection.coverage import ranges_text
from pulsar_py.storage.inspection.rebuilding import rebuild_storage
from pulsar_py.wire.payload import encode_entry

REPORT = "lost.txt"
LOST_MARKER = 0x7FFF
"""The marker type of entries that replace lost ones; Apache Pulsar's brokers don't write it."""


def filler() -> bytes:
    """The entry that replaces a lost one: a broker's marker, which consumers don't get."""
    metadata = MessageMetadata(
        producer_name="pulsar-py-recover", sequence_id=0, publish_time=0, marker_type=LOST_MARKER
    )
    return encode_entry(metadata, b"")


async def recover_directory(data_dir: Path, side: Path | None, output: str = "text") -> int:
    """Repair a directory, and print the losses; the exit code is 0 if it is sound afterwards."""
    async with opened(data_dir, is_exclusive=True) as disk:
        with shown_progress(data_dir, "reading") as on_progress:
            found = await inspect(data_dir, disk, on_progress=on_progress)
        if not found.is_damaged:
            answer(output, _outcome(data_dir, "sound"), "sound: nothing to do")
            return SOUND
        keeper = _Keeper(data_dir, new_side_folder(data_dir, side))
        lost = [str(each) for each in found.findings if each.severity is Severity.DAMAGE]
        lost.append("")
        with shown_progress(data_dir, "copying") as on_progress:
            lost += await _repair(data_dir, disk, found, keeper, on_progress)
        after = await inspect(data_dir, disk)
    await keeper.write_report(lost)
    remaining = [str(each) for each in after.findings if each.severity is Severity.DAMAGE]
    outcome = "still damaged" if remaining else "repaired"
    more = {"lost": [each for each in lost if each], "remaining": remaining}
    text = [*lost, *(f"still damaged: {each}" for each in remaining), f"kept aside: {keeper.side}"]
    answer(
        output,
        _outcome(data_dir, outcome) | more | {"keptAside": str(keeper.side)},
        "\n".join(text),
    )
    return DAMAGED if remaining else SOUND


def _outcome(data_dir: Path, outcome: str) -> dict[str, object]:
    return {"directory": str(data_dir), "outcome": outcome}


def new_side_folder(data_dir: Path, wanted: Path | None) -> Path:
    """The folder for the originals of replaced files.

    Raises:
        ConfigurationError: The folder of the command line exists.
    """
    if wanted is not None:
        if wanted.exists():
            raise ConfigurationError(f"--side: {wanted} exists already; give a new folder")
        return wanted
    number = 1
    while (folder := data_dir / f"recovered-{number}").exists():
        number += 1
    return folder


class _Keeper:
    """Copies files into the side folder, under their paths in the data directory."""

    def __init__(self, data_dir: Path, side: Path) -> None:
        self._data_dir = data_dir
        self.side = side

    async def keep(self, path: str) -> None:
        await asyncio.to_thread(self._keep, path)

    async def keep_ledgers(self, path: str) -> None:
        await self.keep(f"{LEDGERS}/{path}")

    def _keep(self, path: str) -> None:
        source, target = self._data_dir / path, self.side / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.hardlink_to(source)
        except OSError:
            shutil.copy2(source, target)  # the side folder is on another file system

    async def write_report(self, lines: Iterable[str]) -> None:
        disk = LocalDisk(self.side)
        try:
            await disk.make_directory("")
            await disk.replace(REPORT, "\n".join([*lines, ""]).encode())
        finally:
            await disk.close()


async def _repair(
    data_dir: Path, disk: LocalDisk, found: Inspection, keeper: _Keeper, on_progress: OnProgress
) -> list[str]:
    lost = []
    await _settle_instance(disk, found, keeper)
    if _must_write_metadata(found):
        lost += await _write_metadata(data_dir, found, keeper)
        lost += nameless_ledgers(found)
    survey = found.survey
    ends = {ledger_id: ledger.last_entry_id for ledger_id, ledger in survey.ledgers.items()}
    is_short = any(ends.get(key, -2) < last for key, last in found.expected.items())
    if survey.is_damaged or is_short:
        is_metadata_whole = not found.metadata.findings and not found.topics.broken_keys
        rebuilt = await rebuild_storage(
            disk,
            survey,
            filler=filler(),
            keep_aside=keeper.keep_ledgers,
            expected=found.expected,
            is_expected_complete=is_metadata_whole,
            on_progress=on_progress,
        )
        names = _topics_by_ledger(found)
        for ledger_id, ranges in sorted(rebuilt.lost.items()):
            count = sum(last - first + 1 for first, last in ranges)
            name = names.get(ledger_id, "no topic")
            lost.append(
                f"lost: {count} entries of ledger {ledger_id} ({name}): {ranges_text(ranges)}"
            )
        lost += (
            f"dropped: ledger {ledger_id}, to which nothing refers"
            for ledger_id in rebuilt.dropped_ledgers
        )
    return lost


def nameless_ledgers(found: Inspection) -> Iterator[str]:
    """Lines about ledgers with entries to which no key refers after keys were lost."""
    for ledger_id, ledger in sorted(found.survey.ledgers.items()):
        count = ledger.last_entry_id + 1
        if count and ledger_id not in found.expected:
            yield (
                f"lost: the topic of ledger {ledger_id} with {count} entries: "
                "no readable key refers to it, and a broker will delete it"
            )


async def _settle_instance(disk: LocalDisk, found: Inspection, keeper: _Keeper) -> None:
    """Give metadata and ledgers one instance id: the metadata's, if it has one."""
    keys, cookie = found.metadata.keys, await read_cookie(disk)
    if instance_id.PATH not in keys:
        keys[instance_id.PATH] = (cookie or str(uuid4())).encode()
        found.is_instance_new = True
    known = keys[instance_id.PATH].decode(errors="replace")
    if known != cookie:
        if cookie is not None:
            await keeper.keep_ledgers(instance_id.FILE)
        await disk.replace(instance_id.FILE, f"{known}\n".encode())


def _topics_by_ledger(found: Inspection) -> dict[int, str]:
    names = {}
    for topic in found.topics.topics.values():
        for each in topic.ledgers.ledgers:
            names[each.ledger_id] = topic.name
        for cursor_name, record in topic.cursors.items():
            names[record.cursor_ledger_id] = f"{topic.name}, cursor {cursor_name}"
    return names


def _must_write_metadata(found: Inspection) -> bool:
    return bool(
        found.is_instance_new
        or found.metadata.findings
        or found.topics.broken_keys
        or _broken_schemas(found)
    )


def _broken_schemas(found: Inspection) -> list[Finding]:
    return [each for each in found.findings if each.problem.startswith("/schemas/")]


async def _write_metadata(data_dir: Path, found: Inspection, keeper: _Keeper) -> list[str]:
    """Replace the metadata file by a new one without the keys that can't be read."""
    contents = found.metadata
    broken = set(found.topics.broken_keys)
    broken |= {each.problem.partition(": ")[0] for each in _broken_schemas(found)}
    lost = [
        f"lost: key {key}, its value was {contents.keys.pop(key).hex()}"
        for key in sorted(broken & contents.keys.keys())
    ]
    for log in found.survey.logs.values():
        _raise_ledger_ids(contents.sequences, (run[0] for run in log.runs.values()))
    _raise_ledger_ids(contents.sequences, found.survey.ledgers)
    path = data_dir / METADATA
    for suffix in SIDE_FILES:
        if path.with_name(path.name + suffix).exists():
            await keeper.keep(path.name + suffix)
    now_millis = SystemClock().wall_time_millis()
    await asyncio.to_thread(_replace_metadata, path, found, now_millis)
    return lost


def _raise_ledger_ids(sequences: dict[str, int], ledger_ids: Iterable[int]) -> None:
    """Raise the counter of ledger ids above all ids that were found, so that none is used twice."""
    highest = max(ledger_ids, default=0)
    present = sequences.get(paths.LEDGER_ID_COUNTER, 0)
    sequences[paths.LEDGER_ID_COUNTER] = max(present, highest + 1)


def _replace_metadata(path: Path, found: Inspection, now_millis: int) -> None:
    draft = path.with_name(path.name + ".recovered")
    for suffix in SIDE_FILES:
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    write_metadata(draft, found.metadata, now_millis=now_millis)
    for suffix in SIDE_FILES[1:]:  # SQLite would apply the old file's WAL to the new file
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    draft.replace(path)
