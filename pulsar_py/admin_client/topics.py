"""Calls about topics: life cycle, statistics, permissions, lookup, schemas (declarations).

A topic is named in full or in short. Subscriptions are in `subscriptions`, policies in `policies`.

Source: Topics, Lookup and Schemas in Pulsar's admin API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pulsar_py.admin_client.call import (
    Call,
    Json,
    Reply,
    as_json,
    as_names,
    as_record,
    as_text,
    call,
    delete,
    full_topic,
    get,
    namespace_path,
    post,
    put,
    seg,
    topic_path,
)
from pulsar_py.admin_client.records import (
    Compatibility,
    LongRunningStatus,
    LookupData,
    MessageIdData,
    PartitionedTopicMetadata,
    SchemaData,
    SchemaPayload,
)

if TYPE_CHECKING:
    from pulsar_py.admin_client.stats import InternalStats, TopicStats


def topics(
    namespace: str,
    *,
    domain: str = "persistent",
    bundle: str | None = None,
    system_topics: bool = False,
) -> Call[list[str]]:
    """The topics of a namespace; a partitioned one is in the list as its partitions."""
    path = f"{domain}/{namespace_path(namespace)}"
    return get(path, as_names, bundle=bundle, includeSystemTopic=system_topics)


def partitioned_topics(
    namespace: str, *, domain: str = "persistent", system_topics: bool = False
) -> Call[list[str]]:
    """The partitioned topics of a namespace."""
    path = f"{domain}/{namespace_path(namespace)}/partitioned"
    return get(path, as_names, includeSystemTopic=system_topics)


def create_topic(topic: str, properties: Mapping[str, str] | None = None) -> Call[None]:
    """Create a topic without partitions."""
    return put(topic_path(topic), dict(properties or {}))


def create_partitioned_topic(
    topic: str, partitions_count: int, properties: Mapping[str, str] | None = None
) -> Call[None]:
    """Create a topic with partitions."""
    path = f"{topic_path(topic)}/partitions"
    if not properties:
        return put(path, partitions_count, createLocalTopicOnly=False)
    metadata = PartitionedTopicMetadata(partitions=partitions_count, properties=properties)
    return put(path, metadata, createLocalTopicOnly=False)


def create_missed_partitions(topic: str) -> Call[None]:
    """Create the partitions that a topic should have and has not."""
    return post(f"{topic_path(topic)}/createMissedPartitions")


def partitions(topic: str) -> Call[PartitionedTopicMetadata]:
    """How many partitions a topic has."""
    return get(f"{topic_path(topic)}/partitions", as_record(PartitionedTopicMetadata))


def grow_partitions(
    topic: str, partitions_count: int, *, local_only: bool = False, force: bool = False
) -> Call[None]:
    """Add partitions to a topic, up to that many."""
    path = f"{topic_path(topic)}/partitions"
    return post(path, partitions_count, updateLocalTopicOnly=local_only, force=force)


def delete_topic(topic: str, *, force: bool = False, schema: bool = True) -> Call[None]:
    """Delete a topic or a partition; with `force`, although it is in use."""
    return delete(
        topic_path(topic), destroys=f"topic {full_topic(topic)}", force=force, deleteSchema=schema
    )


def delete_partitioned_topic(topic: str, *, force: bool = False, schema: bool = True) -> Call[None]:
    """Delete a topic with all its partitions."""
    return delete(
        f"{topic_path(topic)}/partitions",
        destroys=f"topic {full_topic(topic)} with all its partitions",
        force=force,
        deleteSchema=schema,
    )


def unload_topic(topic: str) -> Call[None]:
    """Close a topic, so that it is served anew."""
    return put(f"{topic_path(topic)}/unload")


def truncate(topic: str) -> Call[None]:
    """Delete all messages."""
    return delete(f"{topic_path(topic)}/truncate", destroys=f"all messages of {full_topic(topic)}")


def trim(topic: str) -> Call[None]:
    """Delete now what retention no longer keeps."""
    return post(f"{topic_path(topic)}/trim")


def terminate(topic: str) -> Call[MessageIdData]:
    """Terminate a topic, so that nobody publishes to it; returns its last message."""
    return call("POST", f"{topic_path(topic)}/terminate", as_record(MessageIdData))


def terminate_partitions(topic: str) -> Call[Json]:
    """Terminate all partitions; returns their last messages, by index."""
    return call("POST", f"{topic_path(topic)}/terminate/partitions", as_json)


def compact(topic: str) -> Call[None]:
    """Begin a compaction."""
    return put(f"{topic_path(topic)}/compaction")


def compaction_status(topic: str) -> Call[LongRunningStatus]:
    """How the last compaction went."""
    return get(f"{topic_path(topic)}/compaction", as_record(LongRunningStatus))


def offload(topic: str, until: MessageIdData) -> Call[None]:
    """Begin to move what lies before a message to tiered storage."""
    return put(f"{topic_path(topic)}/offload", until)


def offload_status(topic: str) -> Call[LongRunningStatus]:
    """How the last offload went."""
    return get(f"{topic_path(topic)}/offload", as_record(LongRunningStatus))


def _stats_query(*, precise: bool, sizes: bool, earliest: bool) -> dict[str, bool]:
    return {
        "getPreciseBacklog": precise,
        "subscriptionBacklogSize": sizes,
        "getEarliestTimeInBacklog": earliest,
        "excludePublishers": False,
        "excludeConsumers": False,
    }


def stats(
    topic: str, *, precise: bool = False, sizes: bool = True, earliest: bool = False
) -> Call[TopicStats]:
    """Rates and backlogs of a topic, or of one partition.

    Args:
        topic: Its name.
        precise: Whether backlogs are counted in messages rather than estimated.
        sizes: Whether subscriptions have the bytes of their backlogs.
        earliest: Whether subscriptions have the time of their oldest message.
    """
    query = _stats_query(precise=precise, sizes=sizes, earliest=earliest)
    return get(f"{topic_path(topic)}/stats", _as_stats, **query)


def partitioned_stats(
    topic: str,
    *,
    per_partition: bool = False,
    precise: bool = False,
    sizes: bool = True,
    earliest: bool = False,
) -> Call[Json]:
    """The sums over all partitions, and each partition's own with `per_partition`."""
    query = _stats_query(precise=precise, sizes=sizes, earliest=earliest)
    path = f"{topic_path(topic)}/partitioned-stats"
    return get(path, as_json, perPartition=per_partition, **query)


