"""Commands of `pulsar-py admin topics` about subscriptions and messages (declarations).

Source: CmdTopics in Pulsar's client tools; the dump of bytes is that of Netty's ByteBufUtil.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from pulsar_py.admin_client import subscriptions
from pulsar_py.admin_client.call import Call, Reply
from pulsar_py.admin_client.records import ResetCursorData
from pulsar_py.cli.admin import output
from pulsar_py.cli.admin.words import TOPIC, Args, Steps, Word, one_of
from pulsar_py.common.foreign_json import parse_json

_SUBSCRIPTION: Final = "-s/--subscription!"
_PER_LINE: Final = 16
_PRINTABLE: Final = range(0x20, 0x7F)


def words() -> Iterator[Word]:
    """The words, in the order of `--help`."""
    yield from _WORDS


def _reset_data(a: Args, position: tuple[int, int]) -> ResetCursorData:
    ledger_id, entry_id = position
    return ResetCursorData(
        ledger_id=ledger_id,
        entry_id=entry_id,
        excluded=bool(getattr(a, "exclude_reset_position", False)),
    )


def _create(a: Args) -> Call[None]:
    ledger_id, entry_id = a.messageId
    position = ResetCursorData(
        ledger_id=ledger_id, entry_id=entry_id, properties=a.property or None
    )
    return subscriptions.create_subscription(
        a.topic, a.subscription, position, replicated=bool(getattr(a, "replicated", False))
    )


def _set_properties(a: Args) -> Call[None]:
    if a.clear and a.property:
        raise ValueError("If you set --clear then you should not pass any properties")
    if not a.clear and not a.property:
        raise ValueError("If you want to clear the properties you have to use --clear")
    return subscriptions.set_properties(a.topic, a.subscription, a.property)


def _expire(a: Args) -> Call[None]:
    """The call that expires messages by age or by position."""
    position = getattr(a, "position", None)
    is_timed = a.expireTime >= 0
    if is_timed == (position is not None):
        raise ValueError(
            "Either time (--expireTime) or message position (--position) has to be provided "
            "to expire messages"
        )
    if is_timed:
        return subscriptions.expire_older(a.topic, a.subscription, a.expireTime)
    assert position is not None
    return subscriptions.expire_until(a.topic, a.subscription, _reset_data(a, position))


def _reset(a: Args) -> Call[None]:
    """Reset a cursor to a message, or to a time before now."""
    if (a.messageId is None) == (a.time is None):
        raise ValueError(
            "Either Timestamp (--time) or messageId (--messageId) has to be provided to reset "
            "cursor"
        )
    if a.messageId is not None:
        return subscriptions.reset_to_position(a.topic, a.subscription, _reset_data(a, a.messageId))
    return subscriptions.reset_to_time(a.topic, a.subscription, a.now_millis() - a.time)


def _analyze(a: Args) -> Call[Any]:
    position = None if a.position is None else _reset_data(a, a.position)
    return subscriptions.analyze_backlog(a.topic, a.subscription, position)


def _peek(a: Args) -> Steps:
    """The next messages of a backlog."""
    found = []
    for number in range(1, a.count + 1):
        reply = yield subscriptions.peek(a.topic, a.subscription, number)
        found.append(message_of(reply))
    return found


def _examine(a: Args) -> Steps:
    reply = yield subscriptions.examine(
        a.topic, from_end=a.initialPosition, number=a.messagePosition
    )
    return [message_of(reply)]


def _by_id(a: Args) -> Steps:
    reply = yield subscriptions.message(a.topic, a.ledgerId, a.entryId)
    return [{**message_of(reply), "redeliveryCount": 0}]


def _read(a: Args) -> Call[Any]:
    """Messages of a topic, or of a backlog, decoded."""
    query = {
        "limit": a.count,
        "messageId": a.messageId,
        "key": a.key,
        "property": a.property,
        "text": a.text,
        "where": a.where,
    }
    given = {name: value for name, value in query.items() if value is not None}
    if a.subscription is None:
        return subscriptions.readable_messages(a.topic, **given)
    return subscriptions.readable_backlog(a.topic, a.subscription, **given)


def show_readable(answer: Any) -> str:  # Any: JSON
    """An object a line: the messages, and last the id to go on with (`next`) if there are more."""
    objects = list(answer["messages"])
    if "next" in answer:
        objects.append({"next": answer["next"]})
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects)


def message_of(reply: Reply) -> dict[str, Any]:
    """A message as JSON; its payload is in base 64, and as text too if it is one."""
    headers = reply.headers
    given = parse_json(headers.get("x-pulsar-property", "{}"))
    published = headers.get("x-pulsar-publish-time")
    event = headers.get("x-pulsar-event-time")
    found = {
        "messageId": headers.get("x-pulsar-message-id", ""),
        "batchSize": int(headers.get("x-pulsar-num-batch-message", 0)) or None,
        "publishTime": _millis(published),
        "eventTime": _millis(event),
        "key": headers.get("x-pulsar-partition-key"),
        "properties": given,
        "data": base64.b64encode(reply.body).decode(),
        "text": _text(reply.body),
    }
    return {name: each for name, each in found.items() if each is not None}


def _millis(text: str | None) -> int:
    if not text:
        return 0
    found = datetime.fromisoformat(text)
    return round(found.timestamp() * 1000)


def _text(data: bytes) -> str | None:
    try:
        found = data.decode()
    except UnicodeDecodeError:
        return None
    return found if found.isprintable() else None


def show_messages(value: Any) -> str:  # Any: the messages
    """As pulsar-admin prints them, with their bytes."""
    between = f"{'-' * 73}\n\n"
    return between.join(_shown(each) for each in value)


def _shown(message: dict[str, Any]) -> str:
    lines = []
    if "batchSize" in message:
        lines.append(f"Batch Message ID: {message['messageId']}")
    else:
        lines.append(f"Message ID: {message['messageId']}")
    lines += [f"Publish time: {message['publishTime']}", f"Event time: {message['eventTime']}"]
    if "redeliveryCount" in message:
        lines.append(f"Redelivery count: {message['redeliveryCount']}")
    if message["properties"]:
        lines.append("Properties:")
    properties = output.mapping(message["properties"])
    return "\n".join(lines) + "\n" + properties + hex_dump(base64.b64decode(message["data"]))


def hex_dump(data: bytes) -> str:
    """Bytes in hexadecimal and as ASCII, 16 a line, in a frame."""
    if not data:
        return "\n"
    rule = f"+--------+{'-' * 49}+{'-' * 16}+"
    lines = [
        f"         +{'-' * 49}+",
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
    ]
    lines.append(rule)
    for start in range(0, len(data), _PER_LINE):
        part = data[start : start + _PER_LINE]
        numbers = "".join(f" {each:02x}" for each in part).ljust(3 * _PER_LINE)
        letters = "".join(chr(each) if each in _PRINTABLE else "." for each in part)
        lines.append(f"|{start:08x}|{numbers} |{letters.ljust(_PER_LINE)}|")
    return "\n".join([*lines, rule]) + "\n"


# fmt: off
_WORDS: Final = (
    Word("subscriptions", "List the subscriptions of a topic", TOPIC, "",
         lambda a: subscriptions.subscriptions(a.topic)),
    Word("unsubscribe", "Delete a subscription", TOPIC, f"-f/--force:flag {_SUBSCRIPTION}",
         lambda a: subscriptions.delete_subscription(a.topic, a.subscription, force=a.force)),
    Word("create-subscription", "Create a subscription", TOPIC,
         f"{_SUBSCRIPTION} -m/--messageId:position=latest -r/--replicated:flag --property/-p:map",
         _create),
    Word("update-subscription-properties", "Replace the properties of a subscription", TOPIC,
         f"{_SUBSCRIPTION} --property/-p:map --clear/-c:flag", _set_properties),
    Word("get-subscription-properties", "Show the properties of a subscription", TOPIC,
         _SUBSCRIPTION, lambda a: subscriptions.properties(a.topic, a.subscription),
         show=output.compact),
    Word("skip", "Acknowledge the next messages of a backlog", TOPIC,
         f"{_SUBSCRIPTION} -n/--count:long!",
         lambda a: subscriptions.skip(a.topic, a.subscription, a.count)),
    Word("clear-backlog", "Acknowledge a whole backlog", TOPIC, _SUBSCRIPTION,
         lambda a: subscriptions.clear_backlog(a.topic, a.subscription)),
    Word("expire-messages", "Acknowledge messages that are older", TOPIC,
         f"{_SUBSCRIPTION} -t/--expireTime:time=-1 --position/-p:position "
         "-e/--exclude-reset-position:flag", _expire),
    Word("expire-messages-all-subscriptions", "Acknowledge older messages on all subscriptions",
         TOPIC, "-t/--expireTime:time!",
         lambda a: subscriptions.expire_older_on_all(a.topic, a.expireTime)),
    Word("reset-cursor", "Go back, or forward, to a message or a time", TOPIC,
         f"{_SUBSCRIPTION} --time/-t:millis --messageId/-m:position "
         "-e/--exclude-reset-position:flag", _reset),
    Word("peek-messages", "Show the next messages of a backlog", TOPIC,
         f"{_SUBSCRIPTION} -n/--count:int=1 -ssm/--show-server-marker:flag "
         "-til/--transaction-isolation-level:choice(READ_COMMITTED,READ_UNCOMMITTED)"
         "=READ_COMMITTED", _peek, show=show_messages),
    Word("read-messages", "Show messages decoded, of the topic or of a backlog", TOPIC,
         "-s/--subscription -n/--count:int=10 -m/--messageId -k/--key --property --text --where",
         _read, show=show_readable),
    Word("examine-messages", "Show a message counted from an end", TOPIC,
         "-i/--initialPosition=latest -m/--messagePosition:long=1", _examine, show=show_messages),
    Word("get-message-by-id", "Show a message", TOPIC, "-l/--ledgerId:long! -e/--entryId:long!",
         _by_id, show=show_messages),
    Word("analyze-backlog", "Count a backlog by reading it", TOPIC,
         f"{_SUBSCRIPTION} --position/-p:position", _analyze),
    Word("set-replicated-subscription-status", "Say whether a subscription is replicated", TOPIC,
         f"{_SUBSCRIPTION} --enable/-e:flag --disable/-d:flag",
         lambda a: subscriptions.set_replicated_status(
             a.topic, a.subscription, replicated=one_of(a))),
    Word("get-replicated-subscription-status", "Show whether a subscription is replicated", TOPIC,
         _SUBSCRIPTION, lambda a: subscriptions.replicated_status(a.topic, a.subscription),
         show=output.mapping),
)
# fmt: on
