from __future__ import annotations

from dataclasses import dataclass

import pytest

from pulsar_py.ledgers.read_ahead import (
    PIECE_BYTES,
    PIECES_COUNT,
    READERS_COUNT,
    AheadWindow,
    ReadAhead,
)

MIB = 1024 * 1024
ROOM = 1000 * MIB


@dataclass
class Piece:
    first: int
    end: int
    size_bytes: int


def new(window_bytes: int = 8 * MIB) -> ReadAhead[Piece]:
    return ReadAhead(window_bytes)


def moved(
    ahead: ReadAhead[Piece], ledger_id: int, entry_id: int, held: int = 0
) -> AheadWindow[Piece]:
    return ahead.move(ledger_id, entry_id, lambda: max(held, entry_id))


def grown(ahead: ReadAhead[Piece], window: AheadWindow[Piece], room: int = ROOM) -> int:
    """Let its window grow by a piece of ten entries; returns its bytes."""
    size_bytes = ahead.next_bytes(7, window, room)
    if size_bytes:
        ahead.on_found(window, Piece(window.end, window.end + 10, size_bytes), size_bytes)
    return size_bytes


def test_who_begins_where_the_last_read_ended_reads_in_order() -> None:
    ahead = new()
    assert not ahead.is_in_order(7, 0)
    ahead.on_miss(7, 10)
    assert ahead.is_in_order(7, 10)
    assert not ahead.is_in_order(7, 9)
    assert not ahead.is_in_order(8, 10)


def test_a_window_grows_by_pieces_up_to_its_size() -> None:
    ahead = new()
    window = moved(ahead, 7, 10)
    assert [grown(ahead, window) for _ in range(5)] == [PIECE_BYTES] * 4 + [0]
    assert (window.first, window.end) == (10, 50)
    assert ahead.coming_bytes == 4 * PIECE_BYTES


def test_a_window_moves_on_with_its_reader_and_grows_again() -> None:
    ahead = new()
    window = moved(ahead, 7, 10)
    while grown(ahead, window):
        pass
    assert moved(ahead, 7, 20) is window
    assert window.first == 20
    assert grown(ahead, window)
    piece = window.piece_with(35)
    assert piece is not None
    assert piece.first == 30
    assert window.piece_with(19) is None


def test_a_reader_elsewhere_gets_another_window_unless_all_up_to_the_first_is_here() -> None:
    ahead = new()
    window = moved(ahead, 7, 100)
    grown(ahead, window)
    assert moved(ahead, 7, 50, held=100) is window
    assert moved(ahead, 7, 50, held=90) is not window


def test_only_one_piece_of_a_window_is_looked_for_at_a_time() -> None:
    ahead = new()
    window = moved(ahead, 7, 10)
    assert ahead.next_bytes(7, window, ROOM)
    assert not ahead.next_bytes(7, window, ROOM)
    ahead.on_nothing_found(window)
    assert ahead.next_bytes(7, window, ROOM)


def test_each_reader_gets_half_of_the_room_and_little_room_is_none() -> None:
    ahead = new()
    window = moved(ahead, 7, 10)
    assert grown(ahead, window, room=2 * MIB) == MIB
    assert grown(ahead, window, room=2 * MIB) == 0, "a quarter of a piece is too little"
    assert grown(ahead, window, room=3 * MIB) == MIB


def test_so_many_readers_and_pieces_at_a_time() -> None:
    ahead = new()
    windows = [moved(ahead, ledger_id, 0) for ledger_id in range(READERS_COUNT + 1)]
    sizes = [ahead.next_bytes(ledger_id, each, ROOM) for ledger_id, each in enumerate(windows)]
    assert [bool(each) for each in sizes] == [True] * READERS_COUNT + [False]
    ahead.on_nothing_found(windows[0])
    ahead.on_ended(windows[0], sizes[0])
    assert ahead.next_bytes(READERS_COUNT, windows[-1], ROOM)

    ahead = new(1000 * MIB)
    window = moved(ahead, 7, 0)
    count = 0
    while size_bytes := grown(ahead, window):
        ahead.on_ended(window, size_bytes)
        count += 1
    assert count == PIECES_COUNT
    assert ahead.coming_bytes == 0


def test_a_window_that_was_forgotten_or_replaced_grows_no_more() -> None:
    ahead = new()
    window = moved(ahead, 7, 10)
    ahead.forget(7)
    assert not grown(ahead, window)
    assert ahead.window(7) is None


@pytest.mark.parametrize("window_bytes", [0, 3])
def test_without_a_window_nothing_is_fetched_ahead(window_bytes: int) -> None:
    ahead = new(window_bytes)
    assert not grown(ahead, moved(ahead, 7, 10))
