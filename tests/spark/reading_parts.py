"""Messages for tests of reading, and reads of them through Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from pulsar_py.client import Client
from pulsar_py.common.message_id import MessageId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pulsar_py.testing.broker_thread import BrokerThread


class Topics:
    """One broker's topics, as blocking calls."""

    def __init__(self, broker: BrokerThread) -> None:
        self.broker = broker

    def do(self, work: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
        """Run something with a client of its own."""

        async def run() -> Any:
            async with Client(self.broker.service_url) as client:
                return await work(client)

        return asyncio.run(run())

    def fill(self, topic: str, first: int, end: int, **options: object) -> list[MessageId]:
        """Publish the texts of `first` to `end`; the ids of the messages."""

        async def publish(client: Client) -> list[MessageId]:
            async with await client.create_producer(topic, **options) as producer:
                sent = [
                    producer.send_nowait(
                        b"%d" % index,
                        partition_key=f"key-{index}",
                        properties={"index": str(index)},
                        event_timestamp=1000 + index,
                    )
                    for index in range(first, end)
                ]
                return [await each for each in sent]

        ids: list[MessageId] = self.do(publish)
        return ids


def reading(spark: SparkSession, topics: Topics, topic: str | None, **options: object) -> DataFrame:
    """A batch; underscores in names of options stand for points."""
    return _with(spark.read, topics, topic, options).load()


def streaming(
    spark: SparkSession, topics: Topics, topic: str | None, **options: object
) -> DataFrame:
    """A stream."""
    return _with(spark.readStream, topics, topic, options).load()


def _with(reader: Any, topics: Topics, topic: str | None, options: dict[str, object]) -> Any:
    broker = topics.broker
    given: dict[str, object] = {
        "service.url": broker.service_url,
        "admin.url": broker.web_service_url,
    }
    if topic is not None:
        given["topic"] = topic
    given |= {name.replace("_", "."): value for name, value in options.items()}
    return reader.format("pulsar").options(**{k: str(v) for k, v in given.items()})


def numbers(frame: DataFrame) -> list[int]:
    """The values of all rows, in order."""
    return sorted(int(row.value) for row in frame.select("value").collect())
