"""A pipeline as a function: a table is kept in step with a topic, each message once.

pipeline_export.py [SERVICE_URL [ADMIN_URL [DIRECTORY]]]
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then
from pulsar_py.pipeline.export import ExportSettings, default_checkpoint, export
from pulsar_py.pipeline.lake import LakeSettings, read_table
from pulsar_py.pipeline.settings import Cluster, PartitionColumn, TopicRange
from pulsar_py.pipeline.tables import Target
from pulsar_py.pipeline.topics import Streaming

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
directory = Path(sys.argv[3] if len(sys.argv) > 3 else mkdtemp())
spark = SparkSession.builder.master("local[2]").getOrCreate()

visits = {"service.url": url, "topic": "spark-page-views"}
rows = spark.range(100).selectExpr("concat('page-', id % 3) AS page", "id AS visitor")
rows.write.format("pulsar").mode("append").options(**visits).save()

target = Target.parse(f"parquet:{directory / 'visits'}")
settings = ExportSettings(
    source=TopicRange(
        cluster=Cluster(service_url=url, admin_url=admin_url), topic="spark-page-views"
    ),
    lake=LakeSettings(target=target, partition_by=[PartitionColumn.parse("page")]),
    streaming=Streaming(checkpoint=default_checkpoint(target)),
)
print(export(spark, settings), "rows exported")
print(export(spark, settings), "rows since then")
for row in sorted(read_table(spark, target).groupBy("page").count().collect()):
    print(row.page, row[1])
