"""The largest form of each command that a client may send: one frame of 5 MiB + 10 KiB, filled.

Each is filled with the parts that its handler looks at one by one: ids, words of ack sets, pairs of
texts, hash ranges, names. Where so many are refused, a second row has as many as are served, each
as long as there is room. They are written as bytes: building a message of so many parts takes
seconds.

Commands that are a few numbers have no such form: `large_frames.VARIABLE_KINDS` tells the others.
"""

from __future__ import annotations

from benchmarks.large_frames import (
    ITEM_BYTES,
    MINUS_ONE,
    SIZES,
    SPARE_BYTES,
    LargestCommand,
    command_frame,
    different,
    field,
    filled,
    hash_range,
    long_pair,
    message_id,
    number_pair,
    pair,
    send_frame,
    served,
    with_field,
)
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandAddPartitionToTxn,
    CommandAddSubscriptionToTxn,
    CommandAuthResponse,
    CommandCloseConsumer,
    CommandCloseProducer,
    CommandConnect,
    CommandEndTxnOnPartition,
    CommandEndTxnOnSubscription,
    CommandGetOrCreateSchema,
    CommandGetSchema,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandPartitionedTopicMetadata,
    CommandProducer,
    CommandRedeliverUnacknowledgedMessages,
    CommandScalableTopicLookup,
    CommandScalableTopicSubscribe,
    CommandSeek,
    CommandSend,
    CommandSubscribe,
    CommandWatchScalableTopics,
    CommandWatchTopicList,
    KeySharedMeta,
    KeySharedMode,
    MessageMetadata,
    ScalableConsumerType,
    Schema,
    Subscription,
)
from pulsar_py.wire.framing import FRAME_PADDING

MAX_MESSAGE_BYTES = 5 << 20
REQUEST_ID = 7


def largest_commands(
    topic: str, ledger_id: int, entries_count: int, *, max_message_bytes: int = MAX_MESSAGE_BYTES
) -> list[LargestCommand]:
    """All of them, for a topic with that many entries in one ledger."""
    room = max_message_bytes + FRAME_PADDING - SIZES.size - SPARE_BYTES
    fresh = f"{topic}-fresh"
    return [
        *_acknowledgements(ledger_id, entries_count, room),
        *_subscriptions(fresh, room),
        *_producers_and_schemas(topic, fresh, room),
        *_lookups(topic, room),
        *_transactions(topic, room),
        *_sends(room),
        *_others(topic, room),
    ]


