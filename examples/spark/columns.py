"""Only what is needed: fewer columns cost less. A schema of the user's is a projection by name.

columns.py [SERVICE_URL]
"""

import sys

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
spark = SparkSession.builder.master("local[2]").getOrCreate()
options = {"service.url": url, "topic": "spark-columns"}

rows = spark.range(10).selectExpr("string(id) AS value")
rows.write.format("pulsar").mode("append").options(**options).save()

reader = spark.read.format("pulsar").options(**options)
two = reader.schema("`__entryId` BIGINT, `__publishTime` TIMESTAMP").load()
print(two.columns, two.count())

reader = spark.read.format("pulsar").options(**options)
print(reader.option("columns", "__key,__producerName,__size").load().columns)

reader = spark.read.format("pulsar").options(**options)
raw = reader.option("valueMode", "raw").load()
print(bytes(raw.first().value))
