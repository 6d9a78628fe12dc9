"""Write rows to a topic: a value, a key and what else a message has.

write_batch.py [SERVICE_URL]
"""

import sys

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
spark = SparkSession.builder.master("local[2]").getOrCreate()

rows = spark.range(100).selectExpr(
    "concat('order ', id) AS value",
    "concat('customer-', id % 3) AS __key",
    "map('source', 'shop') AS __messageProperties",
    "timestamp_millis(1700000000000 + id) AS __eventTime",
)
rows.write.format("pulsar").mode("append").options(
    **{"service.url": url, "topic": "spark-orders"}
).save()

orders = spark.read.format("pulsar").options(**{"service.url": url, "topic": "spark-orders"}).load()
print(orders.count(), "messages")
