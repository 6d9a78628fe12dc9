"""Compares the ledgers and positions in metadata with the ledgers that exist, for tools.

`read_topics` and `check_topics` are pure; `read_cursors` reads cursors as a broker does, from a
store that changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pulsar_py.common.errors import CorruptDataError, MetadataError, StorageError
from pulsar_py.common.findings import Finding, Severity
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.store import LedgerInfo, LedgerStore
from pulsar_py.managed_ledger.cursors.format import (
    NO_LEDGER,
    CursorRecord,
    CursorSnapshot,
    decode_cursor_record,
    owned_ledgers,
)
from pulsar_py.managed_ledger.cursors.store import CursorStore
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.ledger_format import (
    ROOT,
    LedgerList,
    LedgerRecord,
    cursor_path,
    decode_name,
    decode_unchecked,
    ledger_path,
    misplaced_ids,
)
from pulsar_py.metadata.memory_store import MemoryMetadataStore

METADATA = "metadata.sqlite"
MAX_ENTRIES_PER_LEDGER = 50_000_000
"""The most entries of a ledger that any setting allows; a higher number is damage."""
_PARTS_OF_A_CURSOR = 6
"""Parts of a cursor's path: managed-ledgers, tenant, namespace, persistent, topic, cursor."""


@dataclass(slots=True)
class Topic:
    """One managed ledger."""

    name: str
    ledgers: LedgerList
    cursors: dict[str, CursorRecord] = field(default_factory=dict)
    states: dict[str, CursorSnapshot] = field(default_factory=dict)
    """The cursors' states, as a broker would recover them."""


@dataclass(slots=True)
class Topics:
    """All managed ledgers, and findings about keys that can't be read."""

    topics: dict[str, Topic] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    broken_keys: list[str] = field(default_factory=list)

    def report(self, key: str, problem: str, severity: Severity = Severity.DAMAGE) -> None:
        """Add a finding about a key."""
        self.findings.append(Finding(METADATA, None, f"{key}: {problem}", severity))


def read_topics(keys: Mapping[str, bytes]) -> Topics:
    """Decode the records of managed ledgers and cursors among all keys of the metadata store."""
    found = Topics()
    cursors = []
    for key in sorted(keys):
        if not key.startswith(ROOT + "/"):
            continue
        parts = key[1:].split("/")
        if len(parts) == _PARTS_OF_A_CURSOR:
            cursors.append(key)
            continue
        try:
            ledgers = decode_unchecked(keys[key])
        except (CorruptDataError, ValueError) as error:
            found.report(key, str(error))
            found.broken_keys.append(key)
            continue
        name = key[len(ROOT) + 1 :]
        found.topics[name] = Topic(name, ledgers)
    for key in cursors:
        _read_cursor(found, key, keys[key])
    return found


def _read_cursor(found: Topics, key: str, value: bytes) -> None:
    name, _, encoded = key[len(ROOT) + 1 :].rpartition("/")
    topic = found.topics.get(name)
    try:
        record = decode_cursor_record(value)
    except (CorruptDataError, ValueError) as error:
        found.report(key, str(error))
        found.broken_keys.append(key)
        return
    if topic is None:
        found.report(key, "a cursor of a topic whose list of ledgers is missing or damaged")
        found.broken_keys.append(key)
    else:
        topic.cursors[decode_name(encoded)] = record


async def read_cursors(
    found: Topics, keys: Mapping[str, bytes], store: LedgerStore, clock: Clock
) -> None:
    """Fill in the cursors' states, as a broker would recover them from `store`."""
    metadata = MemoryMetadataStore(clock)
    config = ManagedLedgerConfig()
    for topic in found.topics.values():
        for cursor_name in topic.cursors:
            path = cursor_path(topic.name, cursor_name)
            value = keys.get(path)
            if value is None:
                continue
            await metadata.put(path, value)
            try:
                cursor = CursorStore(
                    path,
                    metadata,
                    store,
                    clock,
                    prove_ownership=_is_not_asked,
                    confirm_newest=_is_not_asked,
                )
                topic.states[cursor_name] = await cursor.recover(config)
            except (StorageError, MetadataError) as error:
                found.report(path, f"the cursor can't be read: {error}")
    await metadata.close()


async def _is_not_asked() -> None:
    """Return at once: an inspection only reads, so it has no ownership to prove."""


def check_topics(
    found: Topics, last_entries: Mapping[int, int], infos: Mapping[int, LedgerInfo]
) -> list[Finding]:
    """Compare topics and cursors with the ledgers that exist.

    Both maps are by ledger id: `last_entries` has the last entry ids of the ledgers that exist,
    `infos` their records in the ledger store.
    """
    findings: list[Finding] = []
    owners: dict[int, str] = {}
    for topic in found.topics.values():
        key = ledger_path(topic.name)
        problems = [
            *_check_ids(topic, key, owners),
            *_check_ends(topic, last_entries),
            *filter(None, (_unlike(each, infos) for each in topic.ledgers.ledgers)),
        ]
        findings += (Finding(METADATA, None, f"{key}: {text}", kind) for text, kind in problems)
        for name, record in topic.cursors.items():
            ledger_id = record.cursor_ledger_id
            if ledger_id != NO_LEDGER and ledger_id not in last_entries:
                text = f"{cursor_path(topic.name, name)}: cursor ledger {ledger_id} is missing"
                findings.append(Finding(METADATA, None, text))
    return findings


