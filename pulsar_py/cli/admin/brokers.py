"""Commands about brokers, their statistics, and transactions (declarations).

Source: CmdBrokers, CmdBrokerStats and CmdTransactions in Pulsar's client tools.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pulsar_py.admin_client import brokers
from pulsar_py.admin_client.call import Call
from pulsar_py.cli.admin import output
from pulsar_py.cli.admin.words import CLUSTER, NOTHING, Args, Group, Word, group

_INDENT: Final = "-i/--indent:flag"
_TXN: Final = "-m/--most-sig-bits:long! -l/--least-sig-bits:long!"


def _compact(value: Any) -> str:  # Any: JSON
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _indented(value: Any) -> str:  # Any: JSON
    return json.dumps(value, ensure_ascii=False, indent=4)


def _metrics(value: Any) -> str:  # Any: JSON
    """The dimensions one after the other, as pulsar-admin prints them."""
    return "".join(_compact(each) for each in value)


def _indented_metrics(value: Any) -> str:  # Any: JSON
    return "".join(f"{_indented(each)}\n\n" for each in value)


def _allocator(value: Any) -> str:  # Any: JSON
    return output.pretty(value)


def _coordinators(value: Any) -> str:  # Any: JSON
    return output.mapping({each["id"]: each["brokerServiceUrl"] for each in value})


def _coordinator(value: Any) -> str:  # Any: JSON
    """One coordinator as JSON, all of them as a map."""
    if all(isinstance(each, dict) for each in value.values()):
        return _show_coordinators(value)
    return output.json_lines(value)


def _scale(a: Args) -> Call[None]:
    if a.replicas <= 0:
        raise ValueError("Number of transaction coordinators must be more than 0")
    return brokers.scale_coordinators(a.replicas)


_show_coordinators: Final = output.mapping_of(
    "TransactionCoordinatorStats",
    {
        name: name
        for name in (
            "state", "leastSigBits", "lowWaterMark", "ongoingTxnSize", "recoverStartTime",
            "recoverEndTime",
        )
    },
)  # fmt: skip
_show_transactions: Final = output.mapping_of(
    "TransactionMetadata",
    {
        name: name
        for name in (
            "txnId", "status", "openTimestamp", "timeoutAt", "producedPartitions",
            "ackedPartitions", "owner",
        )
    },
)  # fmt: skip


# fmt: off
BROKERS: Final[Group] = group(
    Word("list", "List the live brokers of a cluster", CLUSTER, "",
         lambda a: brokers.brokers(a.cluster)),
    Word("leader-broker", "Show which broker decides about bundles", NOTHING, "",
         lambda _: brokers.leader_broker()),
    Word("namespaces", "Show the bundles that a broker serves", CLUSTER, "-u/--url!",
         lambda a: brokers.owned_namespaces(a.cluster, a.url), show=output.mapping_of(
             "NamespaceOwnershipStatus", {"broker_assignment": "broker_assignment",
                                          "is_controlled": "is_controlled",
                                          "is_active": "is_active"})),
    Word("update-dynamic-config", "Change a setting of all brokers", NOTHING,
         "-c/--config! -v/--value!", lambda a: brokers.change_setting(a.config, a.value)),
    Word("delete-dynamic-config", "Go back to what a setting is in the brokers' files", NOTHING,
         "-c/--config!", lambda a: brokers.restore_setting(a.config)),
    Word("list-dynamic-config", "List the settings that can be changed", NOTHING, "",
         lambda _: brokers.dynamic_settings()),
    Word("get-all-dynamic-config", "Show the settings that were changed", NOTHING, "",
         lambda _: brokers.changed_settings(), show=output.mapping),
    Word("get-internal-config", "Show where metadata and ledgers are", NOTHING, "",
         lambda _: brokers.internal_settings()),
    Word("get-runtime-config", "Show all settings as they are now", NOTHING, "",
         lambda _: brokers.runtime_settings(), show=output.mapping),
    Word("healthcheck", "Send a message through the broker", NOTHING,
         "-tv/--topic-version:choice(V1,V2)", lambda a: brokers.health(a.topic_version)),
    Word("backlog-quota-check", "Look now whether backlogs are beyond their quotas", NOTHING, "",
         lambda _: brokers.check_backlog_quotas(), says="ok"),
    Word("version", "Show the broker's version", NOTHING, "", lambda _: brokers.version()),
    Word("shutdown", "End the broker", NOTHING,
         "--max-concurrent-unload-per-sec/-m:int=0 --forced-terminate-topic/-f:flag",
         lambda a: brokers.shutdown(
             max_concurrent_unload_per_second=a.max_concurrent_unload_per_sec,
             forced=a.forced_terminate_topic),
         says="Successfully shutdown broker gracefully"),
)

BROKER_STATS: Final[Group] = group(
    Word("monitoring-metrics", "Show a broker's figures", NOTHING, _INDENT,
         lambda _: brokers.metrics(), show=_metrics,
         show_indented=_indented_metrics),
    Word("mbeans", "Show the figures of a Java process", NOTHING, _INDENT,
         lambda _: brokers.mbeans(), show=_compact, show_indented=_indented),
    Word("topics", "Show the statistics of all topics of a broker", NOTHING, _INDENT,
         lambda _: brokers.topics_of_broker(), show=_compact, show_indented=_indented),
    Word("destinations", "Show the statistics of all topics of a broker", NOTHING, _INDENT,
         lambda _: brokers.topics_of_broker(), show=_compact, show_indented=_indented,
         is_hidden=True),
    Word("allocator-stats", "Show an allocator of a Java process", "allocator", "",
         lambda a: brokers.allocator_stats(a.allocator), show=_allocator),
    Word("load-report", "Show what the broker tells others about its load", NOTHING, "",
         lambda _: brokers.load_report()),
)

TRANSACTIONS: Final[Group] = group(
    Word("coordinator-internal-stats", "Show the ledgers of a coordinator's log", NOTHING,
         "-c/--coordinator-id:int! -m/--metadata:flag",
         lambda a: brokers.coordinator_internal_stats(a.coordinator_id, metadata=a.metadata)),
    Word("pending-ack-internal-stats", "Show the ledgers of acknowledgements in transactions",
         NOTHING, "-t/--topic! -s/--subscription-name! -m/--metadata:flag",
         lambda a: brokers.pending_ack_internal_stats(
             a.topic, a.subscription_name, metadata=a.metadata)),
    Word("buffer-snapshot-internal-stats", "Show the ledgers of a topic's snapshots", NOTHING,
         "-t/--topic! -m/--metadata:flag",
         lambda a: brokers.transaction_buffer_internal_stats(a.topic, metadata=a.metadata)),
    Word("coordinator-stats", "Show one coordinator, or all", NOTHING, "-c/--coordinator-id:int",
         lambda a: brokers.coordinator_stats(a.coordinator_id), show=_coordinator),
    Word("transaction-buffer-stats", "Show a topic's transactions", NOTHING,
         "-t/--topic! -l/--low-water-mark:flag -s/--segment-stats:flag",
         lambda a: brokers.transaction_buffer_stats(
             a.topic, low_water_marks=a.low_water_mark, segment_stats=a.segment_stats)),
    Word("pending-ack-stats", "Show a subscription's acknowledgements in transactions", NOTHING,
         "-t/--topic! -s/--sub-name! -l/--low-water-mark:flag",
         lambda a: brokers.pending_ack_stats(
             a.topic, a.sub_name, low_water_marks=a.low_water_mark)),
    Word("transaction-in-buffer-stats", "Show what a transaction published to a topic", NOTHING,
         f"{_TXN} -t/--topic!",
         lambda a: brokers.transaction_in_buffer(a.topic, a.most_sig_bits, a.least_sig_bits)),
    Word("transaction-in-pending-ack-stats", "Show what a transaction acknowledged", NOTHING,
         f"{_TXN} -t/--topic! -s/--sub-name!",
         lambda a: brokers.transaction_in_pending_ack(
             a.topic, a.sub_name, a.most_sig_bits, a.least_sig_bits)),
    Word("transaction-metadata", "Show the state of a transaction", NOTHING, _TXN,
         lambda a: brokers.transaction_metadata(a.most_sig_bits, a.least_sig_bits)),
    Word("slow-transactions", "Show transactions that are open for longer", NOTHING,
         "-c/--coordinator-id:int -t/--time:millis!",
         lambda a: brokers.slow_transactions(a.time, a.coordinator_id), show=_show_transactions),
    Word("scale-transactionCoordinators", "Have more coordinators", NOTHING,
         "-r/--replicas:int=0", _scale),
    Word("position-stats-in-pending-ack", "Show whether a message is acknowledged", NOTHING,
         "-t/--topic! -s/--subscription-name! -l/--ledger-id:long! -e/--entry-id:long! "
         "-b/--batch-index:int",
         lambda a: brokers.position_in_pending_ack(
             a.topic, a.subscription_name, a.ledger_id, a.entry_id, a.batch_index)),
    Word("coordinators-list", "List the coordinators", NOTHING, "",
         lambda _: brokers.coordinators(), show=_coordinators),
    Word("abort-transaction", "Abort a transaction", NOTHING, _TXN,
         lambda a: brokers.abort_transaction(a.most_sig_bits, a.least_sig_bits)),
)
# fmt: on
