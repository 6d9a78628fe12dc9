"""What all tests share: property tests run the same examples every time, and few enough.

With xdist, the long tests begin first, and what shares a result worked out once a process (the
transcripts) stays in one process; everything else goes to whichever process is free. A process that
is free takes tests from the end of another's, so the first ones stay with the first process: it
alone starts Spark, whose tests are there.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.zookeeper_process import ZooKeeperProcess

FIRST = (
    "tests/integration/test_kill9.py",
    "tests/integration/test_transcripts.py",
    "tests/spark/",
)
"""Modules and folders that take longest; the rest fills up what they leave."""

TOGETHER = ("tests/integration/test_transcripts.py",)

settings.register_profile(
    "derandomized",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("derandomized")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of ours.

    `--rewrite` puts what playbooks answer now into their files, to be reviewed as a diff.
    `--on-bookkeeper` has the tests of clients talk to a broker on ZooKeeper and BookKeeper.
    """
    parser.addoption("--rewrite", action="store_true", help="rewrite the playbooks' answers")
    parser.addoption(
        "--on-bookkeeper",
        action="store_true",
        help="tests/interop against a broker on three bookies",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without garbage collections, which from then on leave all that is there alone.

    It is two million objects, two seconds of the processor each time. Simulated worlds and programs
    under test let go what they have left alone themselves, and would let go this, too: so nothing
    is let go, and what is to be left alone is rid of garbage first.
    """
    gc.disable()
    freeze = gc.freeze

    def collect_and_freeze() -> None:
        gc.collect()
        freeze()

    try:
        return (yield)
    finally:
        freeze()
        gc.freeze = collect_and_freeze
        gc.unfreeze = _let_nothing_go
        gc.enable()


def _let_nothing_go() -> None:
    """In place of `gc.unfreeze`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what is in `FIRST` at the front, in that order."""

    def rank(item: pytest.Item) -> int:
        ranks = (rank for rank, start in enumerate(FIRST) if item.nodeid.startswith(start))
        return next(ranks, len(FIRST))

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """Hand out tests one by one, but modules in `TOGETHER` as a whole."""

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return module if module in TOGETHER else nodeid

    if config.getoption("dist") != "load":
        return None
    return Scheduling(config, log)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """A real ZooKeeper for tests that leave it as it is; skipped where there is no Java."""
    process = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper"))
    try:
        process.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield process
    process.kill()


@pytest.fixture(scope="session")
def bookkeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookKeeperCluster]:
    """Three real bookies for tests that leave them as they are; skipped where there is no Java."""
    cluster = BookKeeperCluster(tmp_path_factory.mktemp("bookkeeper"), bookies_count=3)
    try:
        cluster.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield cluster
    cluster.kill()
