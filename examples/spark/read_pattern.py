"""Read all topics that a pattern matches; a filter that leaves out topics saves their tasks.

read_pattern.py [SERVICE_URL]
"""

import sys

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.sql.python.filterPushdown.enabled", "true")  # one half of it
    .getOrCreate()
)

for city in ("bern", "oslo", "rome"):
    rows = spark.range(20).selectExpr("string(id) AS value").coalesce(1)
    city_topic = {"service.url": url, "topic": f"spark-weather-{city}"}
    rows.write.format("pulsar").mode("append").options(**city_topic).save()

pattern = {"service.url": url, "topicsPattern": "public/default/spark-weather-.*"}
everything = spark.read.format("pulsar").options(**pattern).load()
print(everything.count(), "messages in", everything.rdd.getNumPartitions(), "tasks")

reader = spark.read.format("pulsar").options(**pattern)
oslo = (
    reader.option("pushDown", "true")  # the other half
    .load()
    .where("__topic = 'persistent://public/default/spark-weather-oslo'")
)
print(oslo.count(), "of one topic in", oslo.rdd.getNumPartitions())
