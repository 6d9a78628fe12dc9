"""The connector as functions; what needs a session is in tests/spark."""

from __future__ import annotations

from pulsar_py.spark.shared.options import ReadOptions, WriteOptions
from pulsar_py.spark.shortcuts import spark_options

URL = "pulsar://here:6650"


def test_names_are_python_s_and_values_are_texts() -> None:
    options = {
        "starting_offsets": "earliest",
        "admin_url": "http://here",
        "fail_on_data_loss": False,
        "max_bytes_per_trigger": 5,
    }
    given = spark_options(URL, options, {"operationTimeoutMs": 5})
    reads = ReadOptions.parse(given | {"topic": "t"}, is_streaming=True)
    assert reads.client.service_url == URL
    assert reads.client.admin_url == "http://here"
    assert reads.client.client == {"operationtimeoutms": "5"}
    assert not reads.fail_on_data_loss
    assert reads.max_bytes_per_trigger == 5


def test_options_of_writers_too() -> None:
    given = spark_options(URL, {"delivery_guarantee": "exactly-once", "topic": "t"})
    assert WriteOptions.parse(given).guarantee.value == "exactly-once"
