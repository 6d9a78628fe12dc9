from __future__ import annotations

import pytest

from pulsar_py.client.receiving.consumer_schema import ConsumerSchema
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.schema import AutoConsumeSchema, AutoProduceBytesSchema, AvroSchema
from pulsar_py.schema.primitive_schemas import BytesSchema, StringSchema
from pulsar_py.wire import commands
from tests.scripted_broker import ScriptedBroker, simulated
from tests.unit.client.consumer_parts import new_client
from tests.unit.client.entries import TOPIC


@simulated
async def test_bytes_need_nothing(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        for schema in (None, BytesSchema()):
            found = ConsumerSchema(client.context, TOPIC, schema)
            assert found.to_wire() is None
            assert found.decoder is None
            assert found.is_version_missing is None
            await found.load(b"1")


@simulated
async def test_a_schema_reads_values_and_is_told_to_the_broker(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        found = ConsumerSchema(client.context, TOPIC, StringSchema())
        assert found.to_wire() is not None
        assert found.decoder is not None
        assert found.decoder.decode("hü".encode(), None, None) == "hü"


@simulated
async def test_what_is_no_schema_is_refused(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        with pytest.raises(InvalidConfigurationError, match="schema=5"):
            ConsumerSchema(client.context, TOPIC, 5)


@simulated
async def test_the_broker_is_not_told_of_what_depends_on_the_topic(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        for schema in (AutoConsumeSchema(), AutoProduceBytesSchema()):
            found = ConsumerSchema(client.context, TOPIC, schema)
            assert found.to_wire() is None
            assert found.decoder is not None


@simulated
async def test_versions_of_records_are_asked_for(broker: ScriptedBroker) -> None:
    schema = AvroSchema(schema_definition='"long"')
    wire = AvroSchema(schema_definition='"int"').schema_info().to_wire()
    assert wire is not None
    broker.script[BaseCommand.GET_SCHEMA] = lambda _end, command: commands.get_schema_response(
        command.getSchema.request_id, wire, command.getSchema.schema_version
    )
    async with new_client(broker) as client:
        found = ConsumerSchema(client.context, TOPIC, schema)
        assert found.is_version_missing is not None
        assert found.is_version_missing(bytes(8))
        await found.load(bytes(8))
        assert not found.is_version_missing(bytes(8))
        assert found.decoder is not None
        assert found.decoder.decode(b"\x04", bytes(8), None) == 2
