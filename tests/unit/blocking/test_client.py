"""The blocking client: its end, forks, and that nothing of the asyncio client is missing."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
import types

import pytest

import pulsar_py
from pulsar_py import blocking
from pulsar_py.testing import BrokerThread
from tests.package_source import ROOT

OWN = {
    "AnyConsumer",
    "Client",
    "Consumer",
    "MultiTopicsConsumer",
    "PartitionedProducer",
    "PatternConsumer",
    "Producer",
    "Reader",
    "SendResult",
    "TableView",
}
"""Names that mean something else here than in `pulsar_py`."""

FOR_PARTS = {
    "abandon": "what the blocking parts call when they are dropped",
    "acknowledge_all": "called by `Acknowledgements`",
    "blocks_if_full": "called by `HandOver`",
    "consumer": "used by the blocking reader",
    "context": "the state that parts of the library share",
    "copy": "called by the blocking view",
    "encode_ahead": "called by the blocking producer",
    "ends": "for Spark",
    "flush_soon": "called by `HandOver`",
    "hand_over": "called by the client before it closes",
    "has_interceptors": "asked by the blocking producer",
    "hands_out_runs": "asked by `Prefetch`",
    "observe": "called by `HandOver`",
    "observe_undone": "called by `HandOver`",
    "on_topics_listed": "called by the watcher of a pattern",
    "on_topics_updated": "called by the watcher of a pattern",
    "on_watch_failed": "called by the watcher of a pattern",
    "open": "called by the client",
    "own": "called by the client",
    "passed_key": "for Spark",
    "peek": "called by the reporter",
    "pending_count": "asked by `HandOver`",
    "pending_limit": "asked by `HandOver`",
    "receive_for_listener": "called by the listener's runner",
    "receive_run": "for Spark",
    "receiver": "for consumers of several topics",
    "redeliver": "for parts of the consumer",
    "redelivery_filter": "for dead letters",
    "start": "called by the client",
    "statistics_fields": "called by the reporter",
    "submit_alone": "called by `HandOver`",
    "submit_plain_run": "called by `HandOver`",
    "submit_waiting": "called by `HandOver`",
    "take_statistics": "called by the reporter",
    "watch_room": "called by `HandOver`",
    "update_partitions": "called by its timer",
}
"""Public methods of the asyncio classes that are for parts of the library, and for which."""

OTHERWISE = {
    **{
        (consumer, method): "may be awaited there"
        for consumer in ("Consumer", "MultiTopicsConsumer", "PatternConsumer")
        for method in ("negative_acknowledge", "redeliver_unacknowledged_messages")
    },
    ("SendResult", "result"): "waits, so it has a limit",
    ("SendResult", "exception"): "waits, so it has a limit",
    ("TableView", "items"): "inherited from Mapping there, without types",
    ("TableView", "keys"): "inherited from Mapping there, without types",
    ("TableView", "values"): "inherited from Mapping there, without types",
}
"""Methods whose parameters differ, and why."""

CLASSES = sorted(OWN - {"AnyConsumer"})


def public(cls: type) -> dict[str, object]:
    """Its public methods and properties, inherited ones too."""
    found = {}
    for name in dir(cls):
        if name.startswith("_") or name in FOR_PARTS:
            continue
        member = inspect.getattr_static(cls, name)
        if isinstance(member, types.FunctionType | property):
            found[name] = member
    return found


def shape(member: object) -> tuple[object, ...]:
    """Its parameters and what it returns, as they are written."""
    if isinstance(member, property):
        return ("property", member.fget.__annotations__.get("return"))
    signature = inspect.signature(member)
    parameters = [(p.name, p.kind, p.default, p.annotation) for p in signature.parameters.values()]
    return (parameters, signature.return_annotation)


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_is_there_with_the_same_signature(name: str) -> None:
    asynchronous = public(getattr(pulsar_py, name))
    here = public(getattr(blocking, name))
    assert here.keys() == asynchronous.keys()
    assert len(here) > 3
    for method, member in here.items():
        assert not inspect.iscoroutinefunction(member), method
        if (name, method) not in OTHERWISE:
            assert shape(member) == shape(asynchronous[method]), f"{name}.{method}"


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_entered_and_gone_through_with_await_is_so_without(name: str) -> None:
    asynchronous, here = getattr(pulsar_py, name), getattr(blocking, name)
    for async_name, plain in (
        ("__aenter__", "__enter__"),
        ("__aexit__", "__exit__"),
        ("__aiter__", "__iter__"),
        ("__anext__", "__next__"),
    ):
        if hasattr(asynchronous, async_name):
            assert callable(getattr(here, plain)), f"{name}.{plain}"
            assert not hasattr(here, async_name)
    assert here.__doc__
    assert shape(here.__init__) == shape(asynchronous.__init__) or name != "Client"


def test_all_names_are_here_and_only_those_that_block_differ() -> None:
    assert set(blocking.__all__) == set(pulsar_py.client.__all__) | {"timeout"}
    assert {
        name
        for name in pulsar_py.client.__all__
        if getattr(blocking, name) is not getattr(pulsar_py, name)
    } == OWN
    assert dir(blocking) == sorted(blocking.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = blocking.Nothing


def test_unknown_options_are_refused(client: blocking.Client, topic: str) -> None:
    with pytest.raises(pulsar_py.InvalidConfigurationError, match="batching_enabled"):
        client.create_producer(topic, batching_enable=True)
    assert client.get_topic_partitions(topic) == [f"persistent://public/default/{topic}"]


def test_a_closed_client_is_of_no_use(session_pulsar_broker: object, topic: str) -> None:
    client = blocking.Client(session_pulsar_broker.service_url)
    assert repr(client) == f"blocking.Client({client.service_url}, open)"
    client.update_service_url(session_pulsar_broker.service_url)
    consumer = client.subscribe(topic, "s")
    client.close()
    client.close()
    assert client.is_closed
    assert consumer.is_closed
    with pytest.raises(pulsar_py.AlreadyClosedError):
        client.create_producer(topic)
    with pytest.raises(pulsar_py.AlreadyClosedError):
        consumer.receive(10)


def test_shutdown_ends_waits_at_once(session_pulsar_broker: object, topic: str) -> None:
    client = blocking.Client(session_pulsar_broker.service_url)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    result = producer.send_nowait(b"x")
    client.shutdown()
    assert isinstance(result.exception(5), pulsar_py.ClientError)
    assert client.is_closed


def test_a_client_that_nobody_closed_is_told_of(session_pulsar_broker: object, topic: str) -> None:
    client = blocking.Client(session_pulsar_broker.service_url)
    client.create_producer(topic)
    del client
    with pytest.warns(ResourceWarning, match=r"unclosed blocking\.Client\(pulsar://"):
        gc.collect()


async def test_in_the_loop_of_the_broker_a_call_is_refused_at_once() -> None:
    async with pulsar_py.Broker() as broker:
        client = blocking.Client(broker.service_url)
        with pytest.raises(pulsar_py.ClientError, match=r"use `pulsar_py.Client`, `await asyncio"):
            client.create_producer("t")
        producer = await asyncio.to_thread(client.create_producer, "t")
        await asyncio.to_thread(producer.send, b"x")
        with pytest.raises(pulsar_py.ClientError, match="runs in the event loop of this thread"):
            producer.send(b"x")
        await asyncio.to_thread(client.close)


FORKING = """
import os, sys
from pulsar_py import blocking
from pulsar_py.testing import BrokerThread

