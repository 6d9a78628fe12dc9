from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.storage.journal.file_header import FILE_HEADER_BYTES, FileHeader
from pulsar_py.storage.journal.recovery import FoundFile, ReplayFile, check_end, plan_replay


def found(
    file_id: int, previous: tuple[int, int] | None, lost: FileHeader | None = None
) -> FoundFile:
    header = None if previous is None else FileHeader(file_id, *previous)
    return FoundFile(file_id, f"journal/{file_id}", header, lost)


def replayed(file_id: int, start: int, end: int | None, previous: tuple[int, int]) -> ReplayFile:
    return ReplayFile(file_id, f"journal/{file_id}", start, end, FileHeader(file_id, *previous))


def test_files_are_replayed_from_the_mark_up_to_what_the_next_one_says() -> None:
    plan = plan_replay([found(2, (1, 70)), found(3, (2, 900)), found(4, (3, 800))], (2, 300))

    assert plan.files == (
        replayed(2, 300, 900, (1, 70)),
        replayed(3, FILE_HEADER_BYTES, 800, (2, 900)),
        replayed(4, FILE_HEADER_BYTES, None, (3, 800)),
    )
    assert plan.leftovers == ()


def test_a_file_that_ends_at_the_mark_is_not_needed() -> None:
    plan = plan_replay([found(2, (1, 70)), found(3, (2, 900))], (2, 900))

    assert [file.file_id for file in plan.files] == [3]
    assert plan.leftovers == (2,)


def test_files_before_the_mark_unused_ones_and_those_off_the_chain_are_left_over() -> None:
    plan = plan_replay(
        [found(1, None), found(2, (1, 5)), found(3, (2, 400)), found(4, (2, 400)), found(5, None)],
        (2, 300),
    )

    assert [(file.file_id, file.end) for file in plan.files] == [(2, 400), (4, None)]
    assert plan.leftovers == (1, 3, 5)


def test_files_that_were_created_ahead_are_left_over() -> None:
    ahead = FileHeader(4, generation=7, is_begun=False, is_used_again=True)
    plan = plan_replay([found(3, (2, 300)), FoundFile(4, "journal/4", ahead)], (2, 300))

    assert ([file.file_id for file in plan.files], plan.leftovers) == ([3], (4,))
    with pytest.raises(CorruptDataError, match="journal file 4 is missing or has lost its header"):
        plan_replay([FoundFile(4, "journal/4", ahead), found(5, (4, 900))], (2, 300))


def test_a_file_of_the_former_version_is_read_from_its_own_first_block() -> None:
    former = FoundFile(2, "journal/2", FileHeader(2, 1, 70, version=1))
    plan = plan_replay([former, found(3, (2, 900))], (1, 70))

    assert [(file.start, file.life.version) for file in plan.files] == [(40, 1), (64, 3)]


def test_nothing_found_is_fine_where_nothing_was_begun() -> None:
    assert plan_replay([], (5, 0)).files == ()
    assert plan_replay([found(5, None)], (5, 0)).leftovers == (5,)
    with pytest.raises(CorruptDataError, match="journal file 5 of the checkpoint is missing"):
        plan_replay([], (5, 100))


def test_the_first_file_after_a_clean_stop_names_the_mark() -> None:
    plan = plan_replay([found(6, (5, 0))], (5, 0))

    assert plan.files == (replayed(6, FILE_HEADER_BYTES, None, (5, 0)),)


def test_a_lost_header_or_file_is_refused() -> None:
    with pytest.raises(CorruptDataError, match="journal/2: offset 0"):
        plan_replay([found(2, None, FileHeader(2))], (2, 0))
    with pytest.raises(CorruptDataError, match=r"journal file 3 is missing.*journal/4 says .* 50"):
        plan_replay([found(2, (2, 0)), found(4, (3, 50))], (2, 0))
    with pytest.raises(CorruptDataError, match="journal file 2 is missing"):
        plan_replay([found(3, (2, 500))], (2, 300))
    with pytest.raises(CorruptDataError, match="journal/4: follows offset 9 of journal file 1"):
        plan_replay([found(4, (1, 9))], (2, 300))
    swapped = FoundFile(3, "journal/3", FileHeader(2, 1, 5))
    with pytest.raises(CorruptDataError, match="journal/3: has the header of journal file 2"):
        plan_replay([swapped], (2, 300))


def test_the_last_file_may_end_torn_but_not_damaged() -> None:
    last = replayed(4, 64, None, (3, 1))
    check_end(last, 500, has_later_block=False)
    with pytest.raises(CorruptDataError, match="journal/4: offset 500"):
        check_end(last, 500, has_later_block=True)


def test_any_other_file_has_to_reach_its_end() -> None:
    middle = replayed(3, 64, 800, (2, 1))
    check_end(middle, 800, has_later_block=False)
    with pytest.raises(CorruptDataError, match=r"journal/3: offset 700.* go on to 800"):
        check_end(middle, 700, has_later_block=False)