def internal_stats(topic: str, *, metadata: bool = False) -> Call[InternalStats]:
    """Ledgers and cursors of a topic, or of one partition."""
    path = f"{topic_path(topic)}/internalStats"
    return get(path, _as_internal_stats, metadata=metadata)


def partitioned_internal_stats(topic: str) -> Call[Json]:
    """Ledgers and cursors of all partitions."""
    return get(f"{topic_path(topic)}/partitioned-internalStats", as_json)


def internal_info(topic: str) -> Call[Json]:
    """Ledgers and cursors as metadata has them."""
    return get(f"{topic_path(topic)}/internal-info", as_json)


def last_message_id(topic: str) -> Call[MessageIdData]:
    """The id of a topic's last message."""
    return get(f"{topic_path(topic)}/lastMessageId", as_record(MessageIdData))


def message_id_at(topic: str, time_millis: int) -> Call[MessageIdData]:
    """The first message that was published at a time or later."""
    return get(f"{topic_path(topic)}/messageid/{time_millis}", as_record(MessageIdData))


def backlog_bytes(topic: str, after: MessageIdData) -> Call[int]:
    """The bytes of the backlog after a message."""
    path = f"{topic_path(topic)}/backlogSize"
    return call("PUT", path, lambda reply: int(reply.json()), after)


def permissions(topic: str) -> Call[dict[str, list[str]]]:
    """What roles may do, by role; those of the namespace, too."""
    return get(f"{topic_path(topic)}/permissions", as_json)


