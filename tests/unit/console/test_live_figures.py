"""Rates between two looks, and who is busiest."""

from __future__ import annotations

from pulsar_py.console.live_figures import (
    BUSIEST,
    LiveFigures,
    Sample,
    TopicCounts,
    busiest,
    sample_between,
)
from tests.unit.console.conftest import ConsoleCalls


def counts(messages_in: int, messages_out: int = 0) -> TopicCounts:
    return TopicCounts(messages_in, 10 * messages_in, messages_out, 10 * messages_out, 3, 100)


def test_rates_are_what_was_counted_between_two_looks() -> None:
    before = {"a": counts(100, 50), "b": counts(7)}
    after = {"a": counts(120, 60), "b": counts(7), "new": counts(1000)}
    found = sample_between(before, after, 2.0, Sample(millis=5, topics=3))
    assert (found.message_in_rate, found.message_out_rate) == (10, 5)
    assert (found.bytes_in_rate, found.bytes_out_rate) == (100, 50)
    assert (found.millis, found.topics) == (5, 3)


def test_a_topic_that_was_loaded_anew_begins_at_nothing() -> None:
    found = sample_between({"a": counts(500)}, {"a": counts(20)}, 2.0, Sample(millis=0))
    assert found.message_in_rate == 10


def test_the_busiest_topics_come_first_and_are_few() -> None:
    before = {f"t{n}": counts(0) for n in range(50)}
    after = {f"t{n}": counts(n) for n in range(50)}
    found = busiest(before, after, 1.0)
    assert [each["topic"] for each in found] == [f"t{49 - n}" for n in range(BUSIEST)]
    assert found[0]["messageInRate"] == 49
    assert busiest(after, after, 1.0) == []


async def test_samples_are_shared_and_not_taken_too_often(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t")
    await producer.send(b"one")
    first = await console.get("/admin/console/live")
    assert len(first["samples"]) == 1
    sample = first["samples"][0]
    assert (sample["topics"], sample["producers"], sample["connections"]) == (1, 1, 1)
    assert sample["messageInRate"] == 0
    again = await console.get("/admin/console/live")
    assert again["samples"] == first["samples"]
    assert (await console.get(f"/admin/console/live?since={sample['millis']}"))["samples"] == []


async def test_the_next_sample_has_rates(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t")
    figures = LiveFigures(console.service)
    await figures._measure()
    await producer.send(b"x" * 100)
    figures._due_at = 0.0
    await figures._measure()
    assert len(figures._samples) == 2
    assert figures._samples[-1].message_in_rate > 0
    assert figures._busiest[0]["topic"] == "persistent://public/default/t"


async def test_after_a_pause_there_are_no_rates_over_it(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t")
    figures = LiveFigures(console.service)
    await figures._measure()
    await producer.send(b"x")
    figures._due_at, figures._sampled_at = 0.0, figures._sampled_at - 60
    await figures._measure()
    assert figures._samples[-1].message_in_rate == 0
    assert figures._busiest == []


async def test_storage_is_shown_by_namespace_and_topic(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t")
    await producer.send(b"x" * 1000)
    found = await console.get("/admin/console/storage")
    assert found["topics"][0]["name"] == "persistent://public/default/t"
    assert found["namespaces"] == [{"name": "public/default", "bytes": found["totalBytes"]}]
    assert found["totalBytes"] > 1000
    assert isinstance(found["store"], dict)
