"""Read a part of a topic: by publish time, or by position; in more tasks than it has partitions.

read_range.py [SERVICE_URL [ADMIN_URL]]
"""

import json
import sys
import time

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
spark = SparkSession.builder.master("local[2]").getOrCreate()
# With the admin URL, ledgers and their sizes are known: ranges are cut into pieces.
options = {"service.url": url, "admin.url": admin_url, "topic": "spark-range"}

first = spark.range(100).selectExpr("string(id) AS value")
first.write.format("pulsar").mode("append").options(**options).save()
time.sleep(0.01)
between = int(time.time() * 1000)
second = spark.range(100, 150).selectExpr("string(id) AS value")
second.write.format("pulsar").mode("append").options(**options).save()

reader = spark.read.format("pulsar").options(**options)
print("since then:", reader.option("startingTime", str(between)).load().count())

reader = spark.read.format("pulsar").options(**options)
positions = reader.option("columns", "__ledgerId,__entryId").load()
last = positions.selectExpr("max(struct(__ledgerId, __entryId)) AS last").first().last
ending = json.dumps({"spark-range": f"{last[0]}:{last[1]}"})

reader = spark.read.format("pulsar").options(**options)
pieces = reader.option("endingOffsets", ending).option("minPartitions", "4").load()
print("up to", ending, "are", pieces.count())
