"""Plans what tasks read, in a batch and in each micro-batch of a stream (edge).

`plan_batch` asks where topics begin and end, applies the user's bounds, and cuts pieces.
`StreamPlanner` does the same for a stream, one micro-batch at a time, with the offsets of its
checkpoint. If entries were lost, `failOnDataLoss` decides between an error and a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pulsar_py.client import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition
from pulsar_py.common.errors import ConfigurationError, PulsarError, TopicNotFoundError
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.spark.planning.catalog import Follower, TopicCatalog, described
from pulsar_py.spark.planning.named_topics import (
    check_names,
    check_range,
    is_read,
    place_of,
    time_of,
)
from pulsar_py.spark.planning.pieces import DataLoss, Piece, TopicLayout, admit, split, split_evenly
from pulsar_py.spark.planning.pruning import NOTHING_PRUNED, Pruning
from pulsar_py.spark.shared.offsets import Edge, StreamOffset, UserPosition
from pulsar_py.spark.shared.options import ReadOptions

logger = logging.getLogger(__name__)


class DataLossError(PulsarError):
    """Entries that a query should have read were deleted, and `failOnDataLoss` is true."""


@dataclass(frozen=True, slots=True)
class PlannedPiece:
    """A piece, and bounds on its messages: the work of one task."""

    piece: Piece
    # The first message of the piece's first entry that is read; -1: all of them are.
    first_batch_index: int = -1
    # Bounds on publish times, both inclusive; None: no bound.
    min_publish_millis: int | None = None
    max_publish_millis: int | None = None


async def plan_batch(
    client: Client, options: ReadOptions, pruning: Pruning = NOTHING_PRUNED
) -> list[PlannedPiece]:
    """The pieces that the tasks of a batch read.

    Raises:
        ConfigurationError: Options name other topics, or a start past the end.
        DataLossError: The start was deleted, and `failOnDataLoss` is true.
        TopicNotFoundError: A topic does not exist, and `failOnDataLoss` is true, or none exists.
        ServiceError, ClientError: The cluster refused a request, or did not answer in time.
    """
    catalog = TopicCatalog(client, options)
    try:
        found = await catalog.partitions()
        _check_names(options, found)
        partitions = [each for each in found if pruning.keeps_topic(each)]
        layouts = await _layouts_at_start(catalog, options, partitions)
        planned: list[PlannedPiece] = []
        for layout in layouts.values():
            planned += await _plan_topic(catalog, options, layout, pruning, len(layouts))
        return planned
    finally:
        await catalog.close()


def _check_names(options: ReadOptions, topics: Sequence[str]) -> None:
    for text in check_names(options, topics):
        logger.warning("options name other topics", extra={"detail": text})


async def _layouts_at_start(
    catalog: TopicCatalog, options: ReadOptions, topics: Sequence[str]
) -> dict[str, TopicLayout]:
    """The layouts when a query starts; a topic that does not exist is an error or a warning."""
    layouts = await catalog.layouts(topics)
    missing = [topic for topic in topics if topic not in layouts]
    if not missing:
        return layouts
    text = f"{', '.join(missing)}: there is no such topic"
    if not layouts:
        raise TopicNotFoundError(text)
    if options.fail_on_data_loss:
        raise TopicNotFoundError(f"{text}; failOnDataLoss=false reads the others")
    logger.warning("topics do not exist", extra={"detail": text})
    return layouts


async def _plan_topic(
    catalog: TopicCatalog,
    options: ReadOptions,
    layout: TopicLayout,
    pruning: Pruning,
    topics_count: int,
) -> list[PlannedPiece]:
    slack_millis = options.publish_time_slack_millis
    start, first_batch_index = await start_of(
        catalog, options, layout, Edge.EARLIEST, slack_millis=slack_millis
    )
    end = await _end_of(catalog, options, layout)
    times = (
        time_of(options.starting_time_millis, layout.topic),
        time_of(options.ending_time_millis, layout.topic),
    )
    low, high = _narrow(times, (pruning.min_publish_millis, pruning.max_publish_millis))
    if pruning.min_publish_millis is not None:
        since = pruning.min_publish_millis - slack_millis
        start = max(start, await catalog.position_at(layout, since))
    start, end = pruning.clamp(start, end)
    await report_loss(catalog, options, layout, start)
    pieces = split(
        layout,
        layout.normalize(start),
        end,
        max_bytes=options.max_bytes_per_partition,
        min_pieces=-(-options.min_partitions // topics_count),
    )
    return [
        PlannedPiece(piece, first_batch_index if piece.start == start else -1, low, high)
        for piece in pieces
    ]


def _narrow(
    one: tuple[int | None, int | None], other: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    lows = [each for each in (one[0], other[0]) if each is not None]
    highs = [each for each in (one[1], other[1]) if each is not None]
    return max(lows, default=None), min(highs, default=None)


async def start_of(
    catalog: TopicCatalog,
    options: ReadOptions,
    layout: TopicLayout,
    default: Edge,
    *,
    slack_millis: int = 0,
) -> tuple[Position, int]:
    """The position where the user wants to start, and the batch index there (-1: the first).

    A start by time is moved back by `slack_millis`: no message that was published at that time or
    later lies before it, as long as publish times are out of order by no more than that.

    Raises:
        ConfigurationError: No message would ever come from there.
    """
    check_range(options, layout)
    time = time_of(options.starting_time_millis, layout.topic)
    if time is not None:
        return await catalog.position_at(layout, time - slack_millis), -1
    place = place_of(options.starting, layout.topic, default)
    start = await catalog.position_of(layout, place, is_end=False)
    return start, place.batch_index if isinstance(place, UserPosition) else -1


async def _end_of(catalog: TopicCatalog, options: ReadOptions, layout: TopicLayout) -> Position:
    time = time_of(options.ending_time_millis, layout.topic)
    if time is not None:
        after = time + options.publish_time_slack_millis + 1
        return await catalog.position_at(layout, after)
    assert options.ending is not None, "a batch has an end"
    place = place_of(options.ending, layout.topic, Edge.LATEST)
    return min(await catalog.position_of(layout, place, is_end=True), layout.end)


async def report_loss(
    catalog: TopicCatalog,
    options: ReadOptions,
    layout: TopicLayout,
    start: Position,
    until: Position | None = None,
) -> None:
    """Raise or log a loss if the ledger of `start` was deleted.

    The ledger itself can't be asked any more whether it had unread entries. It is a loss if the
    entry at `start` certainly existed: because the user named it, or because the range that was
    planned before ends behind it in that ledger. Otherwise the query may have read the ledger to
    its end before it was deleted. The query's subscription shows whether it had, or that the
    subscription was moved. Without a subscription it is a loss if ledgers are known, and a warning
    without `admin.url`. It is a warning, too, if the ledger had no entries when it was last read:
    a broker that loads a topic drops such ledgers.

    Args:
        catalog: Asked for the entries that are left.
        options: Of the query.
        layout: The topic as it is now.
        start: The next position to read.
        until: The end of the micro-batch; None for a batch, which moves no subscription.

    Raises:
        DataLossError: Entries were lost, and `failOnDataLoss` is true.
    """
    if layout.known_end is None:
        loss = layout.loss_before(start)
    else:
        loss = await _find_loss(catalog, options, layout, start)
    if loss is None:
        return
    named = place_of(options.starting, layout.topic, Edge.EARLIEST)
    is_certain = (isinstance(named, UserPosition) and named.start == start) or (
        until is not None and start < until and start.ledger_id == until.ledger_id
    )
    follower = None
    if options.predefined_subscription is not None and until is not None and not is_certain:
        follower = await catalog.follower(layout.topic, options.predefined_subscription)
    if follower is not None:
        _report_behind(options, loss, follower)
    elif not is_certain and start.entry_id < 0:
        _warn(loss, "a ledger is gone that had no entries when it was last read")
    elif is_certain or layout.known_end is None:
        _report(options, str(loss))
    else:
        _warn(loss, "a ledger is gone; with admin.url that is an error")


def _report_behind(options: ReadOptions, loss: DataLoss, follower: Follower) -> None:
    """Report a deleted ledger that the query's subscription should have kept."""
    if not loss.is_behind(follower.acknowledged):
        name, at = options.predefined_subscription, follower.acknowledged
        _report(
            options,
            f"{loss}; subscription {name!r} was moved to {at}, by a user or by expiry of messages",
        )
    elif follower.has_expired:
        _warn(loss, "a ledger is gone, and messages of the subscription have expired")


