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
from pulsar_py.spark.planning.catalog import Follower, TopicCatalog
from pulsar_py.spark.planning.named_topics import check_names, check_range, place_of, time_of
from pulsar_py.spark.planning.pieces import DataLoss, Piece, TopicLayout, admit, split, split_evenly
from pulsar_py.spark.planning.pruning import NOTHING_PRUNED, Pruning
from pulsar_py.spark.shared.offsets import Edge, StreamOffset, UserPosition
from pulsar_py.spark.shared.options import ReadOptions

logger = logging.getLogger(__name__)


class DataLossError(PulsarError):
    """Entries that a query should have read are gone; `failOnDataLoss=false` goes on without."""


@dataclass(frozen=True, slots=True)
class PlannedPiece:
    """What one task reads: a piece, and which of its messages don't belong to the query."""

    piece: Piece
    # The first entry's messages before this batch index are left out.
    first_batch_index: int = -1
    # Both inclusive, milliseconds; None: no bound.
    min_publish_millis: int | None = None
    max_publish_millis: int | None = None


async def plan_batch(
    client: Client, options: ReadOptions, pruning: Pruning = NOTHING_PRUNED
) -> list[PlannedPiece]:
    """What the tasks of a batch read.

    Raises:
        ConfigurationError: Options name other topics, or a start past the end.
        DataLossError: The start was deleted, and that is an error.
        TopicNotFoundError: A topic does not exist, and that is an error.
        ServiceError, ClientError: The cluster can't be asked.
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
    """What a query finds when it starts; a topic that does not exist is an error or a warning."""
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
    """Where the user wants to start, and at which message of that entry (-1: the first).

    Nothing that was published at the user's time or later lies before it, if no entry has a publish
    time that is more than `slack_millis` later than that of one behind it.

    Raises:
        ConfigurationError: Nothing would come from there.
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
    """An error or a warning if what begins at `start` was deleted.

    That the ledger of `start` is gone is all that can be found out of it. It is a loss if the entry
    at `start` is known to have been there: because the user named it, or because the range that was
    planned before ends behind it in that ledger. Otherwise it may have been read to its end before
    it was deleted: a subscription that follows the query says so, or that it was moved; without one
    it is a loss where ledgers are known, and a warning without `admin.url`. It is a warning, too,
    if it had no entries when it was last read: brokers that load a topic leave such ledgers out.

    Args:
        catalog: Asked for what is left.
        options: Of the query.
        layout: The topic as it is now.
        start: The next position to read.
        until: The end of the micro-batch; None for a batch, which no subscription follows.

    Raises:
        DataLossError: It was, and that is an error.
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
    """What it means that a ledger is gone, which a subscription should have kept."""
    if not loss.is_behind(follower.acknowledged):
        name, at = options.predefined_subscription, follower.acknowledged
        _report(options, f"{loss}; somebody, or their expiry, moved subscription {name!r} to {at}")
    elif follower.has_expired:
        _warn(loss, "a ledger is gone, and messages of the subscription have expired")


def _warn(loss: DataLoss, event: str) -> None:
    logger.warning(
        event,
        extra={
            "detail": f"{loss.topic}: ledger {loss.expected.ledger_id} was read up to"
            f" {loss.expected} and is gone, reading goes on at {loss.found}; whether all of it had"
            " been read can't be told"
        },
    )


async def _find_loss(
    catalog: TopicCatalog, options: ReadOptions, layout: TopicLayout, start: Position
) -> DataLoss | None:
    """Whether the ledger of `start` is gone, by what a reader gets that begins just before it.

    The last ledger is there, and brokers delete whole ledgers, the oldest first. A compacted read
    leaves out too much to tell.
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
    """Where a stream goes on; the beginning of a topic that is new, or another one by now."""
    return layout.start if since is None or layout.ends_before(since) else since


