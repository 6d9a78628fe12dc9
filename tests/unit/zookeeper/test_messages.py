from __future__ import annotations

import pytest

from pulsar_py.zookeeper import jute, messages
from pulsar_py.zookeeper.messages import Acl, ConnectAnswer, CreateMode, Operation
from tests.unit.zookeeper.scripted_server import STAT_BYTES, stat


def test_a_connection_begins_with_the_session_it_asks_for() -> None:
    frame = messages.connect(
        last_zxid=5, timeout_millis=30_000, session_id=7, password=b"pw", may_read_only=False
    )
    expected = "0000001f 00000000 0000000000000005 00007530 0000000000000007 00000002 7077 00"
    assert frame == bytes.fromhex(expected)


def test_the_answer_may_lack_its_last_field() -> None:
    record = jute.int32(0) + jute.int32(6000) + jute.int64(9) + jute.buffer(b"secret")
    assert messages.decode_connect(record) == ConnectAnswer(6000, 9, b"secret", is_read_only=False)
    assert messages.decode_connect(record + b"\x01").is_read_only


def test_a_request_has_its_number_and_its_operation() -> None:
    frame = messages.request(3, Operation.SYNC, messages.sync("/a"))
    assert frame == bytes.fromhex("0000000e 00000003 00000009 00000002 2f61")


def test_a_node_is_made_with_its_acls_and_its_kind() -> None:
    record = messages.create("/a", b"v", [Acl(31, "world", "anyone")], CreateMode.EPHEMERAL)
    reader = jute.RecordReader(record)
    assert (reader.text(), reader.buffer(), reader.int32()) == ("/a", b"v", 1)
    assert (reader.int32(), reader.text(), reader.text()) == (31, "world", "anyone")
    assert (reader.int32(), reader.remaining_count) == (1, 0)


def test_watches_are_set_again_as_recursive_ones_alone() -> None:
    reader = jute.RecordReader(messages.set_watches(9, ["/a", "/b"]))
    assert reader.int64() == 9
    assert [reader.texts() for _ in range(5)] == [[], [], [], [], ["/a", "/b"]]


def test_a_nodes_figures_are_read_in_their_order() -> None:
    encoded = stat(version=4, owner=11)
    assert len(encoded) == STAT_BYTES
    decoded = messages.decode_stat(jute.RecordReader(encoded))
    assert (decoded.created_millis, decoded.modified_millis) == (10, 20)
    assert (decoded.version, decoded.ephemeral_owner) == (4, 11)


def test_a_watch_tells_what_happened_where() -> None:
    record = jute.int32(2) + jute.int32(3) + jute.text("/a")
    assert messages.decode_watch_event(jute.RecordReader(record)) == messages.WatchEvent(2, "/a")


def test_the_other_records_begin_with_their_path() -> None:
    assert messages.with_version("/a", -1) == jute.text("/a") + jute.int32(-1)
    assert messages.set_data("/a", b"v", 2) == jute.text("/a") + jute.buffer(b"v") + jute.int32(2)
    assert messages.unwatched("/a") == jute.text("/a") + b"\0"
    assert messages.add_watch("/a") == jute.text("/a") + jute.int32(1)
    assert messages.remove_watches("/a") == jute.text("/a") + jute.int32(3)
    assert messages.auth("digest", b"u:p") == (
        jute.int32(0) + jute.text("digest") + jute.buffer(b"u:p")
    )


def test_changes_go_together_and_are_answered_together() -> None:
    def head(operation: int, *, error: int = -1) -> bytes:
        return jute.int32(operation) + b"\0" + jute.int32(error)

    end = jute.int32(-1) + b"\1" + jute.int32(-1)
    delete, change = messages.with_version("/a", -1), messages.set_data("/b", b"v", 3)
    record = messages.multi([(Operation.DELETE, delete), (Operation.SET_DATA, change)])
    assert record == head(2) + delete + head(5) + change + end

    made = head(15, error=0) + jute.text("/c-7") + stat()
    made_without_figures = head(1, error=0) + jute.text("/d")
    changed = head(5, error=0) + stat(version=4)
    told = made + head(2, error=0) + made_without_figures + changed + end
    parts = messages.multi_parts(jute.RecordReader(told))
    assert parts is not None
    assert (parts[0].text(), parts[2].text(), len(parts)) == ("/c-7", "/d", 4)
    assert messages.decode_stat(parts[3]).version == 4


@pytest.mark.parametrize("foreign", [jute.int32(2) + bytes(5), jute.int32(9) + bytes(5)])
def test_a_refused_change_is_told_from_an_answer_that_cannot_be_read(foreign: bytes) -> None:
    end = jute.int32(-1) + b"\1" + jute.int32(-1)
    refused = jute.int32(-1) + b"\0" + jute.int32(-111) + jute.int32(-111)
    assert messages.multi_parts(jute.RecordReader(refused * 2 + end)) is None
    with pytest.raises(jute.JuteError):
        messages.multi_parts(jute.RecordReader(foreign))


def test_a_step_of_sasl_is_a_token() -> None:
    assert messages.sasl(b"token") == jute.buffer(b"token")


def test_paths_are_parted_by_bytes_and_by_number() -> None:
    assert messages.parts([], 100) == []
    assert messages.parts(["/a", "/b", "/c"], 12) == [["/a", "/b"], ["/c"]]
    assert messages.parts(["/a", "/b", "/c"], 100, 2) == [["/a", "/b"], ["/c"]]
    assert messages.parts(["/" + "a" * 50, "/b"], 12) == [["/" + "a" * 50], ["/b"]]
