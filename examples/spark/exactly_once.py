"""Copy a topic into another, each message once whatever fails.

The broker has to drop what is sent twice, which neither `make run` nor Apache Pulsar does by
default. Where it does not, the query is refused at its start. Either all topics have it,

    pulsar-py standalone --in-memory --set brokerDeduplicationEnabled=true

or the namespace or the topic has the same as a policy. Each run has topics of its own.

    exactly_once.py [SERVICE_URL [ADMIN_URL [DIRECTORY]]]
"""

import sys
import time

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
directory = sys.argv[3] if len(sys.argv) > 3 else "lake"
spark = SparkSession.builder.master("local[2]").getOrCreate()
cluster = {"service.url": url, "admin.url": admin_url}
run = int(time.time() * 1000)

rows = spark.range(200).selectExpr("string(id) AS value")
rows.write.format("pulsar").mode("append").options(**cluster, topic=f"spark-from-{run}").save()

source = spark.readStream.format("pulsar").options(**cluster, topic=f"spark-from-{run}")
query = (
    source.option("startingOffsets", "earliest")
    .load()
    .selectExpr("string(value) AS value", "__key")
    .where("value % 2 = 0")
    .writeStream.format("pulsar")
    .options(**cluster, topic=f"spark-to-{run}")
    .option("deliveryGuarantee", "exactly-once")
    .option("sequenceOrder", "input")  # nothing shuffles the rows on their way
    .option("checkpointLocation", f"{directory}/copy-{run}")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
copied = spark.read.format("pulsar").options(**cluster, topic=f"spark-to-{run}").load()
print(copied.count(), "messages copied,", copied.select("value").distinct().count(), "different")
