from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from pulsar_py.common.errors import MigrationError, PulsarError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata import paths
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.move_progress import DONE, read_progress
from pulsar_py.migration.contents import Contents, MoveTarget
from pulsar_py.migration.moved_keys import Existing, Fate
from pulsar_py.migration.mover import Mover, advance
from tests.migration_parts import (
    LAST,
    TOPIC,
    BreakingLedgers,
    BreakingMetadata,
    Interruption,
    all_labels,
    entries,
    filled_bookie,
    keys,
    read,
    small_contents,
    stored,
    target_of,
    volatile_bookie,
)


async def begun() -> None:
    """Nothing is to be marked."""


async def move(contents: Contents, target: MoveTarget, **options: object) -> None:
    mover = Mover(contents, target, SystemClock(), **options)  # type: ignore[arg-type]
    plan = await mover.plan()
    assert not plan.problems
    if not plan.is_done:
        await mover.run(begun)


async def test_everything_is_there_with_its_ids_and_the_name_of_the_cluster() -> None:
    contents = await small_contents()
    metadata, bookie = MemoryMetadataStore(SystemClock()), await volatile_bookie()
    copied: list[int] = []

    await move(contents, target_of(metadata, bookie), on_copied=copied.append)

    wanted = keys(cluster="large")
    assert await stored(metadata, wanted) == wanted
    for ledger_id, held in entries().items():
        assert await read(bookie, ledger_id) == held
        info = await bookie.info(ledger_id)
        assert info.is_closed
        assert info.custom_metadata == all_labels("large")[ledger_id]
    assert sorted(copied) == sorted(sum(map(len, held)) for held in entries().values())
    progress = await read_progress(metadata)
    assert progress is not None
    assert (progress.state, progress.verified_through) == (DONE, LAST)


async def test_ids_and_names_go_on_beyond_all_that_were_given() -> None:
    contents = await small_contents()
    metadata, bookie = MemoryMetadataStore(SystemClock()), await volatile_bookie()
    target = target_of(metadata, bookie)

    await move(contents, target)

    assert await target.ledger_ids.next() > contents.next_ledger_id
    names = MetadataLedgerIds(metadata, paths.PRODUCER_NAME_PREFIX)
    assert await names.next() > contents.next_producer_number


async def test_a_partition_that_nobody_has_opened_is_moved() -> None:
    """Its record is made with its partitioned topic, and is empty until then."""
    contents = await small_contents()
    path = f"{TOPIC}-partition-1"
    contents = replace(contents, keys={**contents.keys, path: b""})
    metadata, bookie = MemoryMetadataStore(SystemClock()), await volatile_bookie()

    for _ in range(2):  # again, as after an interruption
        await move(contents, target_of(metadata, bookie))

    assert await stored(metadata, [path]) == {path: b""}


async def test_a_second_call_finds_nothing_to_do() -> None:
    contents = await small_contents()
    target = target_of(MemoryMetadataStore(SystemClock()), await volatile_bookie())
    await move(contents, target)

    plan = await Mover(contents, target, SystemClock()).plan()

    assert plan.is_done
    assert list(plan.lines()) == ["everything was moved, and compared, by an earlier call"]


async def test_a_target_with_ledgers_is_refused_or_gets_other_ids() -> None:
    contents = await small_contents()
    others = {4: [b"somebody else's"]}
    metadata = MemoryMetadataStore(SystemClock())
    bookie = await filled_bookie(others, {4: {}})
    target = target_of(metadata, bookie)
    await advance(target.ledger_ids, 40)

    plan = await Mover(contents, target, SystemClock()).plan()
    assert len(plan.problems) == 1
    assert "--renumber" in plan.problems[0]
    assert await read_progress(metadata) is None

    await move(contents, target, is_renumbered=True)

    progress = await read_progress(metadata)
    assert progress is not None
    offset = progress.ledger_id_offset
    assert offset > 40
    wanted = keys(offset, cluster="large")
    assert await stored(metadata, wanted) == wanted
    for ledger_id, held in entries(offset).items():
        assert await read(bookie, ledger_id) == held
    assert await read(bookie, 4) == [b"somebody else's"]


@pytest.mark.parametrize("is_change_made", [False, True])
@pytest.mark.parametrize("is_renumbered", [False, True])
async def test_a_move_goes_on_wherever_it_was_stopped(
    *, is_change_made: bool, is_renumbered: bool
) -> None:
    contents = await small_contents()
    interruption = Interruption()
    interruption.is_change_made = is_change_made
    attempts = 0
    for lives in range(1, 200):
        interruption.left = None
        metadata, bookie = BreakingMetadata(interruption), await volatile_bookie()
        target = target_of(metadata, BreakingLedgers(bookie, interruption))
        interruption.left = lives
        with suppress(PulsarError):
            await move(contents, target, is_renumbered=is_renumbered)
        if not interruption.is_over:
            break
        attempts += 1
        interruption.left = None
        await move(contents, target, is_renumbered=is_renumbered)
        progress = await read_progress(metadata)
        assert progress is not None
        assert progress.state == DONE
        offset = progress.ledger_id_offset
        wanted = keys(offset, cluster="large")
        assert await stored(metadata, wanted) == wanted
        for ledger_id, held in entries(offset).items():
            assert await read(bookie, ledger_id) == held
        await bookie.close()
    assert attempts > 25


