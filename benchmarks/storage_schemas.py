"""Measure a topic with many versions of its schema; a part of `make bench-storage`.

Alone: `python -m benchmarks.storage_schemas`.

Versions of an Avro schema, each compatible with the one before it by the default strategy, are
registered one after another, and read by version. What a version writes is counted by the system,
for the first thousand and the last thousand, and so is the locator, which every version rewrites.
The broker is then started again: the first registration and the first GET_SCHEMA find no cache.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.limited_rows import exit_with, print_limited
from benchmarks.raw_client import RawConnection
from benchmarks.targets import Target, start_ours
from pulsar_py.metadata.embedded import FILE
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, Schema

VERSIONS = 2_000
"""By default: 10,000 take minutes (`--versions 10000`)."""
TOPIC = "persistent://public/default/schemas"
LOCATOR = "/schemas/public/default/schemas"
PART = 10
"""One part in ten is the part whose bytes are counted."""
GETS = 200

LIMITS = {
    "schema_register_millis": 50.0,
    "schema_get_millis": 5.0,
    "schema_first_get_millis": 5.0,
    "schema_get_after_start_millis": 5.0,
    "schema_first_register_millis": 50.0,
    "schema_first_register_cpu_millis": 50.0,
    "schema_last_to_first_kilobytes": 1.2,
    "schema_locator_kilobytes": 1024.0,
}


def _definition(number: int) -> bytes:
    """Version `number`; its last field has a default, and so goes and comes."""
    fields = ",".join(
        f'{{"name":"{name}","type":["null","string"],"default":null}}'
        for name in ("customer", "street", "city", f"added_{number}")
    )
    return f'{{"type":"record","name":"Order","fields":[{fields}]}}'.encode()


async def _register(connection: RawConnection, number: int) -> None:
    command = BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA)
    request = command.getOrCreateSchema
    request.request_id, request.topic = connection.next_request_id(), TOPIC
    request.schema.name, request.schema.type = "", Schema.Avro
    request.schema.schema_data = _definition(number)
    answer = await connection.request(command, BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE)
    version = answer.getOrCreateSchemaResponse.schema_version
    if version != number.to_bytes(8):
        raise RuntimeError(f"version {number} was answered with {answer}")


async def _get(connection: RawConnection, number: int) -> None:
    command = BaseCommand(type=BaseCommand.GET_SCHEMA)
    request = command.getSchema
    request.request_id, request.topic = connection.next_request_id(), TOPIC
    request.schema_version = number.to_bytes(8)
    answer = await connection.request(command, BaseCommand.GET_SCHEMA_RESPONSE)
    if answer.getSchemaResponse.schema.schema_data != _definition(number):
        raise RuntimeError(f"version {number} was answered with {answer}")


async def _millis(work: Any) -> float:  # Any: a coroutine
    started = time.perf_counter()
    await work
    return (time.perf_counter() - started) * 1e3


async def _connected(target: Target) -> RawConnection:
    connection = await RawConnection.connect("127.0.0.1", target.port)
    await connection.lookup(TOPIC)
    await connection.create_producer(f"{TOPIC}-beside", 1)
    return connection


def _written_kilobytes(target: Target) -> float:
    for line in Path(f"/proc/{target.pid}/io").read_text().splitlines():
        if line.startswith("write_bytes"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the system does not count writes")


async def _fill(target: Target, versions: int, figures: dict[str, float]) -> None:
    connection = await _connected(target)
    await connection.create_producer(TOPIC, 2)
    part = versions // PART
    began, written = time.perf_counter(), _written_kilobytes(target)
    millis: list[float] = []
    for number in range(versions - 1):
        if number == part:
            figures["schema_first_kilobytes_a_version"] = (
                _written_kilobytes(target) - written
            ) / part
        if number == versions - part:
            written = _written_kilobytes(target)
        millis.append(await _millis(_register(connection, number)))
    figures["schema_last_kilobytes_a_version"] = (_written_kilobytes(target) - written) / part
    figures["schema_last_to_first_kilobytes"] = (
        figures["schema_last_kilobytes_a_version"] / figures["schema_first_kilobytes_a_version"]
    )
    figures["schema_seconds"] = time.perf_counter() - began
    figures["schema_register_millis"] = statistics.median(millis[-part:])
    figures["schema_register_p99_millis"] = sorted(millis[-part:])[int(part * 0.99)]
    figures["schema_get_millis"] = await _median_get(connection, versions - 1)
    connection.close()


async def _median_get(connection: RawConnection, versions: int) -> float:
    chance = random.Random(1)
    return statistics.median(
        [await _millis(_get(connection, chance.randrange(versions))) for _ in range(GETS)]
    )


async def _measure_registration(target: Target, versions: int, figures: dict[str, float]) -> None:
    connection = await _connected(target)
    cpu = target.cpu_seconds()
    figures["schema_first_register_millis"] = await _millis(_register(connection, versions - 1))
    figures["schema_first_register_cpu_millis"] = (target.cpu_seconds() - cpu) * 1e3
    connection.close()


async def _measure_get(target: Target, versions: int, figures: dict[str, float]) -> None:
    connection = await _connected(target)
    figures["schema_first_get_millis"] = await _millis(_get(connection, versions // 2))
    figures["schema_get_after_start_millis"] = await _median_get(connection, versions)
    connection.close()


def _locator_kilobytes(data_dir: Path) -> float:
    (path,) = data_dir.rglob(FILE)
    connection = sqlite3.connect(path)
    query = "SELECT length(value) FROM keys WHERE path = ?"
    (size,) = connection.execute(query, (LOCATOR,)).fetchone()
    connection.close()
    return int(size) / 1024


def measure_schemas(versions: int, directory: Path) -> dict[str, float]:
    """All figures of so many versions."""
    figures: dict[str, float] = {"versions": versions}
    directory.mkdir(parents=True, exist_ok=True)
    data_dir = Path(tempfile.mkdtemp(prefix="schemas-", dir=directory))
    target = start_ours(directory, data_dir=data_dir)
    try:
        uvloop.run(_fill(target, versions, figures))
        for measure in (_measure_registration, _measure_get):
            target.data_dir = None
            target.stop()
            target = start_ours(directory, data_dir=data_dir)
            uvloop.run(measure(target, versions, figures))
        target.data_dir = None
        target.stop()
        figures["schema_locator_kilobytes"] = _locator_kilobytes(data_dir)
    finally:
        target.data_dir = data_dir
        target.stop()
        shutil.rmtree(data_dir, ignore_errors=True)
    return figures


def print_schemas(figures: dict[str, float]) -> list[str]:
    """One line a figure; returns what is beyond its limit."""
    return print_limited(f"a schema of {figures['versions']:,.0f} versions", figures, LIMITS)


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=VERSIONS)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    exit_with(print_schemas(measure_schemas(arguments.versions, arguments.directory)))


if __name__ == "__main__":
    main()
