from __future__ import annotations

from pulsar_py.bookkeeper.bookies.requests import AddRequest, BookieRequest
from pulsar_py.bookkeeper.protocol import frames
from pulsar_py.bookkeeper.protocol.frames import BookieAnswer, BookieOperation
from tests.unit.bookkeeper.bookies.test_connection import Asker


def test_what_stands_for_no_answer_names_what_was_asked() -> None:
    request = BookieRequest(BookieOperation.READ, 7, 3, (b"abc", b"de"), Asker())
    assert request.size_bytes == 5
    assert request.failed(frames.LOST) == BookieAnswer(BookieOperation.READ, frames.LOST, 7, 3)


def test_of_a_run_it_names_the_first_entry_without_an_answer() -> None:
    request = AddRequest(7, 3, 5, (b"abc",), Asker())
    request.next_entry_id = 4
    assert request.failed(frames.LOST) == BookieAnswer(BookieOperation.ADD, frames.LOST, 7, 4)
    assert not request.is_answered
    request.next_entry_id = 6
    assert request.is_answered