class StreamPlanner:
    """Plans the micro-batches of one streaming query. Lives as long as the query."""

    def __init__(self, client: Client, options: ReadOptions) -> None:
        """Nothing is asked yet."""
        self._client = client
        self._options = options
        self._catalog = TopicCatalog(client, options)
        # Where an available-now query ends; None otherwise.
        self._target: StreamOffset | None = None
        # What `initial_offset` said; None unless the query's first batch is not committed.
        self._initial: StreamOffset | None = None

    async def close(self) -> None:
        """Let go of what it needed."""
        await self._catalog.close()

    async def initial_offset(self) -> StreamOffset:
        """Where the query starts that has no checkpoint."""
        positions = {}
        topics = await self._catalog.partitions()
        _check_names(self._options, topics)
        layouts = await _layouts_at_start(self._catalog, self._options, topics)
        for topic, layout in layouts.items():
            start, batch_index = await start_of(self._catalog, self._options, layout, Edge.LATEST)
            if batch_index > 0:
                raise ConfigurationError(
                    f"startingOffsets: {topic}: a stream starts at an entry, not at its message"
                    f" {batch_index}"
                )
            positions[topic] = layout.normalize(start)
            is_at_end = positions[topic] >= layout.end
            await self._follow(topic, None, is_at_end=is_at_end)
        self._initial = StreamOffset(positions)
        return self._initial

    async def prepare_for_available_now(self) -> None:
        """From now on nothing is read that is published later."""
        self._target = await self.ends()

    async def ends(self) -> StreamOffset:
        """Where all topics end now."""
        layouts = await self._catalog.layouts(await self._catalog.found())
        return StreamOffset({topic: layout.end for topic, layout in layouts.items()})

    async def latest_offset(
        self, start: StreamOffset, *, max_entries: int | None, max_bytes: int | None
    ) -> StreamOffset:
        """Where the next micro-batch ends; `start` itself if there is nothing new.

        A topic that is gone is not part of it, and one that ends before its start has that end,
        which makes `plan` report them.
        """
        layouts = await self._catalog.layouts(await self._catalog.found())
        starts = {
            topic: _begin(each, start.positions.get(topic)) for topic, each in layouts.items()
        }
        if self._target is not None:
            layouts = {each: self._cut(layouts[each], self._target) for each in layouts}
        ends = admit(layouts, starts, max_entries=max_entries, max_bytes=max_bytes)
        # A batch without entries must not move the offset: Spark would run it.
        for topic, layout in layouts.items():
            first = layout.normalize(starts[topic])
            if first >= ends[topic]:
                ends[topic] = starts[topic]
        return StreamOffset(ends)

    def _cut(self, layout: TopicLayout, target: StreamOffset) -> TopicLayout:
        end = target.positions.get(layout.topic)
        if end is None:
            return TopicLayout(layout.topic, layout.ledgers[:0], known_end=EARLIEST)
        return layout.until(end)

    async def plan(self, start: StreamOffset, end: StreamOffset) -> list[PlannedPiece]:
        """What the tasks of the micro-batch from `start` to `end` read.

        Raises:
            DataLossError: Some of it was deleted, and that is an error.
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
        """Where a micro-batch begins in a topic that may be shorter than it was.

        If even the batch's end is gone, nothing of it is read: the next one begins anew. Spark asks
        again for the start of a first batch that failed, which may lie behind its end by then.

        Raises:
            DataLossError: It is shorter, and that is an error.
        """
        since = start.positions.get(layout.topic)
        begin = layout.start if since is None else since
        has_lost_batch = layout.ends_before(until)
        if not has_lost_batch and (begin <= until or start == self._initial):
            return begin
        _report(
            self._options,
            f"{layout.topic}: {max(begin, until)} was to be read next, and the topic ends at"
            f" {layout.end}: it was made anew, or has lost its end",
            "reads it from its beginning",
        )
        return until if has_lost_batch else layout.start

    async def _gone(self, start: StreamOffset, end: StreamOffset) -> list[str]:
        """Topics that a micro-batch starts with and does not end with.

        Spark asks anew for the start of a first batch that failed: what came into being since then
        is in the start alone, and read by the next batch.
        """
        gone = set(start.positions) - set(end.positions)
        if gone and start == self._initial:
            gone -= set(await self._catalog.layouts(gone))
        return sorted(gone)

    def _report_gone(self, topic: str, position: Position | None) -> None:
        where = "nothing of it was read" if position is None else f"{position} was to be read next"
        _report(self._options, f"{topic}: the topic is gone, {where}")

    async def commit(self, end: StreamOffset) -> None:
        """Move the user's subscription, if there is one, behind what was read."""
        if self._options.predefined_subscription is None:
            return
        layouts = await self._catalog.layouts(end.positions)
        for topic, layout in layouts.items():
            last = layout.before(end.positions[topic])
            if last is not None:
                await self._follow(topic, last)

    async def _follow(self, topic: str, last: Position | None, *, is_at_end: bool = False) -> None:
        """Move the user's subscription of a topic behind an entry, or only see that there is one.

        From then on brokers keep what is unread.
        """
        name = self._options.predefined_subscription
        if name is None:
            return
        config = ConsumerConfig(
            consumer_type=ConsumerType.Failover,
            initial_position=InitialPosition.Latest if is_at_end else InitialPosition.Earliest,
            receiver_queue_size=0,
            ack_receipt_enabled=True,
            ack_grouping_time_ms=0,
        )
        consumer = await Consumer.open(self._client.context, topic, name, config)
        try:
            if last is not None:
                await consumer.acknowledge_cumulative(MessageId(*last))
        finally:
            await consumer.close()
