"""What is broken is named, with file and offset; what is not broken, is not."""

from __future__ import annotations

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import FormatVersionError
from pulsar_py.common.findings import Severity
from pulsar_py.storage.entry_logs.entry_log_format import encode_run
from pulsar_py.storage.inspection.survey import Survey, survey_storage
from tests.unit.storage.inspection.damaged_disk import (
    LAST,
    copy,
    cut,
    disk_of_large_entries,
    filled_disk,
    flip,
    newest,
    oldest,
)


def damage(survey: Survey) -> list[str]:
    return [str(each) for each in survey.findings if each.severity is Severity.DAMAGE]


async def test_a_sound_storage_has_no_findings_and_all_ledgers() -> None:
    disk = await filled_disk()
    before = {path: bytes(content.data) for path, content in disk._files.items()}
    survey = await survey_storage(disk)
    assert damage(survey) == []
    assert {key: each.last_entry_id for key, each in survey.ledgers.items()} == dict.fromkeys(
        (1, 2, 3, 4), LAST
    )
    assert not any(each.lost() for each in survey.ledgers.values())
    assert survey.ledgers[4].journal
    assert {path: bytes(content.data) for path, content in disk._files.items()} == before


async def test_an_empty_disk_is_sound() -> None:
    assert (await survey_storage(MemoryDisk())).findings == []


@pytest.mark.parametrize("directory", ["entries", "index", "journal"])
async def test_a_missing_file_is_named(directory: str) -> None:
    disk = await filled_disk()
    path = await newest(disk, directory)
    await disk.remove(path)
    found = "\n".join(damage(await survey_storage(disk)))
    assert path.lstrip("0") in found or "journal file" in found


@pytest.mark.parametrize("directory", ["entries", "index", "journal"])
async def test_a_cut_file_is_named(directory: str) -> None:
    disk = await filled_disk()
    path = await oldest(disk, directory)
    await cut(disk, path, len(await disk.read_whole(path)) // 3)
    survey = await survey_storage(disk)
    if directory == "journal":  # what follows its last whole block can't be told from a torn write
        assert 4 not in survey.ledgers or survey.ledgers[4].last_entry_id < LAST
    else:
        assert any(path in text for text in damage(survey))


@pytest.mark.parametrize(
    ("directory", "offset"),
    [("entries", 20), ("entries", 200), ("index", 40), ("index", -40), ("journal", 50)],
)
async def test_a_flipped_bit_is_named_with_its_place(directory: str, offset: int) -> None:
    disk = await filled_disk()
    path = await oldest(disk, directory)
    if directory == "journal":
        offset += (await survey_storage(disk)).journal[0].start
    await flip(disk, path, offset)
    survey = await survey_storage(disk)
    assert survey.is_damaged
    assert any(text.startswith(path) for text in damage(survey)), damage(survey)


async def test_the_manifest_missing_or_damaged() -> None:
    disk = await filled_disk()
    other = copy(disk)
    await disk.remove("MANIFEST")
    survey = await survey_storage(disk)
    assert damage(survey) == ["MANIFEST: missing, and there is data"]
    assert survey.ledgers.keys() == {1, 2, 3, 4}
    await flip(other, "MANIFEST", 40)
    survey = await survey_storage(other)
    assert damage(survey) == ["MANIFEST: offset 0: the checksum does not match"]
    assert survey.ledgers.keys() == {1, 2, 3, 4}


async def test_a_damaged_run_says_which_entries_are_lost() -> None:
    disk = await filled_disk()
    await flip(disk, await oldest(disk, "entries"), 200)
    survey = await survey_storage(disk)
    assert survey.ledgers[1].lost()[0][0] == 0
    assert any("of ledger 1 can't be read" in text for text in damage(survey))


async def test_leftovers_are_notes() -> None:
    disk = await filled_disk()
    await disk.replace("entries/0000000099", b"x")
    survey = await survey_storage(disk)
    assert not survey.is_damaged
    assert [each.path for each in survey.findings] == ["entries/0000000099"]


async def test_a_torn_end_of_the_journal_is_a_note() -> None:
    disk = await filled_disk()
    path = await newest(disk, "journal")
    data = (await disk.read_whole(path)).rstrip(b"\0")
    data += bytes(-len(data) % 512)
    await disk.replace(path, data + b"JBL2 torn")
    survey = await survey_storage(disk)
    assert not survey.is_damaged
    assert [(each.path, each.offset) for each in survey.findings] == [(path, len(data))]


async def test_another_format_version_ends_it() -> None:
    disk = await filled_disk()
    await flip(disk, await oldest(disk, "entries"), 11)
    with pytest.raises(FormatVersionError, match="entries/"):
        await survey_storage(disk)


async def test_entries_that_only_the_journal_refers_to_are_found() -> None:
    disk = await disk_of_large_entries()
    survey = await survey_storage(disk)

    assert survey.findings == []
    assert {key: each.last_entry_id for key, each in survey.ledgers.items()} == dict.fromkeys(
        (1, 2, 3, 4), LAST
    )
    assert not any(each.lost() for each in survey.ledgers.values())
    assert not survey.ledgers[4].journal
    referred = {place.log_id for place in survey.ledgers[4].runs.values()}
    assert referred.isdisjoint(survey.manifest.logs)

    path = await newest(disk, "entries")
    await flip(disk, path, 200)
    damaged = await survey_storage(disk)
    assert any(path in each and "of ledger 4" in each for each in damage(damaged))
    assert damaged.ledgers[4].lost()


async def test_what_a_torn_write_left_behind_all_that_is_referred_to_is_no_damage() -> None:
    disk = await disk_of_large_entries()
    path = await newest(disk, "entries")
    data = await disk.read_whole(path)
    run = b"".join(encode_run(4, 500, [b"never confirmed"]))
    await disk.replace(path, data + bytes(512) + run)

    assert damage(await survey_storage(disk)) == []
