"""Reading and appending the events of one loaded topic."""

from __future__ import annotations

import json
import logging

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import ManagedLedgerError
from pulsar_py.common.names import TopicName
from pulsar_py.common.policies import SchemaCompatibilityStrategy
from pulsar_py.server.change_events.event_log import EventLog, event_schema
from pulsar_py.server.change_events.event_messages import event_entry
from pulsar_py.server.policies.policy_events import PolicyEvent, encode_event, schema_text
from pulsar_py.wire.payload import split_entry
from tests.unit.server.change_events.event_parts import A, append, events_topic, local, until
from tests.unit.server.topics.rig import Rig, entry

EVENT = local(maxProducerPerTopic=1)


async def new_log(rig: Rig) -> EventLog:
    """A log that nobody else follows."""
    rig.broker.topics.policy_keeper = None
    return EventLog(await events_topic(rig), rig.broker.schemas, "c")


async def read(log: EventLog) -> list[PolicyEvent]:
    found: list[PolicyEvent] = []
    while (events := await log.read()) is not None:
        found += [each.event for each in events]
    return found


async def test_appended_events_have_the_schema_and_numbers(rig: Rig) -> None:
    log = await new_log(rig)
    await log.append(EVENT)
    await log.append(PolicyEvent(A, is_global=True, document=None))
    ledger = log.topic.ledger
    entries = [await ledger.read_entry(ledger.first_position)]
    entries.append(await ledger.read_entry(ledger.last_confirmed_entry))
    heads = [split_entry(bytes(each.data)).metadata for each in entries]
    assert [head.sequence_id for head in heads] == [0, 1]
    assert [head.schema_version for head in heads] == [bytes(8), bytes(8)]
    assert [list(head.replicate_to) for head in heads] == [["c"], []]
    assert heads[0].producer_name == heads[1].producer_name == "standalone-0-0"
    stored = await rig.broker.schemas.latest(log.topic.name.schema_id)
    assert stored is not None
    assert stored.definition == replace(event_schema(), name=stored.definition.name)
    assert await read(log) == [EVENT, PolicyEvent(A, is_global=True, document=None)]


async def test_what_is_no_event_is_passed_over(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    log = await new_log(rig)
    elsewhere = TopicName.parse("persistent://public/other/a")
    await append(rig, PolicyEvent(elsewhere, is_global=False, document={}))
    ledger = log.topic.ledger
    await ledger.append_and_wait(entry(partition_key=str(A), payload=b"\x02\x04"))
    await ledger.append_and_wait(entry(partition_key="no://topic", payload=b""))
    await ledger.append_and_wait(entry(partition_key=str(A), schema_version=b"odd"))
    await append(rig, EVENT)
    with caplog.at_level(logging.WARNING):
        assert await read(log) == [EVENT]
    assert [record.getMessage() for record in caplog.records] == ["policy event passed over"] * 2


async def test_events_of_another_definition_are_resolved(rig: Rig) -> None:
    """Another version of Apache Pulsar may have more policies, or fewer."""
    log = await new_log(rig)
    definition = json.loads(schema_text())
    definition["fields"].insert(0, {"name": "novelty", "type": ["null", "string"], "default": None})
    version = await rig.broker.schemas.put_if_absent(
        log.topic.name.schema_id,
        replace(event_schema(), data=json.dumps(definition).encode()),
        strategy=SchemaCompatibilityStrategy.ALWAYS_COMPATIBLE,
    )
    data = b"\x02\x08news" + encode_event(EVENT, "c")
    message = entry(partition_key=str(A), schema_version=version, payload=data)
    await log.topic.ledger.append_and_wait(message)
    assert await read(log) == [EVENT]


async def test_it_tells_once_when_there_is_more(rig: Rig) -> None:
    log, told = await new_log(rig), []
    log.when_more(lambda: told.append(1))
    await append(rig, EVENT)
    await until(lambda: bool(told))
    assert await read(log) == [EVENT]
    await append(rig, EVENT)
    assert told == [1]


async def test_a_terminated_log_tells_nothing(rig: Rig) -> None:
    log, told = await new_log(rig), []
    await log.topic.terminate()
    log.when_more(lambda: told.append(1))
    await append_nothing(rig)
    assert not told


async def append_nothing(rig: Rig) -> None:
    await rig.persistent("other")


async def test_it_ends_with_the_loaded_topic(rig: Rig) -> None:
    log = await new_log(rig)
    assert log.is_open
    await rig.broker.topics.unload(log.topic.name)
    assert not log.is_open
    with pytest.raises(ManagedLedgerError):
        await log.read()


async def test_events_have_their_own_time(rig: Rig) -> None:
    log = await new_log(rig)
    data = event_entry(
        EVENT, "c", producer_name="q", sequence_id=0, schema_version=b"", now_millis=12
    )
    await log.topic.ledger.append_and_wait(data)
    events = await log.read()
    assert events is not None
    assert [each.published_millis for each in events] == [12]
    await log.close()
