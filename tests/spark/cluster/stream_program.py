"""A program for a cluster: topic to Parquet, then what came there, as JSON on stdout.

    stream_program.py MASTER SERVICE_URL ADMIN_URL TOPIC DIRECTORY

Each line on stdout is one micro-batch that was committed; the last one says how many rows there
are and how many different values.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

ENTRIES = 1000
"""Of one micro-batch."""


def main() -> None:
    """Run it."""
    master, service_url, admin_url, topic, directory = sys.argv[1:]
    builder = SparkSession.builder.master(master).appName("stream")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    options = {
        "service.url": service_url,
        "admin.url": admin_url,
        "topic": topic,
        "startingOffsets": "earliest",
        "maxEntriesPerTrigger": str(ENTRIES),
        "minPartitions": "4",
    }
    query = (
        spark.readStream.format("pulsar")
        .options(**options)
        .load()
        .selectExpr("cast(value as string) value")
        .writeStream.format("parquet")
        .option("path", f"{directory}/rows")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    seen = -1
    while not query.awaitTermination(1):
        progress = query.lastProgress
        if progress is not None and progress.batchId > seen:
            seen = progress.batchId
            print(json.dumps({"batch": seen}), flush=True)
    error = query.exception()
    if error is not None:
        raise error
    rows = spark.read.parquet(f"{directory}/rows")
    found = {
        "batches": query.lastProgress.batchId + 1,
        "rows": rows.count(),
        "values": rows.distinct().count(),
    }
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