with BrokerThread() as broker, blocking.Client(broker.service_url) as client:
    producer, consumer = client.create_producer("t"), client.subscribe("t", "s")
    producer.send(b"before")
    child = os.fork()
    if child == 0:
        try:
            for act in (
                lambda: producer.send_nowait(b"child"), lambda: producer.send(b"child"),
                producer.flush, consumer.receive, lambda: client.create_producer("u"), client.close,
            ):
                try:
                    act()
                except blocking.ForkedProcessError as error:
                    assert "make a new client after the fork" in str(error)
                else:
                    os._exit(1)
            with blocking.Client(broker.service_url) as own:
                own.create_producer("t").send(b"of the child's own client")
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(repr(error))
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    producer.send(b"after")
    got = []
    while len(got) < 3:
        message = consumer.receive(30_000)
        got.append(message.data())
        consumer.acknowledge(message)
    print(*got)
"""


def test_a_forked_child_makes_its_own_client() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "b'before' b\"of the child's own client\" b'after'\n", done.stderr
    assert done.stderr == ""


INTERRUPTED = """
import os, signal, threading
from pulsar_py import blocking
from pulsar_py.testing import BrokerThread

# A shell's background jobs ignore it, and whoever they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
with BrokerThread() as broker, blocking.Client(broker.service_url) as client:
    consumer = client.subscribe("t", "s")
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        consumer.receive()
    except KeyboardInterrupt:
        print("interrupted")
    client.create_producer("t").send(b"x")
    print(consumer.receive(30_000).data())
left_open = blocking.Client(broker.service_url)
"""
LEFT_OPEN = """
import sys, threading
from pulsar_py import blocking

client = blocking.Client(sys.argv[1])
begun = threading.Event()
client.subscribe("left", "s", message_listener=lambda consumer, message: begun.set())
client.create_table_view("left").listen(lambda key, value: None)
producer = client.create_producer("left")
for number in range(300):
    sent = producer.send_nowait(b"x", key=str(number))
sent.result()
begun.wait(10)
print("ends")
"""


def test_ctrl_c_ends_a_wait_and_a_program_ends_with_clients_open() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", INTERRUPTED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\nb'x'\n"), done.stderr
    assert done.stderr.count("ResourceWarning: unclosed blocking.Client(pulsar://") == 1


def test_a_program_that_leaves_listeners_behind_ends_without_a_word(
    session_pulsar_broker: BrokerThread,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, session_pulsar_broker.service_url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_threads_go_on_after_an_outage() -> None:
    with BrokerThread() as broker, blocking.Client(broker.service_url) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t", block_if_queue_full=True, max_pending_messages=50)
        got: list[int] = []

        def receive() -> None:
            for message in consumer:
                number = int(message.data())
                if number not in got:
                    got.append(number)
                consumer.acknowledge(message)
                if len(got) == 300:
                    return

        receiver = threading.Thread(target=receive)
        receiver.start()
        for number in range(300):
            producer.send_nowait(b"%d" % number)
            if number in (100, 200):
                broker.restart()
        with blocking.timeout(20):
            producer.flush()
        receiver.join(20)
        assert got == list(range(300))


def test_statistics_are_those_of_all_that_the_client_made(
    client: blocking.Client, topic: str
) -> None:
    producer = client.create_producer(topic, producer_name="p")
    client.subscribe([f"{topic}-a", f"{topic}-b"], "s", consumer_name="c")
    producer.send(b"12345")
    statistics = client.statistics()
    assert statistics.connections_count >= 1
    assert statistics.pending_bytes == 0
    ((fields, figures),) = statistics.producers
    assert (fields["producer"], figures.total_bytes_sent) == ("p", 5)
    assert [fields["subscription"] for fields, _ in statistics.consumers] == ["s", "s"]
