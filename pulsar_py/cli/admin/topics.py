"""The commands of `pulsar-py admin topics` (declarations).

Those about subscriptions and messages are in `topic_subscriptions`, policies in `topic_policies`.

Source: CmdTopics in Pulsar's client tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pulsar_py.admin_client import topics
from pulsar_py.admin_client.call import Call, full_topic
from pulsar_py.admin_client.records import MessageIdData
from pulsar_py.cli.admin import output, topic_policies, topic_subscriptions, values
from pulsar_py.cli.admin.words import (
    NAMESPACE,
    TOPIC,
    Args,
    Group,
    Steps,
    Word,
    WordFailedError,
    group,
)

POLL_SECONDS: Final = 1.0
"""Between two looks at a compaction or an offload."""
_SOURCE: Final = "PULSAR.SHADOW_SOURCE"
_DOMAINS: Final = ("persistent", "non-persistent")
_STATS: Final = (
    "-gpb/--get-precise-backlog:flag -sbs/--get-subscription-backlog-size:flag "
    "-etb/--get-earliest-time-in-backlog:flag"
)


def _list(a: Args) -> Steps:
    domains = (a.topic_domain.replace("_", "-"),) if a.topic_domain else _DOMAINS
    found: list[str] = []
    for domain in domains:
        reply = yield topics.topics(
            a.namespace, domain=domain, bundle=a.bundle, system_topics=a.include_system_topic
        )
        found += reply.json() or ()
    return found


def _list_partitioned(a: Args) -> Steps:
    found: list[str] = []
    for domain in _DOMAINS:
        reply = yield topics.partitioned_topics(
            a.namespace, domain=domain, system_topics=a.include_system_topic
        )
        found += reply.json() or ()
    return list(dict.fromkeys(found))


def _lookup_partitions(a: Args) -> Steps:
    name = full_topic(a.topic)
    count = (yield topics.partitions(a.topic)).json()["partitions"]
    found = {}
    for index in range(count):
        partition = f"{name}-partition-{index}"
        found[partition] = (yield topics.lookup(partition)).json()["brokerUrl"]
    if not a.sort_by_broker:
        return found
    by_broker: dict[str, list[str]] = {}
    for partition, broker in found.items():
        by_broker.setdefault(broker, []).append(partition)
    return by_broker


def _delete(a: Args) -> Steps:
    """Delete one topic, those that a pattern matches, or those of a file."""
    if a.from_file:
        names = Path(a.topic).read_text().split()
    elif a.regex:
        space, _, pattern = full_topic(a.topic).partition("://")[2].rpartition("/")
        known = yield topics.topics(space)
        matching = re.compile(pattern)
        names = [each for each in known.json() if matching.fullmatch(each.rpartition("/")[2])]
    else:
        names = [a.topic]
    for name in names:
        yield topics.delete_topic(name, force=a.force, schema=True)


def _partitioned_stats(a: Args) -> Call[Any]:
    return topics.partitioned_stats(
        a.topic,
        per_partition=a.per_partition,
        precise=a.get_precise_backlog,
        sizes=not a.get_subscription_backlog_size,
        earliest=a.get_earliest_time_in_backlog,
    )


def _stats(a: Args) -> Call[Any]:
    return topics.stats(
        a.topic,
        precise=a.get_precise_backlog,
        sizes=not a.get_subscription_backlog_size,
        earliest=a.get_earliest_time_in_backlog,
    )


def _terminate(a: Args) -> Steps:
    reply = yield topics.terminate(a.topic)
    return reply.json()


def _show_terminated(value: Any) -> str:  # Any: JSON
    return f"Topic successfully terminated at {_message_id(value)}\n"


def _terminate_partitions(a: Args) -> Steps:
    name = full_topic(a.topic)
    found = (yield topics.terminate_partitions(a.topic)).json() or {}
    return {f"{name}-partition-{index}": each for index, each in found.items()}


def _show_terminations(value: Any) -> str:  # Any: JSON
    return "".join(
        f"Topic {name} successfully terminated at {_message_id(each)}\n"
        for name, each in value.items()
    )


def _message_id(value: Any) -> str:  # Any: JSON
    return f"{value['ledgerId']}:{value['entryId']}:{value.get('partitionIndex', -1)}"


def _status(look: Callable[[str], Call[Any]], what: str) -> Callable[[Args], Steps]:
    """Show the status of a long operation; `--wait-complete` waits for its end."""

    def run(a: Args) -> Steps:
        while True:
            found = (yield look(a.topic)).json()
            if found["status"] != "RUNNING" or not a.wait_complete:
                return {"what": what, "topic": a.topic, **found}
            yield POLL_SECONDS

    return run


def _show_status(value: Any) -> str:  # Any: JSON
    what = value["what"]
    said = {
        "NOT_RUN": f"{what} has not been run for {value['topic']} since broker startup",
        "RUNNING": f"{what} is currently running",
        "SUCCESS": f"{what} was a success",
        "ERROR": f"Error in {what.lower()}",
    }[value["status"]]
    if value["status"] == "ERROR":
        raise WordFailedError(f"{said}: {value.get('lastError', '')}")
    return f"{said}\n"


def _offload(a: Args) -> Steps:
    """Move what lies before the newest ledgers that hold the size that is to stay."""
    reply = yield topics.internal_stats(a.topic)
    ledgers = reply.json().get("ledgers") or []
    if not ledgers:
        raise WordFailedError("Topic doesn't have any data")
    ledgers[-1]["size"] = reply.json().get("currentLedgerSize", 0)
    kept = 0
    first_kept = None
    for ledger in reversed(ledgers):
        kept += ledger["size"]
        first_kept = ledger["ledgerId"]
        if kept > a.size_threshold:
            break
    else:
        return "Nothing to offload"
    until = MessageIdData(ledger_id=first_kept, entry_id=0)
    yield topics.offload(a.topic, until)
    return f"Offload triggered for {a.topic} for messages before {until.ledger_id}:0:-1"


def _create_shadow(a: Args) -> Steps:
    """Create a shadow topic with the partitions and properties of its source."""
    source = full_topic(a.source)
    count = (yield topics.partitions(source)).json()["partitions"]
    properties = {**a.properties, _SOURCE: source}
    if count:
        yield topics.create_partitioned_topic(a.topic, count, properties)
    else:
        yield topics.create_topic(a.topic, properties)


def _shadow_source(a: Args) -> Steps:
    reply = yield topics.properties(a.topic)
    return (reply.json() or {}).get(_SOURCE)


def _backlog_size(a: Args) -> Call[int]:
    ledger_id, entry_id = a.messageId
    return topics.backlog_bytes(a.topic, MessageIdData(ledger_id=ledger_id, entry_id=entry_id))


# fmt: off
_WORDS: Final = (
    Word("list", "List the topics of a namespace", NAMESPACE,
         "-td/--topic-domain:choice(persistent,non_persistent,non-persistent) -b/--bundle "
         "-ist/--include-system-topic:flag", _list),
    Word("list-partitioned-topics", "List the partitioned topics of a namespace", NAMESPACE,
         "-ist/--include-system-topic:flag", _list_partitioned),
    Word("permissions", "Show what roles may do with a topic", TOPIC, "",
         lambda a: topics.permissions(a.topic), show=output.mapping),
    Word("grant-permission", "Let a role do something with a topic", TOPIC,
         "-r/--role! -a/--actions:list!",
         lambda a: topics.grant_permission(a.topic, a.role, a.actions)),
    Word("revoke-permission", "Take all rights on a topic from a role", TOPIC, "-r/--role!",
         lambda a: topics.revoke_permission(a.topic, a.role)),
    Word("lookup", "Show which broker serves a topic", TOPIC, "",
         lambda a: topics.lookup(a.topic), show=lambda found: f"{found['brokerUrl']}\n"),
    Word("partitioned-lookup", "Show which brokers serve the partitions", TOPIC,
         "-s/--sort-by-broker:flag", _lookup_partitions, show=output.mapping),
    Word("bundle-range", "Show the bundle of a topic", TOPIC, "",
         lambda a: topics.bundle_of(a.topic)),
    Word("delete", "Delete a topic", TOPIC,
         "-f/--force:flag -d/--deleteSchema:flag -r/--regex:flag --from-file:flag", _delete),
    Word("truncate", "Delete all messages of a topic", TOPIC, "",
         lambda a: topics.truncate(a.topic)),
    Word("unload", "Close a topic, so that it is served anew", TOPIC, "",
         lambda a: topics.unload_topic(a.topic)),
    Word("stats", "Show rates and backlogs", TOPIC, _STATS, _stats),
    Word("stats-internal", "Show ledgers and cursors", TOPIC, "-m/--metadata:flag",
         lambda a: topics.internal_stats(a.topic, metadata=a.metadata)),
    Word("info-internal", "Show ledgers and cursors as metadata has them", TOPIC, "",
         lambda a: topics.internal_info(a.topic), show=output.gson),
    Word("partitioned-stats", "Show rates and backlogs of all partitions", TOPIC,
         f"--per-partition:flag {_STATS}", _partitioned_stats),
    Word("partitioned-stats-internal", "Show ledgers and cursors of all partitions", TOPIC, "",
         lambda a: topics.partitioned_internal_stats(a.topic)),
    Word("create-partitioned-topic", "Create a topic with partitions", TOPIC,
         "-p/--partitions:int! --metadata/-m:map",
         lambda a: topics.create_partitioned_topic(a.topic, a.partitions, a.metadata)),
    Word("create-missed-partitions", "Create partitions that are missing", TOPIC, "",
         lambda a: topics.create_missed_partitions(a.topic)),
    Word("create", "Create a topic without partitions", TOPIC, "--metadata/-m:map",
         lambda a: topics.create_topic(a.topic, a.metadata)),
    Word("update-partitioned-topic", "Have more partitions", TOPIC,
         "-p/--partitions:int! -ulo/--update-local-only:flag -f/--force:flag",
         lambda a: topics.grow_partitions(
             a.topic, a.partitions, local_only=a.update_local_only, force=a.force)),
    Word("get-partitioned-topic-metadata", "Show how many partitions a topic has", TOPIC, "",
         lambda a: topics.partitions(a.topic)),
    Word("get-properties", "Show all properties", TOPIC, "", lambda a: topics.properties(a.topic),
         show=output.mapping),
    Word("update-properties", "Set properties; others stay", TOPIC, "--property/-p:map",
         lambda a: topics.set_properties(a.topic, a.property)),
    Word("remove-properties", "Remove a property", TOPIC, "--key/-k",
         lambda a: topics.remove_property(a.topic, a.key)),
    Word("delete-partitioned-topic", "Delete a topic with all its partitions", TOPIC,
         "-f/--force:flag -d/--deleteSchema:flag",
         lambda a: topics.delete_partitioned_topic(a.topic, force=a.force)),
    Word("terminate", "Let nobody publish any more", TOPIC, "", _terminate, show=_show_terminated),
    Word("partitioned-terminate", "Let nobody publish to a partition any more", TOPIC, "",
         _terminate_partitions, show=_show_terminations),
    Word("compact", "Begin a compaction", TOPIC, "", lambda a: topics.compact(a.topic),
         says="Topic compaction requested for {}"),
    Word("compaction-status", "Show how the last compaction went", TOPIC,
         "-w/--wait-complete:flag", _status(topics.compaction_status, "Compaction"),
         show=_show_status),
    Word("offload", "Begin to move old ledgers", TOPIC, "-s/--size-threshold:size!", _offload),
    Word("offload-status", "Show how the last offload went", TOPIC, "-w/--wait-complete:flag",
         _status(topics.offload_status, "Offload"), show=_show_status),
    Word("last-message-id", "Show the last message", TOPIC, "",
         lambda a: topics.last_message_id(a.topic)),
    Word("get-message-id", "Show the first message from a time on", TOPIC, "-d/--datetime!",
         lambda a: topics.message_id_at(a.topic, values.epoch_millis(a.datetime))),
    Word("get-backlog-size", "Show how many bytes lie after a message", TOPIC,
         "--messageId/-m:position=-1:-1", _backlog_size),
    Word("get-shadow-topics", "List the topics that show this one's messages", TOPIC, "",
         lambda a: topics.shadow_topics(a.topic)),
    Word("set-shadow-topics", "Replace the topics that show this one's messages", TOPIC,
         "--topics/-t:list!", lambda a: topics.set_shadow_topics(a.topic, a.topics)),
    Word("remove-shadow-topics", "Have no shadow topics", TOPIC, "",
         lambda a: topics.remove_shadow_topics(a.topic)),
    Word("create-shadow-topic", "Create a topic that shows another's messages", TOPIC,
         "--source/-s! --properties/-p:pairs", _create_shadow),
    Word("get-shadow-source", "Show whose messages a topic shows", TOPIC, "", _shadow_source,
         show=output.text),
    Word("trim-topic", "Delete now what retention no longer keeps", TOPIC, "",
         lambda a: topics.trim(a.topic)),
)
# fmt: on

TOPICS: Final[Group] = group(
    *_WORDS, *topic_subscriptions.words(), *topic_policies.words_of_topics()
)
