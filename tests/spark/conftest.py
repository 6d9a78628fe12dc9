"""One local Spark session for all tests of a run; without Java or PySpark they are skipped.

`local[2,3]`: two tasks at a time, three attempts each. Starting takes some ten seconds, which is
why nothing of Spark is touched before a test asks for the session.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pulsar_py.pipeline.settings import Cluster
from pulsar_py.testing.broker_thread import BrokerThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
MASTER = "local[2,3]"
BROKER_CONFIG = {
    "brokerDeduplicationEnabled": True,
    # Spark may take longer to start than a topic without a subscription is kept.
    "brokerDeleteInactiveTopicsEnabled": False,
}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.log.level": "ERROR",
}


def missing_for_spark() -> str | None:
    """Why Spark can't run here; None if it can."""
    for module in ("pyspark", "pyarrow"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed (pip install '.[spark]')"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    return None if java else "there is no java on the PATH, nor a JAVA_HOME with one"


LONG = frozenset(
    {
        "test_secrets.py::test_no_output_has_a_secret",
        "test_interpreter.py::test_workers_run_the_programs_interpreter_whatever_python3_of_the_path_is",
        "test_pipelines.py::test_a_continuous_export_ends_on_a_signal[2]",
        "test_pipelines.py::test_an_export_goes_on_where_it_stopped[parquet]",
        "test_pipelines.py::test_columns_are_read_as_they_were_written[parquet]",
        "test_pipelines.py::test_a_copy_can_be_repeated",
        "test_pipelines.py::test_a_backfill_of_a_table_that_grew_and_was_compacted[order_by1]",
        "test_pipelines.py::test_what_was_exported_is_filled_back[order_by1]",
        "test_pipelines.py::test_two_tables_under_one_name_are_two_backfills[order_by1]",
        "test_pipelines.py::test_a_batch_is_added_once_and_its_columns_with_it[parquet]",
        "test_pipelines.py::test_windows_are_counted_by_key",
        "test_pipelines_messages.py::test_a_copy_has_all_that_a_producer_said[batch]",
        "test_pipelines_messages.py::test_a_copy_has_all_that_a_producer_said[replay]",
        "test_pipelines_messages.py::test_a_compaction_into_a_topic_has_it_too",
        "test_pipelines_messages.py::test_a_named_copy_is_repeated_while_all_partitions_of_its_topic_grow",
        "test_pipelines_messages.py::test_keys_that_moved_to_a_new_partition_are_compacted",
        "test_pipelines_records.py::test_columns_of_a_newer_schema_appear_in_the_table_and_go_back[parquet-AVRO]",
        "test_pipelines_records.py::test_columns_of_a_newer_schema_appear_in_the_table_and_go_back[parquet-JSON]",
        "test_pipelines_records.py::test_columns_of_a_newer_schema_appear_in_the_table_and_go_back[delta-JSON]",
        "test_pipelines_records.py::test_the_newest_record_of_each_key_is_kept[JSON]",
        "test_pipelines_records.py::test_a_copy_has_the_schema_the_values_and_the_tombstones[True-JSON]",
        "test_pipelines_records.py::test_a_page_of_records[JSON]",
        "test_pipelines_sessions.py::test_a_stream_is_copied_from_a_thread_that_has_not_opened_the_session",
        "test_exactly_once.py::test_rows_come_in_another_order_after_a_failure",
        "test_exactly_once.py::test_a_job_that_was_given_up_is_run_again_with_its_key",
        "test_exactly_once.py::test_a_commit_fails_and_the_batch_is_replayed[commit-after]",
        "test_exactly_once.py::test_writes_of_for_each_batch_have_keys_of_their_own",
        "test_exactly_once.py::test_at_least_once_a_repeated_task_writes_rows_twice",
        "test_exactly_once.py::test_something_before_the_sink_fails_once_while_rows_are_held_to_be_sorted[content]",
        "test_exactly_once.py::test_tasks_of_a_stream_die[raise]",
        "test_spark_examples.py::test_a_program_prints_what_it_should[pipeline_export.py]",
        "test_spark_examples.py::test_a_program_prints_what_it_should[subscription.py]",
        "test_spark_examples.py::test_a_program_prints_what_it_should[undecodable.py]",
        "test_spark_examples.py::test_a_program_prints_what_it_should[read_pattern.py]",
        "test_spark_examples.py::test_a_program_prints_what_it_should[exactly_once.py]",
        "test_read.py::test_a_limit_of_bytes_holds_for_all_partitions_and_new_ones_are_read_from_their_start",
        "test_read.py::test_filters_give_the_same_rows_pushed_down_or_not[False]",
        "test_values.py::test_a_stream_copies_records_of_all_versions",
        "test_bad_input.py::test_an_admin_url_behind_which_nobody_is[read]",
        "test_key_values.py::test_what_was_read_is_written_back[True-KeyValueEncodingType.INLINE]",
    }
)
"""What takes ten seconds or more, and has a sibling that shows nearly the same: marked `slow`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is long; skip what needs the session where there is none, and say why."""
    for item in items:
        if "/".join(item.nodeid.split("/")[2:]) in LONG and item.nodeid.startswith("tests/spark/"):
            item.add_marker(pytest.mark.slow)
    reason = missing_for_spark()
    if reason is None:
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=f"Spark can't run: {reason}"))


def home_without_zip(directory: Path) -> Path:
    """A home of Spark in `directory` whose workers import PySpark from where it is installed.

    Spark puts `python/lib/pyspark.zip` of its home in front of each worker's path, and what comes
    from an archive is compiled at each import: 0.8 s of processor instead of 0.3, of the 10 s that
    a worker has to connect back.
    """
    installed = importlib.util.find_spec("pyspark")
    assert installed is not None
    assert installed.origin is not None
    for entry in Path(installed.origin).parent.iterdir():
        if entry.name != "python":
            (directory / entry.name).symlink_to(entry)
    return directory


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of the run."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Not whichever `python3` comes first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_HOME", str(home_without_zip(tmp_path_factory.mktemp("home"))))
    # Spark finds `pyspark_pulsar` by walking the path, which an editable install is not on.
    paths = (str(ROOT), os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(each for each in paths if each)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where it is there

    builder = SparkSession.builder.master(MASTER).appName("pulsar_py tests")
    settings = SETTINGS | {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    """One that drops duplicates; modules that need another have their own."""
    with BrokerThread(config=BROKER_CONFIG) as thread:
        yield thread


@pytest.fixture
def cluster(broker: BrokerThread) -> Cluster:
    """The same, as pipelines are told."""
    return Cluster(service_url=broker.service_url, admin_url=broker.web_service_url)
