"""A stream from a topic into another: what is there now, in micro-batches of a few entries.

stream_to_topic.py [SERVICE_URL [ADMIN_URL [DIRECTORY]]]
"""

import sys
from tempfile import mkdtemp

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
directory = sys.argv[3] if len(sys.argv) > 3 else mkdtemp()
spark = SparkSession.builder.master("local[2]").getOrCreate()
cluster = {"service.url": url, "admin.url": admin_url}

# Ten entries of ten messages: limits count entries, which are batches of a producer.
rows = spark.range(100).selectExpr("string(id) AS value").coalesce(1)
writer = rows.write.format("pulsar").mode("append").options(**cluster, topic="spark-numbers")
writer.option("pulsar.producer.batchingMaxMessages", "10").save()

numbers = (
    spark.readStream.format("pulsar")
    .options(**cluster, topic="spark-numbers")
    .option("startingOffsets", "earliest")
    .option("maxEntriesPerTrigger", "4")
    .option("maxBytesPerTrigger", str(1 << 20))
    .load()
)
query = (
    numbers.selectExpr("concat('number ', string(value)) AS value", "value AS __key")
    .writeStream.format("pulsar")
    .options(**cluster, topic="spark-texts")
    .option("checkpointLocation", f"{directory}/texts")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
for progress in query.recentProgress:
    if progress.numInputRows:
        print("batch", progress.batchId, "of", progress.numInputRows)
written = spark.read.format("pulsar").options(**cluster, topic="spark-texts").load()
print(written.count(), "messages written")
