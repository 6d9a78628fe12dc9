"""Checks that no other running broker is registered under this broker's id (edge).

A record at the broker's key was left by a process that was killed, or belongs to a running one: two
running brokers with one id would take each other's bundles for ever. To tell the cases apart, the
new process overwrites the record with its own report. A running broker watches its record and
writes it again; a killed one does not. So a broker that is restarted after a kill takes over its
record after `ANSWER_SECONDS`, without waiting until the former session expires, while a second
process with the same id ends with an error.

A process that stands still for longer than `ANSWER_SECONDS` counts as killed. When it continues, it
finds another process's record at its key, and takes no more bundles.
"""

from __future__ import annotations

from typing import Final

from pulsar_py.common.errors import (
    ConfigurationError,
    MetadataBadVersionError,
    MetadataNotFoundError,
    MetadataUnavailableError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Versioned
from pulsar_py.server.load.broker_report import BrokerReport

ANSWER_SECONDS: Final = 1.0
"""The time in which a running broker writes its record again."""
LOOK_SECONDS: Final = 0.1
"""The time between two reads of the record."""
ATTEMPTS_COUNT: Final = 10
"""The most attempts to overwrite a record that others change at the same time."""


async def require_free_id(metadata: MetadataStore, own: BrokerReport, clock: Clock) -> None:
    """Return if no other running broker is registered under this broker's id.

    Raises:
        ConfigurationError: Another running broker is.
        MetadataError: The store can't be read or written now.
    """
    path = paths.broker(own.broker_id)
    for _ in range(ATTEMPTS_COUNT):
        await metadata.sync(path)
        stored = await metadata.get(path)
        if stored is None or not stored.value:
            return
        try:
            version = await metadata.put(path, own.encode(), expected_version=stored.version)
        except (MetadataBadVersionError, MetadataNotFoundError):
            continue  # it has changed: look again
        found = await _changed(metadata, path, version, clock)
        if found is None:
            return
        if found.owner == stored.owner:
            raise _in_use(own, stored)
    raise MetadataUnavailableError(
        f"{path}: others changed the record {ATTEMPTS_COUNT} times meanwhile"
    )


async def _changed(
    metadata: MetadataStore, path: str, version: int, clock: Clock
) -> Versioned | None:
    """The record as another process changed it in time; None if none did, or it is gone."""
    deadline = clock.monotonic_seconds() + ANSWER_SECONDS
    while clock.monotonic_seconds() < deadline:
        await clock.sleep(LOOK_SECONDS)
        await metadata.sync(path)
        found = await metadata.get(path)
        if found is None:
            return None
        if found.version != version:
            return found
    return None


def _in_use(own: BrokerReport, stored: Versioned) -> ConfigurationError:
    try:
        other = BrokerReport.decode(own.broker_id, stored.value)
        url = other.pulsar_url or other.pulsar_url_tls
    except ValueError:
        url = None
    return ConfigurationError(
        f"another broker works by the id {own.broker_id}, at {url or 'an unknown address'}: "
        "each broker of a cluster needs an id of its own, which is advertisedAddress and "
        "webServicePort; stop that one, or change a setting of this one"
    )
