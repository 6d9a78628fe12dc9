"""What a topic has that its schema can't decode: fail, leave it out, or look at it.

undecodable.py [SERVICE_URL]
"""

import asyncio
import sys

from pyspark.sql import SparkSession

import pulsar_py
import pulsar_py.spark
from pulsar_py.schema import StringSchema

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
spark = SparkSession.builder.master("local[2]").getOrCreate()
options = {"service.url": url, "topic": "spark-broken"}


async def publish() -> None:
    """A text, and bytes that are none."""
    async with pulsar_py.Client(url) as client:
        async with await client.create_producer("spark-broken", schema=StringSchema()) as texts:
            await texts.send("sound")
        async with await client.create_producer("spark-broken") as bytes_only:
            await bytes_only.send(b"\xff\xfe")


asyncio.run(publish())

reader = spark.read.format("pulsar").options(**options)
try:
    reader.load().collect()
except Exception as error:  # noqa: BLE001 - Spark's, of several classes
    lines = [line for line in str(error).splitlines() if "spark-broken: message" in line]
    print(lines[0].strip())

print([row.value for row in reader.option("undecodable", "drop").load().collect()])

broken = reader.option("undecodable", "column").load().where("__undecodable IS NOT NULL")
for row in broken.collect():
    print(row["__topic"], bytes(row["__undecodable"]))