def _warn(loss: DataLoss, event: str) -> None:
    logger.warning(
        event,
        extra={
            "detail": f"{loss.topic}: ledger {loss.expected.ledger_id} was read up to"
            f" {loss.expected} and was deleted, reading goes on at {loss.found}; it is not known"
            " whether all of it had been read"
        },
    )


async def _find_loss(
    catalog: TopicCatalog, options: ReadOptions, layout: TopicLayout, start: Position
) -> DataLoss | None:
    """The loss if the ledger of `start` was deleted, found by reading from just before it.

    For topics whose ledgers are not known. Brokers delete whole ledgers, the oldest first, and
    never the last one. A compacted read skips too many entries to find a loss this way.
    """
    if options.is_compacted or not 0 <= start.ledger_id < layout.end.ledger_id:
        return None
    before = Position(start.ledger_id, max(start.entry_id - 1, 0))
    first = await catalog.first_from(layout.topic, before)
    if first is None or first.ledger_id <= start.ledger_id:
        return None
    return DataLoss(layout.topic, start, first)


def _report(options: ReadOptions, text: str, otherwise: str = "reads on without them") -> None:
    if options.fail_on_data_loss:
        raise DataLossError(f"{text}; failOnDataLoss=false {otherwise}")
    logger.warning("entries are gone", extra={"detail": text})


