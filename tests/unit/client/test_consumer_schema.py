from __future__ import annotations

import pytest

from pulsar_py.client.consumer_schema import ConsumerSchema
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.schema.primitive_schemas import BytesSchema, StringSchema
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
