"""Copy a topic into another, each message once whatever fails.

The broker has to drop what is sent twice: `brokerDeduplicationEnabled=true`, or the same policy of
the namespace or the topic. Where it does not, the query is refused at its start.

    exactly_once.py [SERVICE_URL [ADMIN_URL [DIRECTORY]]]
"""

import sys

from pyspark.sql import SparkSession

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
directory = sys.argv[3] if len(sys.argv) > 3 else "lake"
spark = SparkSession.builder.master("local[2]").getOrCreate()
cluster = {"service.url": url, "admin.url": admin_url}

rows = spark.range(200).selectExpr("string(id) AS value")
rows.write.format("pulsar").mode("append").options(**cluster, topic="spark-from").save()

source = spark.readStream.format("pulsar").options(**cluster, topic="spark-from")
query = (
    source.option("startingOffsets", "earliest")
    .load()
    .selectExpr("string(value) AS value", "__key")
    .where("value % 2 = 0")
    .writeStream.format("pulsar")
    .options(**cluster, topic="spark-to")
    .option("deliveryGuarantee", "exactly-once")
    .option("sequenceOrder", "input")  # nothing shuffles the rows on their way
    .option("checkpointLocation", f"{directory}/copy")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
copied = spark.read.format("pulsar").options(**cluster, topic="spark-to").load()
print(copied.count(), "messages copied,", copied.select("value").distinct().count(), "different")
