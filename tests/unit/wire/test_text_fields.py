"""Texts that are not UTF-8 are found wherever they are."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck
from pulsar_py.wire.command_codec import read_command, serialize
from pulsar_py.wire.text_fields import has_broken_text, has_texts

_SUBSCRIBE = BaseCommand(type=BaseCommand.SUBSCRIBE).subscribe
_SUBSCRIBE.topic, _SUBSCRIBE.subscription = "the-topic", "ü"
_SUBSCRIBE.subType, _SUBSCRIBE.consumer_id, _SUBSCRIBE.request_id = 0, 1, 2**40
_SUBSCRIBE.metadata.add(key="the-key", value="the-value")
_SUBSCRIBE.subscription_properties.add(key="other", value="v")
_SUBSCRIBE.schema.name, _SUBSCRIBE.schema.type, _SUBSCRIBE.schema.schema_data = "name", 0, b"\xff"
_SUBSCRIBE.schema.properties.add(key="deep-key", value="w")
_SUBSCRIBE.start_message_id.ledgerId = _SUBSCRIBE.start_message_id.entryId = 2**63
DATA = serialize(_SUBSCRIBE)


def test_good_texts_pass_whatever_the_other_bytes() -> None:
    assert not DATA.isascii()
    assert not has_broken_text(read_command(DATA).subscribe)


@pytest.mark.parametrize("text", [b"the-topic", b"the-value", b"the-key", b"other", b"deep-key"])
def test_broken_ones_are_found_at_any_depth(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="SUBSCRIBE has a text that is not UTF-8"):
        read_command(DATA.replace(text, b"\xff" + text[1:]))


def test_repeated_texts_are_looked_at() -> None:
    command = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE)
    response = command.getTopicsOfNamespaceResponse
    response.request_id = 1
    response.topics.extend(["one", "two"])
    data = serialize(response)
    assert list(read_command(data).getTopicsOfNamespaceResponse.topics) == ["one", "two"]
    with pytest.raises(RemoteProtocolError, match="not UTF-8"):
        read_command(data.replace(b"two", b"tw\xff"))


def test_messages_without_texts_pass() -> None:
    ack = CommandAck(consumer_id=2**40, ack_type=CommandAck.Individual)
    ack.message_id.add(ledgerId=2**40, entryId=2**41)
    assert read_command(serialize(ack)).ack == ack


def test_properties_of_an_ack_are_looked_at() -> None:
    ack = CommandAck(consumer_id=2**40, ack_type=CommandAck.Cumulative)
    ack.properties.add(key="the-key", value=1)
    data = serialize(ack)
    assert read_command(data).ack == ack
    with pytest.raises(RemoteProtocolError, match="ACK has a text"):
        read_command(data.replace(b"the-key", b"the-\xffey"))


MESSAGES = [field.message_type for field in BaseCommand.DESCRIPTOR.fields if field.message_type]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_a_command_without_texts_is_one_in_whose_fields_none_is_found(message: Descriptor) -> None:
    found: list[str] = []
    waiting = [message]
    seen: set[str] = set()
    while waiting:
        descriptor = waiting.pop()
        if descriptor.full_name not in seen:
            seen.add(descriptor.full_name)
            for each in descriptor.fields:
                if each.type == FieldDescriptor.TYPE_STRING:
                    found.append(each.full_name)
                elif each.message_type is not None:
                    waiting.append(each.message_type)
    assert has_texts(message) is bool(found), found
