"""Keep Parquet files in step with a topic; run it again, and only what is new is read.

Its subscription keeps the broker from deleting the topic between two runs: without subscriptions
and producers that happens after a minute.

    stream_to_parquet.py [SERVICE_URL [ADMIN_URL [DIRECTORY]]]
"""

import sys

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
directory = sys.argv[3] if len(sys.argv) > 3 else "lake"
spark = SparkSession.builder.master("local[2]").getOrCreate()
options = {"service.url": url, "admin.url": admin_url, "topic": "spark-events"}


def export() -> None:
    """Everything that is there now, in micro-batches of at most 64 MB."""
    events = (
        spark.readStream.format("pulsar")
        .options(**options)
        .option("startingOffsets", "earliest")
        .option("maxBytesPerTrigger", str(64 << 20))
        .option("predefinedSubscription", "lake")
        .load()
    )
    query = (
        events.writeStream.format("parquet")
        .option("path", f"{directory}/events")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print(spark.read.parquet(f"{directory}/events").count(), "rows in the lake")


for low, high in ((0, 100), (100, 130)):
    rows = spark.range(low, high).selectExpr("string(id) AS value")
    rows.write.format("pulsar").mode("append").options(**options).save()
    export()
