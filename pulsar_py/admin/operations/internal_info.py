"""REST resource that shows the stored records of a topic's ledgers and cursors.

Unlike internal statistics it tells what is stored, not what is in memory, and loads no topic.

Source: PersistentTopicsBase.internalGetManagedLedgerInfoAsync, ManagedLedgerInfo in Pulsar.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from itertools import islice
from typing import Final

from pulsar_py.admin.http_messages import HttpError, Request, Response, json_response
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.topic_access import (
    broker_id_of,
    partitions_in_turns,
    require_namespace,
    require_topic,
    topic_not_found,
)
from pulsar_py.admin.resources.topic_stats_json import Json, iso_time
from pulsar_py.admin.resources.topics import TOPIC
from pulsar_py.admin.router import Route, get
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import NO_LEDGER, decode_cursor_record
from pulsar_py.managed_ledger.log.ledger_format import (
    LedgerRecord,
    decode_ledger_list,
    decode_name,
    ledger_path,
)
from pulsar_py.metadata.store import Versioned
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic

MAX_RANGES: Final = 1_000
"""The most ranges of acknowledged entries that are shown of a cursor."""


class InternalInfo:
    """Shows stored records of managed ledgers."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._store = broker.resources.local

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(TOPIC + "/internal-info", self.info, Action.GET_STATS, answer="dict[str, Any]"),
            get(TOPIC + "/backlog", self.backlog, Action.GET_STATS, answer="OfflineBacklog"),
        )

    async def backlog(self, request: Request) -> Response:
        """Return what is stored of a topic, and how far its cursors are behind; it is loaded.

        All is 0 where there is no such topic, or a partitioned one.
        """
        name = topic_of(request)
        await require_namespace(self._broker, name.namespace_name)
        answer: Json = {
            "topicName": f"{name.namespace_name}/{name.domain}/{name.local_name}",
            "brokerName": broker_id_of(self._broker).rpartition(":")[0],
            "storageSize": 0,
            "totalMessages": 0,
            "messageBacklog": 0,
            "dataLedgerDetails": [],
            "cursorDetails": {},
            "statGeneratedAt": self._broker.clock.wall_time_millis(),
        }
        if name.is_persistent and await self._broker.topics.exists(name):
            topic = await require_topic(self._broker, name)
            assert isinstance(topic, PersistentTopic)
            answer |= await _offline_json(topic)
        return json_response(answer)

    async def info(self, request: Request) -> Response:
        """Return ledgers and cursors as stored; of a partitioned topic those of each partition."""
        name = topic_of(request)
        await require_namespace(self._broker, name.namespace_name)
        if not name.is_persistent:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Get internal info on a non-persistent topic is not allowed",
            )
        partitions_count = await self._broker.topics.partitioned.count(name)
        if not partitions_count:
            found = await self._info(name)
            if found is None:
                raise topic_not_found(name)
            return json_response(found)
        parts = {}
        async for part in partitions_in_turns(name, partitions_count):
            if (found := await self._info(part)) is not None:
                parts[str(part)] = found
        return json_response({"version": 0, "partitions": parts})

    async def _info(self, name: TopicName) -> Json | None:
        path = ledger_path(name.managed_ledger_name)
        stored = await self._store.get(path)
        if stored is None:
            return None
        record = decode_ledger_list(stored.value)
        cursors = {}
        for child in await self._store.children(path):
            cursor = await self._store.get(f"{path}/{child}")
            if cursor is not None:
                cursors[decode_name(child)] = _cursor_json(cursor)
        end = record.terminated_position
        return {
            **_stamps(stored),
            "ledgers": [_ledger_json(each) for each in record.ledgers],
            "terminatedPosition": None if end is None else _position_json(end),
            "cursors": cursors,
            "properties": record.properties or None,
        }


async def _offline_json(topic: PersistentTopic) -> Json:
    """The statistics of the ledgers, and of the cursors that are stored, as JSON."""
    stats = await topic.ledger.internal_stats_in_turns(Turns())
    behind = {
        name: cursor.backlog_count()
        for name, cursor in topic.ledger.cursors.items()
        if name in stats.cursors
    }
    return {
        "storageSize": stats.size_bytes,
        "totalMessages": stats.entries_count,
        "messageBacklog": max(behind.values(), default=0),
        "dataLedgerDetails": [
            {
                "ledgerId": each.ledger_id,
                "entries": each.entries_count,
                "size": each.size_bytes,
                "timestamp": each.closed_millis,
            }
            for each in stats.ledgers
        ],
        "cursorDetails": {
            name: {"cursorBacklog": count, "cursorLedgerId": stats.cursors[name].cursor_ledger_id}
            for name, count in behind.items()
        },
    }


def _stamps(stored: Versioned) -> Json:
    return {
        "version": stored.version,
        "creationDate": iso_time(stored.created_millis),
        "modificationDate": iso_time(stored.modified_millis),
    }


def _ledger_json(ledger: LedgerRecord) -> Json:
    return {
        "ledgerId": ledger.ledger_id,
        "entries": ledger.entries_count if ledger.is_closed else None,
        "size": ledger.size_bytes if ledger.is_closed else None,
        "timestamp": ledger.closed_millis,
        "isOffloaded": False,
    }


def _cursor_json(stored: Versioned) -> Json:
    record = decode_cursor_record(stored.value)
    answer: Json = {**_stamps(stored), "cursorsLedgerId": record.cursor_ledger_id}
    if record.cursor_ledger_id != NO_LEDGER:
        return answer  # the state is in that ledger
    snapshot = record.snapshot
    answer["markDelete"] = _position_json(snapshot.mark_delete_position)
    answer["individualDeletedMessages"] = [
        {
            "from": _position_json(Position(each.ledger_id, each.first - 1)),
            "to": _position_json(Position(each.ledger_id, each.last)),
        }
        for each in islice(snapshot.individual_deleted_messages.ranges(), MAX_RANGES)
    ] or None
    answer["properties"] = dict(snapshot.properties) or None
    return answer


def _position_json(position: Position) -> Json:
    return {"ledgerId": position.ledger_id, "entryId": position.entry_id}
