from __future__ import annotations

import logging
import threading

import pytest

from pulsar_py.testing.broker_log import MAX_LINES, BrokerLog

logger = logging.getLogger("pulsar_py.server.test")


def test_it_keeps_info_of_the_broker_and_nothing_of_clients() -> None:
    with BrokerLog() as log:
        logger.info("topic loaded", extra={"topic": "t"})
        logger.debug("a detail")
        logging.getLogger("pulsar_py.client.client").warning("a client's")
    logger.info("later")
    assert log.text().endswith("INFO pulsar_py.server.test: topic loaded topic=t")
    assert len(log.text().splitlines()) == 1


def test_it_tells_threads_apart() -> None:
    with BrokerLog("one") as one, BrokerLog("two") as two:
        for name in ("one", "two"):
            thread = threading.Thread(
                target=lambda name=name: logger.info("by %s", name), name=name
            )
            thread.start()
            thread.join()
    assert "by one" in one.text()
    assert "by two" in two.text()
    assert "two" not in one.text()


def test_others_get_what_they_would_have_got(caplog: pytest.LogCaptureFixture) -> None:
    with BrokerLog():
        logger.info("unseen")
        logger.warning("seen")
    assert [each.getMessage() for each in caplog.records] == ["seen"]
    with caplog.at_level(logging.INFO), BrokerLog():
        logger.info("asked for")
    assert caplog.records[-1].getMessage() == "asked for"


def test_only_so_many_lines_are_kept() -> None:
    with BrokerLog() as log:
        for number in range(MAX_LINES + 5):
            logger.info("line %d", number)
    assert log.text().startswith("... 5 earlier lines\n")
    assert len(log.text().splitlines()) == MAX_LINES + 1


def test_a_level_set_meanwhile_counts(caplog: pytest.LogCaptureFixture) -> None:
    with BrokerLog():
        with caplog.at_level(logging.INFO, logger.name):
            logger.info("asked for")
        logger.info("unseen")
        with caplog.at_level(logging.ERROR, logger.name):
            logger.warning("unseen")
    assert [each.getMessage() for each in caplog.records] == ["asked for"]
