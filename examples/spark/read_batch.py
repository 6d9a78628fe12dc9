"""Read a whole topic, and count its messages by key.

read_batch.py [SERVICE_URL]
"""

import sys

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
spark = SparkSession.builder.master("local[2]").getOrCreate()
options = {"service.url": url, "topic": "spark-visits"}

visits = spark.range(300).selectExpr("string(id) AS value", "concat('page-', id % 3) AS __key")
visits.write.format("pulsar").mode("append").options(**options).save()

topic = spark.read.format("pulsar").options(**options).load()
topic.printSchema()
by_page = topic.groupBy(topic["__key"].cast("string").alias("page")).count()
for row in sorted(by_page.collect()):
    print(row.page, row["count"])
