"""Fields of records as columns: rows are written as Avro, and read by the topic's schema.

records.py [SERVICE_URL]
"""

import sys

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
spark = SparkSession.builder.master("local[2]").getOrCreate()
options = {"service.url": url, "topic": "spark-measurements"}

measured = spark.range(60).selectExpr("concat('sensor-', id % 2) AS sensor", "id / 2 AS celsius")
measured.write.format("pulsar").mode("append").options(**options).save()

read = spark.read.format("pulsar").options(**options).load()
print(read.columns)
for row in sorted(read.groupBy("sensor").avg("celsius").collect()):
    print(row.sensor, row[1])
