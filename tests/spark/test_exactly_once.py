"""Rows arrive once: tasks, workers, commits and the broker fail, then every id is counted.

What is written are the ids from 0 on as texts, so that a topic's content is a list of numbers.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_py.client import Client
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from tests.interop.broker_process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

errors = pytest.importorskip("pyspark.errors")
functions = pytest.importorskip("pyspark.sql.functions")

ROWS = 24_000
BATCH_ROWS = 1000
TASKS = 2


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that drops what is sent twice, and that can be killed."""
    directory = tmp_path_factory.mktemp("broker")
    # A batch that fails may take longer than a topic without a subscription is kept.
    settings = ("brokerDeduplicationEnabled=true", "brokerDeleteInactiveTopicsEnabled=false")
    arguments = [word for setting in settings for word in ("--set", setting)]
    with BrokerProcess(directory, *arguments, log=directory / "log") as process:
        yield process


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """The run's session, with small record batches and the failing writers."""
    from tests.spark.failing_sink import FailingDataSource  # noqa: PLC0415 - needs pyspark

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))
    spark.dataSource.register(FailingDataSource)
    return spark


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """One for each test."""
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    return f"persistent://public/default/{name}"


def ids(session: SparkSession, count: int = ROWS) -> DataFrame:
    return session.range(0, count, 1, TASKS).selectExpr("cast(id as string) value")


def sink_options(
    broker: BrokerProcess, topic: str, directory: Path, failure: str, **more: object
) -> dict[str, str]:
    return {
        "service.url": broker.service_url,
        "admin.url": broker.web_service_url,
        "topic": topic,
        "deliveryGuarantee": "exactly-once",
        "sequenceOrder": "input",
        "test.failure": failure,
        "test.batches": "5",
        "test.directory": str(directory),
    } | {name: str(value) for name, value in more.items()}


def write(rows: DataFrame, options: dict[str, str]) -> None:
    rows.write.format("pulsar-failing").mode("append").options(**options).save()


def stored(broker: BrokerProcess, topic: str) -> list[int]:
    """All ids in the topic."""

    async def read() -> list[int]:
        found = []
        async with Client(broker.service_url) as client:
            for partition in await client.get_topic_partitions(topic):
                async with await client.create_reader(partition, EARLIEST_MESSAGE_ID) as reader:
                    while await reader.has_message_available():
                        found.append(int((await reader.read_next()).data()))
        return found

    return asyncio.run(read())


def assert_each_once(found: list[int], count: int = ROWS) -> None:
    assert len(found) - len(set(found)) == 0, "ids that are there twice"
    assert sorted(found) == list(range(count)), "ids that are missing"


# --- batch jobs ----------------------------------------------------------------------------------


