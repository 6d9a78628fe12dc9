"""Pipelines as functions, on one small topic.

Two are elsewhere: `export` in pipeline_export.py, `lag` in subscription.py.

Topics are written exactly once, so the broker has to drop what is sent twice:

    pulsar-py standalone --in-memory --set brokerDeduplicationEnabled=true

    pipelines.py [SERVICE_URL [ADMIN_URL [DIRECTORY]]]
"""

import sys
import time
from pathlib import Path
from tempfile import mkdtemp

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then
from pulsar_py.admin_client import AdminSettings
from pulsar_py.pipeline.aggregate import AggregateSettings, aggregate
from pulsar_py.pipeline.backfill import BackfillSettings, backfill
from pulsar_py.pipeline.compact import CompactSettings, compact
from pulsar_py.pipeline.copy import CopySettings, copy
from pulsar_py.pipeline.lake import LakeSettings, read_table
from pulsar_py.pipeline.replay import ReplaySettings, replay
from pulsar_py.pipeline.report import ReportSettings, report
from pulsar_py.pipeline.settings import Cluster, TopicRange, TopicTarget
from pulsar_py.pipeline.tables import Target

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
directory = Path(sys.argv[3] if len(sys.argv) > 3 else mkdtemp())
spark = SparkSession.builder.master("local[2]").getOrCreate()
run = int(time.time() * 1000)  # topics of its own for each run
cluster = Cluster(service_url=url, admin_url=admin_url)


def topic(name: str) -> str:
    """One of this run's."""
    return f"spark-{name}-{run}"


def rows_in(name: str) -> int:
    """How many messages it has."""
    options = cluster.connector_options() | {"topic": topic(name)}
    return spark.read.format("pulsar").options(**options).load().count()


sold = spark.range(30).selectExpr(
    "concat('item-', id % 3) AS __key", "id AS price", "id % 7 AS pieces"
)
options = cluster.connector_options() | {"topic": topic("sales")}
sold.coalesce(1).write.format("pulsar").mode("append").options(**options).save()
sales = TopicRange(cluster=cluster, topic=topic("sales"))

target = TopicTarget(cluster=cluster, topic=topic("copy"), idempotency_key="nightly")
copy(spark, CopySettings(source=sales, target=target, where="price >= 10"))
print("copied:", rows_in("copy"))

# A replay's end is exclusive; everywhere else `ending_millis` is still read.
span = TopicRange(
    cluster=cluster, topic=topic("sales"), starting_millis=run, ending_millis=run + 3_600_000
)
target = TopicTarget(cluster=cluster, topic=topic("replay"))
replay(spark, ReplaySettings(source=span, target=target, name="since the start"))
print("replayed:", rows_in("replay"))

newest = Target.parse(f"parquet:{directory / 'newest'}")
compact(spark, CompactSettings(source=sales, lake=LakeSettings(target=newest)))
print("compacted:", read_table(spark, newest).count())

sums = Target.parse(f"parquet:{directory / 'sums'}")
aggregate(
    spark,
    AggregateSettings(
        source=sales,
        keys=["cast(__key as string) as item"],
        aggregates="count, sum(price) as total",
        window_seconds=86_400,
        lake=LakeSettings(target=sums),
    ),
)
print("added up:", read_table(spark, sums).selectExpr("sum(total) AS total").first().total)

target = TopicTarget(cluster=cluster, topic=topic("again"))
backfill(spark, BackfillSettings(source=newest, target=target, name="newest", tasks=1))
print("backfilled:", rows_in("again"))

traffic = report(
    spark,
    ReportSettings(source=sales, page=directory / "sales.html", admin=AdminSettings(url=admin_url)),
)
print("reported:", traffic.messages, "messages of", traffic.keys_count, "keys")