async def test_no_key_that_names_a_ledger_comes_before_the_ledger() -> None:
    contents = await small_contents()
    metadata, bookie = MemoryMetadataStore(SystemClock()), await volatile_bookie()
    target = target_of(metadata, bookie)
    put = metadata.put

    async def watched(path: str, value: bytes, **options: object) -> int:
        if path.startswith(("/managed-ledgers", "/schemas")):
            for ledger_id in contents.ledgers:
                assert (await bookie.info(ledger_id)).is_closed
        return await put(path, value, **options)  # type: ignore[arg-type]

    metadata.put = watched  # type: ignore[method-assign]
    await move(contents, target)


async def test_policies_that_differ_are_refused_kept_or_replaced() -> None:
    contents = await small_contents()
    path = "/admin/policies/t"
    for existing, fate in (
        (Existing.REFUSE, Fate.REFUSE),
        (Existing.KEEP, Fate.KEEP),
        (Existing.REPLACE, Fate.REPLACE),
    ):
        metadata, bookie = MemoryMetadataStore(SystemClock()), await filled_bookie({4: []}, {4: {}})
        target = target_of(metadata, bookie)
        await metadata.put(path, b"{}")
        mover = Mover(contents, target, SystemClock(), is_renumbered=True, existing=existing)
        plan = await mover.plan()
        assert plan.fates[path] is fate
        assert bool(plan.problems) is (fate is Fate.REFUSE)
        if fate is Fate.REFUSE:
            continue
        await mover.run(begun)
        found = (await stored(metadata, [path]))[path]
        assert found == (b"{}" if fate is Fate.KEEP else keys(cluster="large")[path])


async def test_what_initialization_made_in_an_empty_cluster_is_replaced() -> None:
    contents = await small_contents()
    metadata, bookie = MemoryMetadataStore(SystemClock()), await volatile_bookie()
    await metadata.put("/admin/policies/t/n", b'{"replication_clusters":["large"],"made":1}')
    await move(contents, target_of(metadata, bookie))
    wanted = keys(cluster="large")
    assert await stored(metadata, wanted) == wanted


async def test_a_topic_that_is_on_both_sides_is_refused() -> None:
    contents = await small_contents()
    metadata = MemoryMetadataStore(SystemClock())
    target = target_of(metadata, await filled_bookie({4: []}, {4: {}}))
    await metadata.put(TOPIC, b"another")
    mover = Mover(contents, target, SystemClock(), is_renumbered=True, existing=Existing.REPLACE)
    plan = await mover.plan()
    assert plan.problems[0] == f"{TOPIC} is there already, with another value"


async def test_brokers_that_work_are_refused() -> None:
    contents = await small_contents()
    metadata = MemoryMetadataStore(SystemClock())
    await metadata.put(paths.broker("one:8080"), b"{}")
    target = target_of(metadata, await volatile_bookie())
    with pytest.raises(MigrationError, match="brokers work in the cluster: one:8080"):
        await Mover(contents, target, SystemClock()).plan()


async def test_what_changed_since_it_was_begun_is_refused() -> None:
    contents = await small_contents()
    interruption = Interruption()
    metadata = BreakingMetadata(interruption)
    target = target_of(metadata, await volatile_bookie())
    interruption.left = 3
    with pytest.raises(PulsarError, match="interrupted"):
        await move(contents, target)
    interruption.left = None
    changed = replace(contents, keys={**contents.keys, "/admin/policies/t/new": b"{}"})
    with pytest.raises(MigrationError, match="has changed since"):
        await Mover(changed, target, SystemClock()).plan()
    another = replace(contents, instance="instance-2")
    with pytest.raises(MigrationError, match="instance-1 is being moved"):
        await Mover(another, target, SystemClock()).plan()


async def test_what_a_store_can_not_hold_is_told_before_anything_is_written() -> None:
    contents = await small_contents()
    metadata = MemoryMetadataStore(SystemClock())
    size = metadata.limits.max_value_bytes + 1
    large = replace(contents, keys={**contents.keys, TOPIC + "/large": b"\n" * size})
    late = replace(large, next_ledger_id=2**31)
    plan = await Mover(late, target_of(metadata, await volatile_bookie()), SystemClock()).plan()
    assert any(f"{TOPIC}/large has {size} bytes" in text for text in plan.problems)
    assert any("beyond 31 bits" in text for text in plan.problems)


async def test_an_entry_that_was_altered_is_found() -> None:
    contents = await small_contents()
    metadata, bookie = MemoryMetadataStore(SystemClock()), await volatile_bookie()
    target = target_of(metadata, bookie)
    create = bookie.create_chosen

    async def altering(ledger_id, listener, options):
        writer = await create(ledger_id, listener, options)
        append = writer.append
        writer.append = lambda data: append(data[:-1] + b"?")
        return writer

    bookie.create_chosen = altering  # type: ignore[method-assign]
    with pytest.raises(MigrationError, match="is not what was copied"):
        await move(contents, target)
    progress = await read_progress(metadata)
    assert progress is not None
    assert (progress.state, progress.verified_through) == ("moving", 0)