def test_at_least_once_a_repeated_task_writes_rows_twice(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    """The control: these failures do make duplicates where nothing is done about it."""
    options = sink_options(broker, topic, tmp_path, "raise", deliveryGuarantee="at-least-once")
    write(ids(session), options)
    found = stored(broker, topic)
    assert set(found) == set(range(ROWS))
    assert len(found) > ROWS


@pytest.mark.parametrize("failure", ["raise", "kill"])
def test_a_task_or_its_worker_dies_once(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path, failure: str
) -> None:
    write(ids(session), sink_options(broker, topic, tmp_path, failure))
    assert len(list(tmp_path.glob(f"{failure}-*"))) == TASKS
    assert_each_once(stored(broker, topic))


def test_rows_come_in_another_order_after_a_failure(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    options = sink_options(broker, topic, tmp_path, "shuffle", sequenceOrder="content")
    write(ids(session), options)
    assert_each_once(stored(broker, topic))


@pytest.mark.parametrize("order", ["content", "columns:value"])
def test_something_before_the_sink_fails_once_while_rows_are_held_to_be_sorted(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path, order: str
) -> None:
    share, directory = ROWS // TASKS, str(tmp_path)

    def fail_once(value: str) -> str:
        task, row = divmod(int(value), share)
        if row == share * 3 // 4 and not Path(flag := f"{directory}/{task}").exists():
            Path(flag).touch()
            raise RuntimeError("before the sink")
        return value

    failing = functions.udf(fail_once, "string", useArrow=False)
    rows = ids(session).select(failing("value").alias("value"))
    write(rows, sink_options(broker, topic, tmp_path, "none", sequenceOrder=order))
    assert all((tmp_path / str(task)).exists() for task in range(TASKS))
    assert_each_once(stored(broker, topic))


def test_the_broker_is_killed_in_a_batch(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    reached, resume = tmp_path / "reached", tmp_path / "resume"
    os.mkfifo(reached)
    os.mkfifo(resume)

    def restart() -> None:
        reached.read_bytes()
        broker.kill()
        resume.write_bytes(b"!")
        broker.start()

    thread = threading.Thread(target=restart, daemon=True)
    thread.start()
    write(ids(session), sink_options(broker, topic, tmp_path, "pause"))
    thread.join()
    assert_each_once(stored(broker, topic))


def test_a_job_is_run_again_with_its_key(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    options = sink_options(broker, topic, tmp_path, "none", idempotencyKey="nightly")
    write(ids(session, 3000), options)
    write(ids(session, 3000), options)
    assert_each_once(stored(broker, topic), 3000)


def test_a_job_that_was_given_up_is_run_again_with_its_key(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    rows, resume = ids(session), tmp_path / "resume"
    os.mkfifo(resume)

    def resume_when_some_are_stored() -> None:
        while not stored(broker, topic):
            pass  # asking takes long enough
        resume.write_bytes(b"!")

    thread = threading.Thread(target=resume_when_some_are_stored, daemon=True)
    thread.start()
    options = sink_options(broker, topic, tmp_path, "give-up", idempotencyKey="given-up")
    with pytest.raises(errors.PySparkException, match="in the middle of a task"):
        write(rows, options)
    # A task that was ended before it opened the pipe leaves the writer without a reader.
    reader = os.open(resume, os.O_RDONLY | os.O_NONBLOCK)
    thread.join()
    os.close(reader)
    assert 0 < len(stored(broker, topic)) < ROWS
    write(rows, options | {"test.failure": "none"})
    assert_each_once(stored(broker, topic))


def test_partitions_of_a_topic_are_written_by_key_and_in_turn(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    create_partitioned(broker, topic, 3)
    rows = ids(session)
    write(rows, sink_options(broker, topic, tmp_path / "1", "kill") | mkdir(tmp_path / "1"))
    assert_each_once(stored(broker, topic))
    keyed = ids(session, 2 * ROWS).where(f"value >= {ROWS}").selectExpr("value", "value __key")
    write(keyed, sink_options(broker, topic, tmp_path / "2", "raise") | mkdir(tmp_path / "2"))
    assert_each_once(stored(broker, topic), 2 * ROWS)


def mkdir(path: Path) -> dict[str, str]:
    path.mkdir()
    return {"test.directory": str(path)}


def create_partitioned(
    broker: BrokerProcess, topic: str, count: int, *, method: str = "PUT"
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", broker.web_port)
    path = topic.replace("persistent://", "/admin/v2/persistent/") + "/partitions"
    connection.request(method, path, str(count), {"Content-Type": "application/json"})
    assert connection.getresponse().status == 204
    connection.close()


# --- streams -------------------------------------------------------------------------------------


def files(directory: Path, count: int, rows: int) -> str:
    """Files of ids, one a line: a source that replays alike."""
    directory.mkdir()
    for index in range(count):
        lines = range(index * rows, (index + 1) * rows)
        (directory / f"{index:04}.txt").write_text("".join(f"{each}\n" for each in lines))
    return str(directory)


def run_stream(session: SparkSession, path: str, options: dict[str, str], checkpoint: Path) -> None:
    rows = session.readStream.option("maxFilesPerTrigger", "2").text(path)
    query = (
        rows.writeStream.format("pulsar-failing")
        .options(**options)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


@pytest.mark.parametrize("failure", ["commit-before", "commit-after"])
def test_a_commit_fails_and_the_batch_is_replayed(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path, failure: str
) -> None:
    path = files(tmp_path / "input", 6, 2000)
    options = sink_options(broker, topic, tmp_path, failure)
    with pytest.raises(errors.StreamingQueryException, match="commit fails"):
        run_stream(session, path, options, tmp_path / "checkpoint")
    found = stored(broker, topic)
    assert len(found) == len(set(found)) == 4000
    run_stream(session, path, options, tmp_path / "checkpoint")
    assert_each_once(stored(broker, topic), 12_000)


def test_a_topic_gains_partitions_before_a_batch_is_replayed(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    create_partitioned(broker, topic, 2)
    path = files(tmp_path / "input", 4, 3000)
    options = sink_options(broker, topic, tmp_path, "commit-after")
    with pytest.raises(errors.StreamingQueryException, match="commit fails"):
        run_stream(session, path, options, tmp_path / "checkpoint")
    create_partitioned(broker, topic, 5, method="POST")
    run_stream(session, path, options, tmp_path / "checkpoint")
    assert_each_once(stored(broker, topic), 12_000)
    assert stored(broker, f"{topic}-partition-2"), "the next batch goes to all"


def test_a_topic_gains_partitions_before_a_job_is_run_again(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    create_partitioned(broker, topic, 2)
    rows = ids(session).selectExpr("value", "value __key")
    broken = rows.selectExpr("if(value = '8000', raise_error('bad row'), value) value", "__key")
    options = sink_options(broker, topic, tmp_path, "none", idempotencyKey="grown")
    with pytest.raises(errors.PySparkException, match="bad row"):
        write(broken, options)
    create_partitioned(broker, topic, 5, method="POST")
    write(rows, options)
    assert_each_once(stored(broker, topic))


@pytest.mark.parametrize("failure", ["raise", "kill"])
def test_tasks_of_a_stream_die(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path, failure: str
) -> None:
    path = files(tmp_path / "input", 4, 12_000)
    options = sink_options(broker, topic, tmp_path, failure)
    run_stream(session, path, options, tmp_path / "checkpoint")
    assert list(tmp_path.glob(f"{failure}-*"))
    assert_each_once(stored(broker, topic), 48_000)


def test_a_query_with_a_new_checkpoint_is_another_one_though_its_key_is_old(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    options = sink_options(broker, topic, tmp_path, "none", idempotencyKey="fixed")
    one, other = (files(tmp_path / name, 4, 100) for name in ("one", "other"))
    run_stream(session, one, options, tmp_path / "checkpoint")
    run_stream(session, other, options, tmp_path / "new")
    assert sorted(stored(broker, topic)) == sorted(2 * [*range(400)])


def test_a_checkpoint_that_was_put_back_is_refused(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    path = files(tmp_path / "input", 4, 100)
    options = sink_options(broker, topic, tmp_path, "none")
    run_stream(session, path, options, tmp_path / "checkpoint")
    for log in ("offsets/1", "commits/1", "commits/0"):
        (tmp_path / "checkpoint" / log).unlink()
    with pytest.raises(errors.StreamingQueryException, match="put back to an older state"):
        run_stream(session, path, options, tmp_path / "checkpoint")
    assert_each_once(stored(broker, topic), 400)


def test_writes_of_for_each_batch_have_keys_of_their_own(
    session: SparkSession, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    path = files(tmp_path / "input", 2, 100)

    def run(checkpoint: str, **more: str) -> None:
        def write_batch(rows: DataFrame, batch_id: int) -> None:
            write(rows, sink_options(broker, topic, tmp_path, "none", **more))

        stream = session.readStream.option("maxFilesPerTrigger", "1").text(path)
        query = stream.writeStream.foreachBatch(write_batch).trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / checkpoint)).start().awaitTermination()

    with pytest.raises(errors.StreamingQueryException, match="needs idempotencyKey"):
        run("without")
    run("with", idempotencyKey="each-batch")
    assert_each_once(stored(broker, topic), 200)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"admin.url": None}, "needs admin.url"),
        ({"sequenceOrder": None}, "needs sequenceOrder"),
        ({"topic": "non-persistent://public/default/fleeting"}, "needs a persistent topic"),
        ({"pulsar.producer.producerName": "mine"}, "the connector sets it"),
        ({"sequenceOrder": "columns:nothing"}, "column 'nothing' has to be once"),
        ({"deliveryGuarantee": "at-least-once", "sequenceOrder": "content"}, "exactly-once"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused_before_any_row(
    session: SparkSession, broker: BrokerProcess, topic: str, changed: dict[str, Any], text: str
) -> None:
    options = sink_options(broker, topic, Path(), "none") | changed
    plain = {
        name: value
        for name, value in options.items()
        if value is not None and not name.startswith("test.")
    }
    with pytest.raises(errors.PySparkException, match=text):
        ids(session, 10).write.format("pulsar").mode("append").options(**plain).save()
    assert stored(broker, topic) == []


def test_topics_without_deduplication_are_refused(
    session: SparkSession, tmp_path: Path, topic: str
) -> None:
    with BrokerProcess(tmp_path) as broker:
        options = {
            "service.url": broker.service_url,
            "admin.url": broker.web_service_url,
            "topic": topic,
            "deliveryGuarantee": "exactly-once",
            "sequenceOrder": "input",
        }
        with pytest.raises(errors.PySparkException, match=f"deduplication of {topic} is Disabled"):
            ids(session, 10).write.format("pulsar").mode("append").options(**options).save()
        assert stored(broker, topic) == []


def test_topics_are_only_appended_to(
    session: SparkSession, broker: BrokerProcess, topic: str
) -> None:
    options = {"service.url": broker.service_url, "topic": topic}
    with pytest.raises(errors.PySparkException, match="can only be appended to"):
        ids(session, 10).write.format("pulsar").mode("overwrite").options(**options).save()