_Problem = tuple[str, Severity]


def _check_ids(topic: Topic, key: str, owners: dict[int, str]) -> Iterator[_Problem]:
    """Ids that do not ascend, or that two topics name.

    `owners` has the key of the first topic that names a ledger; this topic's are added.
    """
    for ledger_id, following in misplaced_ids(topic.ledgers):
        yield f"ledger {following} is named after ledger {ledger_id}", Severity.DAMAGE
    for ledger in topic.ledgers.ledgers:
        if (owner := owners.setdefault(ledger.ledger_id, key)) != key:
            yield f"ledger {ledger.ledger_id} is named by {owner} too", Severity.DAMAGE


def _check_ends(topic: Topic, last_entries: Mapping[int, int]) -> Iterator[_Problem]:
    for ledger_id, last in sorted(_ends(topic).items()):
        present = last_entries.get(ledger_id)
        if present is None:
            yield f"ledger {ledger_id} is missing", Severity.DAMAGE
        elif present < last:
            text = f"ledger {ledger_id} should go to {last}, it goes to {present}"
            yield text, Severity.DAMAGE


def _unlike(ledger: LedgerRecord, infos: Mapping[int, LedgerInfo]) -> _Problem | None:
    """The difference between a closed ledger in the topic's list and its own record, if any.

    The list has fewer entries where a writer failed: entries that were stored, but reported as
    failed, are not in it. Sizes serve retention and statistics alone, and change where lost
    entries were replaced.
    """
    info = infos.get(ledger.ledger_id)
    if info is None or not ledger.is_closed or ledger.stored is not None:
        return None
    if info.last_entry_id is None or info.length_bytes is None:
        return None  # it is open
    count, size = ledger.entries_count, ledger.size_bytes
    present, present_bytes = info.last_entry_id + 1, info.length_bytes
    if (count, size) == (present, present_bytes):
        return None
    if present < count <= MAX_ENTRIES_PER_LEDGER:
        return None  # reported already: it is too short
    is_left_out = count < present and size < present_bytes
    severity = Severity.NOTE if count == present or is_left_out else Severity.DAMAGE
    text = (
        f"ledger {ledger.ledger_id} should have {count} entries of {size} bytes, "
        f"it has {present} of {present_bytes}"
    )
    return text, severity


def expected_ends(found: Topics) -> dict[int, int]:
    """The last entry id that each referenced ledger must at least have, by the metadata."""
    ends: dict[int, int] = {}
    for topic in found.topics.values():
        ends |= _ends(topic)
        for record in topic.cursors.values():
            if record.cursor_ledger_id != NO_LEDGER:
                ends.setdefault(record.cursor_ledger_id, -1)
        for ledger_id in _owned(topic):
            ends.setdefault(ledger_id, -1)
    return ends


def _owned(topic: Topic) -> Iterable[int]:
    """Ledgers that cursors name: compacted ones, buckets of delayed messages, sequence ids."""
    for name, record in topic.cursors.items():
        states = [record.snapshot]
        if name in topic.states:
            states.append(topic.states[name])
        for state in states:
            yield from owned_ledgers(state.properties, record.cursor_properties)


def _ends(topic: Topic) -> dict[int, int]:
    """The last known entry of each ledger of a topic."""
    ends = {
        ledger.ledger_id: ledger.entries_count - 1 if ledger.is_closed else -1
        for ledger in topic.ledgers.ledgers
        if ledger.entries_count <= MAX_ENTRIES_PER_LEDGER
        and not (ledger.is_closed and not ledger.entries_count)
        and ledger.stored is None  # else it may be offloaded, and not in this store
    }
    for ledger_id, entry_id in _known_positions(topic):
        if ledger_id in ends and entry_id < MAX_ENTRIES_PER_LEDGER:
            ends[ledger_id] = max(ends[ledger_id], entry_id)
    return ends


def _known_positions(topic: Topic) -> Iterable[tuple[int, int]]:
    """Positions in cursors, which were confirmed once."""
    if topic.ledgers.terminated_position is not None:
        yield topic.ledgers.terminated_position
    states = [record.snapshot for record in topic.cursors.values()]
    for state in (*states, *topic.states.values()):
        position = state.mark_delete_position
        yield position.ledger_id, position.entry_id
        for ledger_id, _, last in state.individual_deleted_messages.ranges():
            yield ledger_id, last