def grant_permission(topic: str, role: str, actions: Sequence[str]) -> Call[None]:
    """Let a role do something: `produce`, `consume` and so on."""
    return post(f"{topic_path(topic)}/permissions/{seg(role)}", list(actions))


def revoke_permission(topic: str, role: str) -> Call[None]:
    """Take all rights on the topic from a role."""
    return delete(f"{topic_path(topic)}/permissions/{seg(role)}")


def properties(topic: str) -> Call[dict[str, str]]:
    """All properties."""
    return get(f"{topic_path(topic)}/properties", as_json)


def set_properties(topic: str, values: Mapping[str, str]) -> Call[None]:
    """Set these properties; others stay."""
    return put(f"{topic_path(topic)}/properties", dict(values))


def remove_property(topic: str, key: str | None = None) -> Call[None]:
    """Remove one property."""
    return delete(f"{topic_path(topic)}/properties", key=key)


def shadow_topics(topic: str) -> Call[list[str]]:
    """The shadow topics of a topic, which show its messages."""
    return get(f"{topic_path(topic)}/shadowTopics", as_names)


def set_shadow_topics(topic: str, shadows: Sequence[str]) -> Call[None]:
    """Replace the shadow topics of a topic."""
    return put(f"{topic_path(topic)}/shadowTopics", list(shadows))


def remove_shadow_topics(topic: str) -> Call[None]:
    """Remove all shadow topics of a topic."""
    return delete(f"{topic_path(topic)}/shadowTopics")


def lookup(topic: str) -> Call[LookupData]:
    """Which broker serves a topic."""
    return get(f"/lookup/v2/topic/{topic_path(topic)}", as_record(LookupData))


def bundle_of(topic: str) -> Call[str]:
    """The bundle of a topic, as `0x00000000_0x40000000`."""
    return get(f"/lookup/v2/topic/{topic_path(topic)}/bundle", as_text)


def schema(topic: str, version: int | None = None) -> Call[SchemaData]:
    """The newest schema, or that of a version."""
    rest = "" if version is None else f"/{version}"
    return get(f"{_schemas(topic)}/schema{rest}", as_record(SchemaData))


def all_schemas(topic: str) -> Call[list[SchemaData]]:
    """All versions of a topic's schema."""
    return get(
        f"{_schemas(topic)}/schemas",
        lambda reply: [SchemaData.of(each) for each in reply.json()["getSchemaResponses"]],
    )


def schema_metadata(topic: str) -> Call[Json]:
    """Where the registry has the versions."""
    return get(f"{_schemas(topic)}/metadata", as_json)


def upload_schema(topic: str, payload: SchemaPayload) -> Call[Json]:
    """Add a version, unless it is there."""
    return call("POST", f"{_schemas(topic)}/schema", as_json, payload)


def delete_schema(topic: str, *, force: bool = False) -> Call[Json]:
    """Delete the schema; with `force`, from storage too."""
    return call(
        "DELETE",
        f"{_schemas(topic)}/schema",
        as_json,
        destroys=f"the schema of {full_topic(topic)}",
        query={"force": force},
    )


def check_schema(topic: str, payload: SchemaPayload) -> Call[Compatibility]:
    """Whether a schema may be added."""
    return call("POST", f"{_schemas(topic)}/compatibility", as_record(Compatibility), payload)


def _schemas(topic: str) -> str:
    return f"schemas/{topic_path(topic).partition('/')[2]}"


def _as_stats(reply: Reply) -> TopicStats:
    from pulsar_py.admin_client.stats import TopicStats  # noqa: PLC0415 - 7 ms, for `--help`

    return TopicStats.of(reply.json())


def _as_internal_stats(reply: Reply) -> InternalStats:
    from pulsar_py.admin_client.stats import InternalStats  # noqa: PLC0415 - 7 ms, for `--help`

    return InternalStats.of(reply.json())