def _begin(layout: TopicLayout, since: Position | None) -> Position:
    """The position of a stream in a topic: the topic's start if it is new, or was created anew."""
    return layout.start if since is None or layout.ends_before(since) else since


class StreamPlanner:
    """Plans the micro-batches of one streaming query. Lives as long as the query."""

    def __init__(self, client: Client, options: ReadOptions) -> None:
        """`client` stays open; no request is sent yet."""
        self._client = client
        self._options = options
        self._catalog = TopicCatalog(client, options)
        # The end of the query with the trigger availableNow; None with other triggers.
        self._target: StreamOffset | None = None
        # The last answer of `initial_offset`; None unless Spark asked this process for one.
        self._initial: StreamOffset | None = None

    async def close(self) -> None:
        """Close the connections to the REST API."""
        await self._catalog.close()

    async def initial_offset(self) -> StreamOffset:
        """The start of a query that has no checkpoint."""
        positions = {}
        topics = await self._catalog.partitions()
        _check_names(self._options, topics)
        layouts = await _layouts_at_start(self._catalog, self._options, topics)
        for topic, layout in layouts.items():
            start, batch_index = await start_of(self._catalog, self._options, layout, Edge.LATEST)
            if batch_index > 0:
                raise ConfigurationError(
                    f"startingOffsets: {topic}: a stream starts at an entry, not at message"
                    f" {batch_index} of its batch; leave the batch index out"
                )
            positions[topic] = layout.normalize(start)
            is_at_end = positions[topic] >= layout.end
            await self._follow(topic, None, is_at_end=is_at_end)
        self._initial = StreamOffset(positions)
        return self._initial

    async def prepare_for_available_now(self) -> None:
        """Fix the end of the query: messages that are published from now on are not read."""
        self._target = await self.ends()

    async def ends(self) -> StreamOffset:
        """The ends of all topics now."""
        layouts = await self._catalog.layouts(await self._catalog.found())
        return StreamOffset({topic: layout.end for topic, layout in layouts.items()})

    async def latest_offset(
        self, start: StreamOffset, *, max_entries: int | None, max_bytes: int | None
    ) -> StreamOffset:
        """The end of the next micro-batch; `start` itself if there are no new messages.

        It lacks topics that were deleted, and has the end of a topic that is shorter than it was;
        `plan` reports both.
        """
        layouts = await self._catalog.layouts(await self._catalog.found())
        starts = {
            topic: _begin(each, start.positions.get(topic)) for topic, each in layouts.items()
        }
        if self._target is not None:
            layouts = {each: self._cut(layouts[each], self._target) for each in layouts}
        ends = admit(layouts, starts, max_entries=max_entries, max_bytes=max_bytes)
        # If there are no new entries, the offset must stay as it is: Spark runs a micro-batch
        # whenever it changes.
        for topic, layout in layouts.items():
            first = layout.normalize(starts[topic])
            if first >= ends[topic]:
                ends[topic] = starts[topic]
        return StreamOffset(ends)

    def _cut(self, layout: TopicLayout, target: StreamOffset) -> TopicLayout:
        end = target.positions.get(layout.topic)
        if end is None:  # created after the query started: it reads nothing of it
            return TopicLayout(layout.topic, layout.ledgers[:0], known_end=EARLIEST)
        return layout.until(end)

    async def plan(self, start: StreamOffset, end: StreamOffset) -> list[PlannedPiece]:
        """The pieces that the tasks of the micro-batch from `start` to `end` read.

        Raises:
            DataLossError: Entries were deleted, and `failOnDataLoss` is true.
            ConfigurationError: The checkpoint has topics that the options don't name; likewise.
        """
        planned: list[PlannedPiece] = []
        for gone in await self._gone(start, end):
            self._report_gone(gone, start.positions[gone])
        for topic, until in end.positions.items():
            since = start.positions.get(topic)
            if since == until:
                continue
            try:
                layout = await self._catalog.layout(topic)
            except TopicNotFoundError:
                self._report_gone(topic, since)
                continue
            if since is None:
                await self._follow(topic, None)
            begin = self._begin_of(layout, start, until)
            await report_loss(self._catalog, self._options, layout, begin, until)
            pieces = split_evenly(
                layout,
                layout.normalize(begin),
                until,
                min_pieces=-(-self._options.min_partitions // len(end.positions)),
            )
            planned += [PlannedPiece(piece) for piece in pieces]
        return planned

    def _begin_of(self, layout: TopicLayout, start: StreamOffset, until: Position) -> Position:
        """The start of a micro-batch in a topic that may be shorter than it was.

        If the topic does not reach the end of the micro-batch, nothing of it is read, and the next
        micro-batch starts at the topic's beginning. After a first micro-batch that failed, Spark
        asks for its start anew, which may be behind its end by then.

        Raises:
            DataLossError: The topic is shorter, and `failOnDataLoss` is true.
        """
        since = start.positions.get(layout.topic)
        begin = layout.start if since is None else since
        has_lost_batch = layout.ends_before(until)
        if not has_lost_batch and (begin <= until or start == self._initial):
            return begin
        _report(
            self._options,
            f"{layout.topic}: {max(begin, until)} was to be read next, and the topic ends at"
            f" {layout.end}: it was deleted and created anew, or has lost its end",
            "reads it from its beginning",
        )
        return until if has_lost_batch else layout.start

    async def _gone(self, start: StreamOffset, end: StreamOffset) -> list[str]:
        """The topics that are in the start of a micro-batch and not in its end.

        After a first micro-batch that failed, Spark asks for its start anew. Topics that were
        created since are in that start alone, and the next micro-batch reads them.
        """
        gone = set(start.positions) - set(end.positions)
        if gone and start == self._initial:
            gone -= set(await self._catalog.layouts(gone))
        return sorted(gone)

    def _report_gone(self, topic: str, position: Position | None) -> None:
        where = "none of it was read" if position is None else f"{position} was to be read next"
        if is_read(self._options, topic):
            _report(self._options, f"{topic}: the topic was deleted, {where}")
            return
        text = (
            f"checkpoint: it has the topic {topic} ({where}), which is not among those of the read,"
            f" {described(self._options.topics)}"
        )
        if self._options.fail_on_data_loss:
            raise ConfigurationError(
                f"{text}: the option was changed, or this is another query's checkpoint; give the"
                " option its old value, or the query a new checkpointLocation;"
                " failOnDataLoss=false goes on without the topic"
            )
        logger.warning("a topic is no longer read", extra={"detail": text})

    async def commit(self, end: StreamOffset) -> None:
        """Move the user's subscription, if one is given, behind the entries before `end`."""
        if self._options.predefined_subscription is None:
            return
        layouts = await self._catalog.layouts(end.positions)
        for topic, layout in layouts.items():
            last = layout.before(end.positions[topic])
            if last is not None:
                await self._follow(topic, last)

    async def _follow(self, topic: str, last: Position | None, *, is_at_end: bool = False) -> None:
        """Move the user's subscription of a topic behind an entry; None only creates it.

        From then on brokers keep unread ledgers.
        """
        name = self._options.predefined_subscription
        if name is None:
            return
        config = ConsumerConfig(
            consumer_type=ConsumerType.Failover,
            initial_position=InitialPosition.Latest if is_at_end else InitialPosition.Earliest,
            receiver_queue_size=0,  # it only acknowledges, and takes no messages
            ack_receipt_enabled=True,
            ack_grouping_time_ms=0,
        )
        consumer = await Consumer.open(self._client.context, topic, name, config)
        try:
            if last is not None:
                await consumer.acknowledge_cumulative(MessageId(*last))
        finally:
            await consumer.close()
