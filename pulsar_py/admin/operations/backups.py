"""REST resource of our own: a backup of the running broker, as a tar file (edge).

    GET /admin/v2/brokers/backup     an archive of `common.backup_archive`, streamed

The header `X-Backup-Bytes` has about the size of the whole. The files are read in parts, no faster
than the caller takes them; one backup is made at a time. A caller that goes away, or does not read
for the time that a request may take, ends it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.http_messages import HttpError, Request, Response
from pulsar_py.admin.router import Route
from pulsar_py.common.backup_archive import Archive
from pulsar_py.common.disks.copied_file import BackupSource, CopiedFile
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

__all__ = ["Backups"]

TAR: Final = "application/x-tar"
SIZE_HEADER: Final = "X-Backup-Bytes"

_REFUSALS: Final = (
    HTTPStatus.CONFLICT,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.INSUFFICIENT_STORAGE,
)


class Backups:
    """Sends what a broker keeps on its disk."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._is_busy = False

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            Route(
                "GET",
                "/admin/v2/brokers/backup",
                self.make,
                Action.BACK_UP,
                produces=TAR,
                errors=_REFUSALS,
            ),
        )

    async def make(self, request: Request) -> Response:
        """Return a backup, whose files are brought together before the answer begins.

        Raises:
            HttpError: 405 where there is nothing to back up, 409 while another one is made.
            StorageError, MetadataError: It can't be made now.
        """
        source = self._broker.backups
        if source is None:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "this broker keeps nothing in a data directory: it works in memory, or with "
                "ledgers and metadata of a cluster, which have backups of their own",
            )
        if self._is_busy:
            raise HttpError(HTTPStatus.CONFLICT, "a backup is being made; one at a time")
        if request.method == "HEAD":
            return Response(HTTPStatus.OK, content_type=TAR)
        parts = self._parts(source)
        # A generator that has begun is closed in any case, with the files let go.
        size_bytes = int(await anext(parts))
        headers = ((SIZE_HEADER, str(size_bytes)),)
        return Response(HTTPStatus.OK, content_type=TAR, headers=headers, stream=_rest(parts))

    async def _parts(self, source: BackupSource) -> AsyncGenerator[bytes, None]:
        """Yield the size as text, then the archive."""
        self._is_busy = True
        try:
            async with source.opened() as files:
                yield str(sum(file.size_bytes for file in files)).encode()
                async with aclosing(self._archived(files)) as archived:
                    async for part in archived:
                        yield part
        finally:
            self._is_busy = False

    async def _archived(self, files: Sequence[CopiedFile]) -> AsyncGenerator[bytes, None]:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and seldom needed

        broker = self._broker
        now = datetime.fromtimestamp(broker.clock.wall_time_millis() // 1000, UTC)
        archive = Archive(
            version("pulsar_py"), now.strftime("%Y-%m-%dT%H:%M:%SZ"), broker.config.clusterName
        )
        for file in files:
            yield archive.begin(file.path, file.size_bytes)
            async for part in file.parts():
                yield archive.add(part)
            if padding := archive.end():
                yield padding
        yield archive.close()


async def _rest(parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(parts):
        async for part in parts:
            yield part
