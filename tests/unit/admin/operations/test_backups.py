"""One backup at a time; who goes away ends it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pulsar_py.common.backup_archive import LIST_FILE, BackupList
from pulsar_py.common.disks.copied_file import CopiedFile, of_bytes
from pulsar_py.common.errors import StorageError
from tests.unit.admin.resources.conftest import Admin

PATH = "/admin/v2/brokers/backup"


class Source:
    """Two files in memory."""

    def __init__(self) -> None:
        self.open_count = 0

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Sequence[CopiedFile]]:
        self.open_count += 1
        yield [of_bytes("a", b"1" * 600), of_bytes("b/c", b"")]
        self.open_count -= 1


class Full:
    """A disk that is full."""

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Sequence[CopiedFile]]:
        raise StorageError("the disk is full")
        yield []


async def test_a_broker_in_memory_says_that_there_is_nothing(admin: Admin) -> None:
    status, reason = await admin.reason("GET", PATH)
    assert status == 405
    assert "in memory" in reason


async def test_the_archive_has_all_files(admin: Admin) -> None:
    admin.service.backups = source = Source()
    response = await admin.call("GET", PATH)
    assert (response.status, response.content_type) == (200, "application/x-tar")
    assert ("X-Backup-Bytes", "600") in response.headers
    with tarfile.open(fileobj=io.BytesIO(response.body)) as opened:
        assert opened.getnames() == ["a", "b/c", LIST_FILE]
        listed = BackupList.decode(opened.extractfile(LIST_FILE).read())  # type: ignore[union-attr]
    assert listed.files["a"].size_bytes == 600
    assert source.open_count == 0


async def test_one_at_a_time_and_a_caller_who_goes_lets_go(admin: Admin) -> None:
    admin.service.backups = source = Source()
    first = await admin.app.handle("GET", PATH, {}, b"")
    assert first.stream is not None
    await anext(first.stream)
    assert (await admin.reason("GET", PATH))[0] == 409
    await first.stream.aclose()
    assert await admin.status("GET", PATH) == 200
    assert await admin.status("HEAD", PATH) == 200
    assert source.open_count == 1  # That of the one that was given up: it did not end by itself.


async def test_what_can_not_be_made_now_is_an_error_and_not_an_answer_cut_short(
    admin: Admin,
) -> None:
    admin.service.backups = Full()
    status, reason = await admin.reason("GET", PATH)
    assert status >= 500
    assert "full" in reason
    admin.service.backups = Source()
    assert await admin.status("GET", PATH) == 200