def _acknowledgements(ledger_id: int, entries_count: int, room: int) -> list[LargestCommand]:
    """ACK, REDELIVER and SEEK: many ids, and ids with many words of acknowledged indexes."""
    command = BaseCommand
    ack = CommandAck(consumer_id=1, ack_type=CommandAck.Individual, request_id=REQUEST_ID)
    seek = CommandSeek(consumer_id=1, request_id=REQUEST_ID)
    cumulative = CommandAck(consumer_id=1, ack_type=CommandAck.Cumulative, request_id=REQUEST_ID)
    cumulative.message_id.add(ledgerId=ledger_id, entryId=0)
    redeliver = CommandRedeliverUnacknowledgedMessages(consumer_id=1)
    many_words = (room - 40) * b"\x01"
    wide_words = ((room - 40) // len(MINUS_ONE)) * MINUS_ONE
    one_set = message_id(ledger_id, 3, many_words)
    return [
        LargestCommand(
            "ACK, one id over and over",
            filled(command.ACK, ack, 3, message_id(ledger_id, 0), room),
            command.ACK_RESPONSE,
        ),
        LargestCommand(
            "ACK, every second entry",
            different(
                command.ACK, ack, 3,
                lambda index: message_id(ledger_id, 2 * index % entries_count + 1), room,
            ),
            command.ACK_RESPONSE,
        ),
        LargestCommand(
            "ACK, ids with ack sets",
            different(
                command.ACK, ack, 3,
                lambda index: message_id(ledger_id, index % entries_count, b"\x01" * 40), room,
            ),
            command.ACK_RESPONSE,
        ),
        LargestCommand(
            "ACK, one ack set",
            command_frame(
                command.ACK,
                with_field(ack.SerializePartialToString(), 3, one_set),
            ),
            command.ACK_RESPONSE,
        ),
        LargestCommand(
            "ACK, cumulative with properties",
            different(command.ACK, cumulative, 5, number_pair, room),
            command.ACK_RESPONSE,
            CommandSubscribe.Exclusive,
        ),
        LargestCommand(
            "REDELIVER, every entry over and over",
            different(
                command.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliver, 2,
                lambda index: message_id(ledger_id, index % entries_count), room,
            ),
            None,
        ),
        LargestCommand(
            "REDELIVER, everything",
            command_frame(command.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliver.SerializeToString()),
            None,
        ),
        LargestCommand(
            "SEEK, one ack set",
            command_frame(
                command.SEEK,
                with_field(seek.SerializeToString(), 3, message_id(ledger_id, 3, wide_words)),
            ),
            command.SUCCESS,
        ),
    ]  # fmt: skip


def _schema_with_properties(room: int) -> bytes:
    schema = Schema(name="s", type=Schema.String, schema_data=b"")
    count = room // len(field(5, pair(1 << 20)))
    pairs = b"".join(field(5, pair(index)) for index in range(count))
    return schema.SerializeToString() + pairs


def _schema_that_is_served(room: int) -> bytes:
    schema = Schema(name="s", type=Schema.String, schema_data=b"")
    count = (MAX_UNITS - 10) // 3
    size = room // count - ITEM_BYTES
    pairs = b"".join(field(5, long_pair(index, size)) for index in range(count))
    return schema.SerializeToString() + pairs


def _subscriptions(fresh: str, room: int) -> list[LargestCommand]:
    """SUBSCRIBE to a topic that is not there yet."""
    command = BaseCommand
    subscribe = CommandSubscribe(
        topic=fresh, subscription="s", subType=CommandSubscribe.Key_Shared, consumer_id=2,
        request_id=REQUEST_ID, consumer_name="\N{LATIN SMALL LETTER E WITH ACUTE}",
    )  # fmt: skip
    subscribe_bytes = subscribe.SerializeToString()
    ranges = KeySharedMeta(keySharedMode=KeySharedMode.STICKY).SerializePartialToString()
    count = room // len(field(3, hash_range(1 << 20)))
    all_ranges = ranges + b"".join(field(3, hash_range(index)) for index in range(count))
    count = (MAX_UNITS - len(subscribe.ListFields()) - 2) // 3
    served_ranges = ranges + b"".join(field(3, hash_range(index)) for index in range(count))
    all_properties = _schema_with_properties(room)
    return [
        LargestCommand(
            "SUBSCRIBE, metadata without texts",
            filled(command.SUBSCRIBE, subscribe, 10, b"\x0a\x00\x12\x00", room),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, subscription properties",
            different(command.SUBSCRIBE, subscribe, 18, pair, room),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, hash ranges",
            command_frame(command.SUBSCRIBE, with_field(subscribe_bytes, 17, all_ranges)),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, schema properties",
            command_frame(command.SUBSCRIBE, with_field(subscribe_bytes, 12, all_properties)),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, metadata that is served",
            served(command.SUBSCRIBE, subscribe, 10, room, make=long_pair, parts=2),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, properties that are served",
            served(command.SUBSCRIBE, subscribe, 18, room, make=long_pair, parts=2),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, hash ranges that are served",
            command_frame(command.SUBSCRIBE, with_field(subscribe_bytes, 17, served_ranges)),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, a long name of a subscription",
            command_frame(command.SUBSCRIBE, subscribe_bytes + field(2, b"x" * (room - 200))),
            command.SUCCESS,
        ),
    ]  # fmt: skip


def _producers_and_schemas(topic: str, fresh: str, room: int) -> list[LargestCommand]:
    """PRODUCER of a topic that is not there yet, and GET_OR_CREATE_SCHEMA."""
    command = BaseCommand
    producer = CommandProducer(topic=fresh, producer_id=2, request_id=REQUEST_ID)
    producer_bytes = producer.SerializeToString()
    all_properties = _schema_with_properties(room)
    long_union = Schema(
        name="s", type=Schema.Avro, schema_data=b'["null"' + b',"int"' * (room // 6 - 20) + b"]"
    ).SerializeToString()
    return [
        LargestCommand(
            "PRODUCER, metadata",
            different(command.PRODUCER, producer, 6, pair, room),
            command.PRODUCER_SUCCESS,
        ),
        LargestCommand(
            "PRODUCER, metadata that is served",
            served(command.PRODUCER, producer, 6, room, make=long_pair, parts=2),
            command.PRODUCER_SUCCESS,
        ),
        LargestCommand(
            "PRODUCER, a long name",
            command_frame(command.PRODUCER, producer_bytes + field(4, b"x" * (room - 200))),
            command.PRODUCER_SUCCESS,
        ),
        LargestCommand(
            "PRODUCER, schema properties",
            command_frame(command.PRODUCER, with_field(producer_bytes, 7, all_properties)),
            command.PRODUCER_SUCCESS,
        ),
        LargestCommand(
            "PRODUCER, an Avro schema of many types",
            command_frame(command.PRODUCER, with_field(producer_bytes, 7, long_union)),
            command.PRODUCER_SUCCESS,
        ),
        LargestCommand(
            "GET_OR_CREATE_SCHEMA, properties",
            command_frame(
                command.GET_OR_CREATE_SCHEMA,
                with_field(
                    CommandGetOrCreateSchema(request_id=REQUEST_ID, topic=topic)
                    .SerializePartialToString(),
                    3,
                    all_properties,
                ),
            ),
            command.GET_OR_CREATE_SCHEMA_RESPONSE,
        ),
        LargestCommand(
            "GET_OR_CREATE_SCHEMA, properties that are served",
            command_frame(
                command.GET_OR_CREATE_SCHEMA,
                with_field(
                    CommandGetOrCreateSchema(request_id=REQUEST_ID, topic=topic)
                    .SerializePartialToString(),
                    3,
                    _schema_that_is_served(room),
                ),
            ),
            command.GET_OR_CREATE_SCHEMA_RESPONSE,
        ),
        LargestCommand(
            "GET_SCHEMA, a name of slashes",
            command_frame(
                command.GET_SCHEMA,
                CommandGetSchema(topic="/" * (room - 100), request_id=REQUEST_ID)
                .SerializeToString(),
            ),
            command.GET_SCHEMA_RESPONSE,
        ),
        LargestCommand(
            "GET_SCHEMA, a long version",
            command_frame(
                command.GET_SCHEMA,
                CommandGetSchema(
                    topic=topic, request_id=REQUEST_ID, schema_version=bytes(room - 200)
                ).SerializeToString(),
            ),
            command.GET_SCHEMA_RESPONSE,
        ),
    ]  # fmt: skip


def _lookups(topic: str, room: int) -> list[LargestCommand]:
    """CONNECT, and what is asked about names of topics: long names, long patterns."""
    command = BaseCommand
    lookup = CommandLookupTopic(topic=topic, request_id=REQUEST_ID)
    long_name = "x" * (room - 100)
    return [
        LargestCommand(
            "LOOKUP, properties",
            different(
                command.LOOKUP, lookup, 8, pair, room
            ),
            command.LOOKUP_RESPONSE,
        ),
        LargestCommand(
            "LOOKUP, a long name",
            command_frame(
                command.LOOKUP,
                CommandLookupTopic(topic=long_name, request_id=REQUEST_ID).SerializeToString(),
            ),
            command.LOOKUP_RESPONSE,
        ),
        LargestCommand(
            "PARTITIONED_METADATA, a name of slashes",
            command_frame(
                command.PARTITIONED_METADATA,
                CommandPartitionedTopicMetadata(
                    topic="/" * (room - 100), request_id=REQUEST_ID
                ).SerializeToString(),
            ),
            command.PARTITIONED_METADATA_RESPONSE,
        ),
        LargestCommand(
            "GET_TOPICS_OF_NAMESPACE, properties",
            different(
                command.GET_TOPICS_OF_NAMESPACE,
                CommandGetTopicsOfNamespace(
                    request_id=REQUEST_ID, namespace="public/default", topics_pattern="public/.*"
                ),
                6, pair, room,
            ),
            command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        ),
        LargestCommand(
            "GET_TOPICS_OF_NAMESPACE, a long pattern",
            command_frame(
                command.GET_TOPICS_OF_NAMESPACE,
                CommandGetTopicsOfNamespace(
                    request_id=REQUEST_ID, namespace="public/default", topics_pattern=long_name
                ).SerializeToString(),
            ),
            command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        ),
        LargestCommand(
            "WATCH_TOPIC_LIST, a long pattern",
            command_frame(
                command.WATCH_TOPIC_LIST,
                CommandWatchTopicList(
                    request_id=REQUEST_ID, watcher_id=1, namespace="public/default",
                    topics_pattern=long_name,
                ).SerializeToString(),
            ),
            command.WATCH_TOPIC_LIST_SUCCESS,
        ),
        LargestCommand(
            "CONNECT once more, a long version",
            command_frame(
                command.CONNECT, CommandConnect(client_version=long_name).SerializeToString()
            ),
            command.CONNECTED,
        ),
    ]  # fmt: skip


def _transactions(topic: str, room: int) -> list[LargestCommand]:
    """Commands of transactions with many partitions or subscriptions, or long names."""
    command = BaseCommand
    partitions = CommandAddPartitionToTxn(request_id=REQUEST_ID, txnid_least_bits=1)
    subscriptions = CommandAddSubscriptionToTxn(request_id=REQUEST_ID, txnid_least_bits=1)
    return [
        LargestCommand(
            "ADD_PARTITION_TO_TXN, partitions",
            filled(
                command.ADD_PARTITION_TO_TXN,
                partitions, 4, b"\xc3\xa9", room,
            ),
            command.ADD_PARTITION_TO_TXN_RESPONSE,
        ),
        LargestCommand(
            "ADD_SUBSCRIPTION_TO_TXN, subscriptions",
            filled(
                command.ADD_SUBSCRIPTION_TO_TXN,
                subscriptions, 4, field(1, b"") + field(2, b""), room,
            ),
            command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        ),
        LargestCommand(
            "ADD_PARTITION_TO_TXN, partitions that are served",
            served(
                command.ADD_PARTITION_TO_TXN, partitions, 4, room,
                make=lambda index, size: b"%08x" % index + b"x" * size, parts=0,
            ),
            command.ADD_PARTITION_TO_TXN_RESPONSE,
        ),
        LargestCommand(
            "END_TXN_ON_PARTITION, a name of slashes",
            command_frame(
                command.END_TXN_ON_PARTITION,
                CommandEndTxnOnPartition(request_id=REQUEST_ID, topic="/" * (room - 100))
                .SerializeToString(),
            ),
            command.END_TXN_ON_PARTITION_RESPONSE,
        ),
        LargestCommand(
            "END_TXN_ON_SUBSCRIPTION, a long name",
            command_frame(
                command.END_TXN_ON_SUBSCRIPTION,
                CommandEndTxnOnSubscription(
                    request_id=REQUEST_ID,
                    subscription=Subscription(topic=topic, subscription="x" * (room - 200)),
                ).SerializeToString(),
            ),
            command.END_TXN_ON_SUBSCRIPTION_RESPONSE,
        ),
    ]  # fmt: skip


def _sends(room: int) -> list[LargestCommand]:
    """SEND to a topic that has a consumer with permits, so that its message is dispatched, too."""
    send = CommandSend(producer_id=1, sequence_id=0).SerializeToString()
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1).SerializeToString()
    rows = {
        "properties": field(4, pair(1 << 20)),
        "properties without texts": field(4, b""),
        "clusters without a name": field(7, b""),
        "indexes of a batch": b"\xf8\x01\x01",
    }
    receipt = BaseCommand.SEND_RECEIPT
    size = room - len(metadata) - 200
    return [
        LargestCommand(
            f"SEND, {name}", send_frame(send, metadata + size // len(each) * each), receipt
        )
        for name, each in rows.items()
    ] + [
        LargestCommand(
            "SEND, a message id with an ack set",
            send_frame(send + field(9, message_id(1, 1, b"\x01" * (room - 200))), metadata),
            BaseCommand.SEND_ERROR,
        )
    ]


def _others(topic: str, room: int) -> list[LargestCommand]:
    """Commands that are refused, or in which one text may be long and counts for nothing."""
    command = BaseCommand
    text = "x" * (room - 200)
    slashes = "/" * (room - 200)
    return [
        LargestCommand(name, command_frame(kind, message.SerializeToString()), answer)
        for name, kind, message, answer in (
            (
                "AUTH_RESPONSE, a long version", command.AUTH_RESPONSE,
                CommandAuthResponse(client_version=text), None,
            ),
            (
                "CLOSE_PRODUCER, a long address", command.CLOSE_PRODUCER,
                CommandCloseProducer(
                    producer_id=1, request_id=REQUEST_ID, assignedBrokerServiceUrl=text
                ),
                command.SUCCESS,
            ),
            (
                "CLOSE_CONSUMER, a long address", command.CLOSE_CONSUMER,
                CommandCloseConsumer(
                    consumer_id=1, request_id=REQUEST_ID, assignedBrokerServiceUrl=text
                ),
                command.SUCCESS,
            ),
            (
                "SCALABLE_TOPIC_LOOKUP, a name of slashes", command.SCALABLE_TOPIC_LOOKUP,
                CommandScalableTopicLookup(session_id=1, topic=slashes), None,
            ),
            (
                "SCALABLE_TOPIC_SUBSCRIBE, a long name", command.SCALABLE_TOPIC_SUBSCRIBE,
                CommandScalableTopicSubscribe(
                    request_id=REQUEST_ID, topic=topic, subscription=text, consumer_name="c",
                    consumer_id=9, consumer_type=ScalableConsumerType.STREAM,
                ),
                command.ERROR,
            ),
        )
    ] + [
        LargestCommand(
            "WATCH_SCALABLE_TOPICS, filters",
            filled(
                command.WATCH_SCALABLE_TOPICS,
                CommandWatchScalableTopics(watch_id=1, namespace="public/default"), 3,
                field(1, b"") + field(2, b""), room,
            ),
            None,
        )
    ]  # fmt: skip
