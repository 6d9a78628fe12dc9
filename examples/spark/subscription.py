"""A subscription that follows a stream, and what a stream says that has lost data.

Brokers keep what a subscription has not acknowledged, and so does this stream. Then its topic is
deleted, and made anew: what the stream had not read is gone, which is an error unless told
otherwise.

    subscription.py [SERVICE_URL [ADMIN_URL [DIRECTORY]]]
"""

import sys
import time
from tempfile import mkdtemp
from urllib.request import Request, urlopen

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then
from pulsar_py.admin_client import AdminSettings
from pulsar_py.pipeline.lag import LagSettings, measure_lag

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
directory = sys.argv[3] if len(sys.argv) > 3 else mkdtemp()
spark = SparkSession.builder.master("local[2]").getOrCreate()
name = f"spark-alarms-{int(time.time() * 1000)}"  # another topic in each run
options = {"service.url": url, "admin.url": admin_url, "topic": name}


def write(count: int) -> None:
    """So many messages."""
    rows = spark.range(count).selectExpr("string(id) AS value").coalesce(1)
    rows.write.format("pulsar").mode("append").options(**options).save()


def read(*, fails: bool) -> None:
    """Everything that is new."""
    alarms = (
        spark.readStream.format("pulsar")
        .options(**options)
        .option("startingOffsets", "earliest")
        .option("predefinedSubscription", "spark-follows")
        .option("failOnDataLoss", str(fails))
        .load()
    )
    query = (
        alarms.writeStream.format("parquet")
        .option("path", f"{directory}/alarms")
        .option("checkpointLocation", f"{directory}/alarms-checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print(spark.read.parquet(f"{directory}/alarms").count(), "read")


write(10)
read(fails=True)
for lag in measure_lag(LagSettings(admin=AdminSettings(url=admin_url), topics=[name])):
    # Spark says that a micro-batch is done when it plans the next one.
    print(lag.name, "is behind by", lag.backlog_entries, "entry")

topic = f"{admin_url}/admin/v2/persistent/public/default/{name}"
urlopen(Request(f"{topic}?force=true", method="DELETE")).close()
write(5)
try:
    read(fails=True)
except StreamingQueryException as error:
    lines = [line for line in str(error).splitlines() if "were deleted" in line]
    print(lines[0].strip())
read(fails=False)
