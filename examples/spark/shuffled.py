"""Rows behind a shuffle, each message once, of a job that is run again as well.

A shuffle gives rows in another order each time. `sequenceOrder` says by what they are sorted, so
that a repeated task numbers them as before. `idempotencyKey` names the job: run again under it and
over the same rows, it sends what is missing.

The broker has to drop what is sent twice, which it does not do by default:

    pulsar-py standalone --in-memory --set brokerDeduplicationEnabled=true

    shuffled.py [SERVICE_URL [ADMIN_URL]]
"""

import sys

from pyspark.sql import SparkSession

import pulsar_py.spark  # noqa: F401 - Spark's workers run this Python then

url = sys.argv[1] if len(sys.argv) > 1 else "pulsar://localhost:6650"
admin_url = sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8080"
spark = SparkSession.builder.master("local[2]").getOrCreate()
options = {"service.url": url, "admin.url": admin_url, "topic": "spark-totals"}

visits = spark.range(1000).selectExpr("concat('page-', id % 3) AS page")
totals = visits.groupBy("page").count().selectExpr("page AS __key", "page", "count")
for attempt in ("first", "second"):
    (
        totals.write.format("pulsar")
        .mode("append")
        .options(**options)
        .option("deliveryGuarantee", "exactly-once")
        .option("sequenceOrder", "columns:page")
        .option("idempotencyKey", "totals-2026-01-31")
        .save()
    )
    written = spark.read.format("pulsar").options(**options).load()
    print(written.count(), "messages after the", attempt, "run")
