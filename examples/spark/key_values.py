"""A key-value topic: pairs are written as two columns, and copied as they are read.

key_values.py [SERVICE_URL]
"""

import sys

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
spark = SparkSession.builder.master("local[2]").getOrCreate()
stock = {"service.url": url, "topic": "spark-stock"}
copied = {"service.url": url, "topic": "spark-stock-copied"}

# `separated`: the key is the message's own, which decides its partition.
pairs = spark.range(30).selectExpr(
    "concat('item-', id % 3) AS key", "named_struct('shelf', id, 'count', id * 2) AS value"
)
writer = pairs.write.format("pulsar").mode("append").options(**stock)
writer.option("keyValueEncoding", "separated").save()

read = spark.read.format("pulsar").options(**stock).load()
read.write.format("pulsar").mode("append").options(**copied).save()

again = spark.read.format("pulsar").options(**copied).load()
for row in sorted(again.groupBy("key").agg({"value.count": "max"}).collect()):
    print(row.key, row[1])
