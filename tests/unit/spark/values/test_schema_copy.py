"""The schema of a topic becomes the option of a write into its copy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pulsar_py import schema as schemas
from pulsar_py.client import Client
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.shared.schema_option import parse_schema_option
from pulsar_py.spark.values.schema_copy import topic_schema_option
from pulsar_py.testing.broker_thread import BrokerThread


def test_a_topic_s_schema_becomes_an_option() -> None:
    schema = schemas.KeyValueSchema(schemas.StringSchema(), schemas.Int64Schema())

    async def make(url: str, topic: str, schema: Any) -> None:
        async with Client(url) as client:
            await (await client.create_producer(topic, schema=schema)).close()

    with BrokerThread() as broker:
        asyncio.run(make(broker.service_url, "pairs", schema))
        options = {"service.url": broker.service_url, "topic": "pairs"}
        text = topic_schema_option(options)
        assert text is not None
        assert parse_schema_option("s", text).type is schemas.SchemaType.KEY_VALUE
        assert topic_schema_option(options | {"topic": "none"}) is None


def test_options_are_checked() -> None:
    with pytest.raises(ConfigurationError, match=r"service\.url is missing"):
        topic_schema_option({"topic": "t"})
