"""Words about subscriptions and messages; what was recorded is in test_topics."""

from __future__ import annotations

import json

import pytest

from pulsar_py.admin_client.call import Reply
from pulsar_py.cli.admin.topic_subscriptions import hex_dump, message_of, show_messages
from tests.unit.cli.admin.replayed import Fake, run


def test_a_time_to_reset_to_is_before_now() -> None:
    server, done = run("topics", "reset-cursor", "-s", "s", "-t", "10m", "t")
    assert done.exit_code == 0
    millis = int(server.requests[0][1].rpartition("/")[2])
    server, _ = run("topics", "reset-cursor", "-s", "s", "-t", "1h", "t")
    earlier = int(server.requests[0][1].rpartition("/")[2])
    assert 40 * 60_000 < millis - earlier <= 50 * 60_000


def test_a_subscription_starts_where_it_is_told() -> None:
    server, _ = run("topics", "create-subscription", "-s", "s", "-m", "earliest", "t")
    body = server.requests[0][3]
    assert (body["ledgerId"], body["entryId"], body["excluded"]) == (-1, -1, False)
    server, _ = run("topics", "create-subscription", "-s", "s", "t")
    assert server.requests[0][3]["ledgerId"] == 2**63 - 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("reset-cursor -s s t", "has to be provided to reset cursor"),
        ("reset-cursor -s s -t 1m -m 1:2 t", "has to be provided to reset cursor"),
        ("expire-messages -s s t", "has to be provided to expire messages"),
        ("expire-messages -s s -t 1m -p 1:2 t", "has to be provided"),
        ("update-subscription-properties -s s t", "use --clear"),
        ("update-subscription-properties -s s -p a=b -c t", "should not pass any properties"),
        ("set-replicated-subscription-status -s s t", "--enable or --disable"),
    ],
)
def test_options_that_do_not_fit_are_refused(line: str, said: str) -> None:
    server, done = run("topics", *line.split())
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert not server.requests


def test_a_batch_is_shown_with_its_id() -> None:
    headers = {
        "x-pulsar-message-id": "1:2:0",
        "x-pulsar-num-batch-message": "3",
        "x-pulsar-publish-time": "2024-01-02T03:04:05.678Z",
        "x-pulsar-event-time": "2024-01-02T03:04:06Z",
    }
    message = message_of(Reply(200, headers, b"\x00\xff", lambda: None))
    assert message["publishTime"] == 1704164645678
    assert message["eventTime"] == 1704164646000
    assert "text" not in message
    assert show_messages([message]).startswith(
        "Batch Message ID: 1:2:0\nPublish time: 1704164645678\n"
    )


def test_more_than_a_line_of_bytes() -> None:
    shown = hex_dump(bytes(range(0x30, 0x42))).splitlines()
    assert (
        shown[3]
        == f"|00000000| {' '.join(f'{each:02x}' for each in range(0x30, 0x40))} |0123456789:;<=>?|"
    )
    assert shown[4] == f"|00000010| 40 41{' ' * 43}|@A              |"
    assert hex_dump(b"") == "\n"


def test_messages_as_json_have_their_text() -> None:
    _, done = run("topics", "peek-messages", "-s", "s", "t", "-o", "json")
    (message,) = json.loads(done.stdout)
    assert message["text"] == "hello"
    assert message["data"] == "aGVsbG8="
    assert message["properties"] == {"a": "b"}


def test_messages_are_read_decoded_from_a_topic_or_a_backlog() -> None:
    answer = {"messages": [{"messageId": "1:0", "value": {"n": "å"}}], "next": "1:1"}
    server, done = run("topics", "read-messages", "t", fake=Fake(own={"messages": answer}))
    assert done.output.splitlines() == [
        '{"messageId": "1:0", "value": {"n": "å"}}',
        '{"next": "1:1"}',
    ]
    assert server.requests[0][1] == "/admin/v2/persistent/public/default/t/messages"
    assert server.requests[0][2] == {"limit": "10"}
    line = "read-messages t -s a -n 2 -m 1:1 -k x --property p=q --text y --where n>1"
    server, done = run("topics", *line.split(), fake=Fake(own={"messages": {"messages": []}}))
    assert done.output == ""
    assert server.requests[0][1].endswith("/t/subscription/a/messages")
    assert server.requests[0][2] == {
        "limit": "2",
        "messageId": "1:1",
        "key": "x",
        "property": "p=q",
        "text": "y",
        "where": "n>1",
    }
