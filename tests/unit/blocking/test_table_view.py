"""Table views without await."""

from __future__ import annotations

import threading

from pulsar_py import blocking


def test_it_is_a_mapping_that_stays_fresh(client: blocking.Client, topic: str) -> None:
    producer = client.create_producer(topic)
    producer.send(b"1", key="a")
    producer.send(b"2", key="b")
    with client.create_table_view(topic) as view:
        assert view.topic().endswith(topic)
        assert dict(view.items()) == {"a": b"1", "b": b"2"}
        assert (list(view), len(view), view["a"], "c" in view) == (["a", "b"], 2, b"1", False)
        assert list(view.values()) == [b"1", b"2"]
        items = view.items()
        producer.send(b"", key="a")
        producer.send(b"3", key="c")
        view.refresh()
        assert set(view.keys()) == {"b", "c"}
        assert dict(items) == {"a": b"1", "b": b"2"}
        seen = {}
        view.for_each(seen.__setitem__)
        assert seen == {"b": b"2", "c": b"3"}
    assert view["c"] == b"3"
    assert "closed" in repr(view)


def test_listeners_are_called_in_order_in_a_thread_and_may_block(
    client: blocking.Client, topic: str
) -> None:
    producer = client.create_producer(topic)
    producer.send(b"0", key="k")
    view = client.create_table_view(topic)
    got, more = [], []
    done = threading.Event()

    def listen(key: str, value: bytes) -> None:
        view.refresh()  # blocks
        got.append(value)
        if value == b"9":
            done.set()

    view.for_each_and_listen(listen)
    view.listen(lambda key, value: more.append(value))
    for number in range(1, 10):
        producer.send(b"%d" % number, key="k")
    assert done.wait(30)
    assert got == [b"%d" % number for number in range(10)]
    assert more
    view.close()
