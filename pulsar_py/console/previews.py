"""Resource that previews the effect of skip, clear, expire and reset on a subscription.

    GET …/{topic}/subscription/{subscription}/preview

    query       action=skip&count=N          acknowledge the next N entries of the backlog
                action=clear                 acknowledge the whole backlog
                action=expire&seconds=N      acknowledge what is older than that
                action=reset&timestamp=N     go to the first entry of that time (milliseconds)
                action=reset&messageId=L:E   go to that entry
    answer      a list, one item for each partition: {"topic", "backlog", "backlogAfter",
                "acknowledges": entries that consumers would not get any more,
                "redelivers": acknowledged entries that they would get again,
                "next": the entry that would come first, "disconnects": consumers that would have
                to connect again}

Nothing changes. Meanwhile the subscription goes on, so that the act itself may find more or less.
Counts are of entries: a batch is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

from pulsar_py.admin.declared import Text
from pulsar_py.admin.http_messages import HttpError, Request, Response, json_response
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import subscription_not_found
from pulsar_py.admin.resources.topic_access import for_each_partition, require_topic
from pulsar_py.admin.router import Route, get
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.console.answers import PreviewLine
from pulsar_py.console.parameters import Amount, EntryParameter
from pulsar_py.console.topic_pages import SUBSCRIPTION, require_parts
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.topic import Topic

__all__ = ["Effect", "Previews", "effect_of"]

_ACTION: Final = Text("action")
_COUNT: Final = Amount("count")
_SECONDS: Final = Amount("seconds")
_TIMESTAMP: Final = Amount("timestamp")
_MESSAGE_ID: Final = EntryParameter("messageId")


class Effect(Struct, frozen=True, kw_only=True):
    """What moving a cursor would do, in entries."""

    backlog: int
    backlog_after: int
    acknowledges: int
    redelivers: int
    next: Position


def effect_of(state: CursorState, target: Position) -> Effect:
    """The effect of making `target` the next entry to deliver; nothing may be cold."""
    ledgers, deleted = state.ledgers, state.individual_deleted_messages
    before = ledgers.previous_position(target)
    mark_delete = state.mark_delete_position
    passed = ledgers.count_between(mark_delete, before)  # entries that would lie behind
    behind = passed - (deleted.count_through(before) if passed else 0)
    after = ledgers.count_between(before, ledgers.last_confirmed_entry)
    backlog = state.backlog_count()
    return Effect(
        backlog=backlog,
        backlog_after=after,
        acknowledges=behind,
        redelivers=max(after - (backlog - behind), 0),
        next=target,
    )


def effect_of_skipping(state: CursorState, through: Position) -> Effect:
    """The effect of acknowledging all up to an entry: what lies beyond keeps its holes."""
    through = max(through, state.mark_delete_position)
    found = effect_of(state, state.ledgers.next_valid_position(through))
    return Effect(
        backlog=found.backlog,
        backlog_after=found.backlog - found.acknowledges,
        acknowledges=found.acknowledges,
        redelivers=0,
        next=found.next,
    )


class Previews:
    """Previews the effects of operators' actions."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                SUBSCRIPTION + "/preview",
                self.preview,
                Action.GET_STATS,
                *(_ACTION, _COUNT, _SECONDS, _TIMESTAMP, _MESSAGE_ID),
                answer=list[PreviewLine],
            ),
        )

    async def preview(self, request: Request) -> Response:
        """Return the effect on each partition."""
        name, wanted = topic_of(request), request.path["subscription"]
        found: list[dict[str, Any]] = []  # Any: JSON

        async def add(part: TopicName) -> None:
            line = await self._line(request, await require_topic(self._broker, part), wanted)
            found.extend([] if line is None else [line])

        await require_parts(self._broker, name)
        await for_each_partition(
            self._broker,
            name,
            add,
            on_answer=lambda _, answer: found.extend(answer.json()),
            tolerated=(HTTPStatus.NOT_FOUND,),
        )
        if not found:
            raise subscription_not_found(name, wanted, is_partitioned=False)
        return json_response(found)

    async def _line(
        self, request: Request, topic: Topic, wanted: str
    ) -> dict[str, Any] | None:  # Any: JSON
        """The effect on one topic; None if it has no such durable subscription."""
        subscription = topic.subscriptions.get(wanted)
        if not isinstance(subscription, PersistentSubscription) or not isinstance(
            topic, PersistentTopic
        ):
            return None
        await subscription.cursor.load_acknowledgements()
        effect = await self._effect(request, topic, subscription)
        is_reset = _ACTION.of(request) == "reset"
        return {
            "topic": str(topic.name),
            "backlog": effect.backlog,
            "backlogAfter": effect.backlog_after,
            "acknowledges": effect.acknowledges,
            "redelivers": effect.redelivers,
            "next": str(effect.next),
            "disconnects": len(subscription.stats().consumers) if is_reset else 0,
        }

    async def _effect(
        self, request: Request, topic: PersistentTopic, subscription: PersistentSubscription
    ) -> Effect:
        state, end = subscription.cursor.state, topic.last_readable_entry()
        match _ACTION.of(request):
            case "clear":
                return effect_of_skipping(state, end)
            case "skip":
                count = _COUNT.required(request)
                through = state.position_after_skipping(count, counts_acknowledged=False)
                return effect_of_skipping(state, min(through, end))
            case "expire":
                now = self._broker.clock.wall_time_millis()
                first_kept = await topic.find_by_publish_time(
                    now - _SECONDS.required(request) * 1000
                )
                before = state.ledgers.previous_position(first_kept)
                return effect_of_skipping(state, min(before, end))
            case "reset":
                target = _MESSAGE_ID.of(request)
                if target is None:
                    target = await topic.find_by_publish_time(_TIMESTAMP.required(request))
                return effect_of(state, _existing(state, target))
            case _:
                raise HttpError(
                    HTTPStatus.BAD_REQUEST, "action: expected skip, clear, expire or reset"
                )


def _existing(state: CursorState, position: Position) -> Position:
    """The entry itself, or the next one that there is; as resetting does."""
    before = Position(position.ledger_id, max(position.entry_id, 0) - 1)
    return state.ledgers.next_valid_position(before)
