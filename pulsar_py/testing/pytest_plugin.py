"""Pytest fixtures of a broker; installed with the package, they need no configuration.

    def test_with_any_client(pulsar_broker):
        client = pulsar.Client(pulsar_broker.service_url)

    @pytest.mark.pulsar_broker(config={"brokerDeduplicationEnabled": True})
    async def test_in_my_own_loop(async_pulsar_broker): ...

`pulsar_broker` and `async_pulsar_broker` are fresh for each test, in memory and on free ports;
`session_pulsar_broker` is one for the whole run. `pulsar_broker` and the last run in a thread of
their own, so that blocking clients work, and tests of any asyncio framework too;
`async_pulsar_broker` runs in the test's loop and needs pytest-asyncio. What a broker logged is in
the report of a test that fails.

Options, those of `Broker`, come from the fixture `pulsar_broker_options`, over that the marker
`pulsar_broker`, over that the fixture's parameter (`indirect=True`); settings in `config` are put
together one by one. A marker can't reach `session_pulsar_broker`, which runs before the test does:
a test that has nothing else for it fails; so does one that is no `async def` and takes
`async_pulsar_broker`. This module is loaded by every pytest of the environment, so it imports
nothing of ours before a fixture is used.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from pulsar_py.testing.broker_log import BrokerLog
    from pulsar_py.testing.broker_thread import BrokerThread
    from pulsar_py.testing.restartable_broker import BrokerOptions, RestartableBroker

_MARKER: Final = "pulsar_broker"
_OF_A_TEST: Final = frozenset({"pulsar_broker", "async_pulsar_broker"})
"""The fixtures that the marker reaches."""
_LOGS: Final[pytest.StashKey[dict[str, BrokerLog]]] = pytest.StashKey()
"""Of a test or the session: the logs of its brokers, by fixture."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", f"{_MARKER}(**options): options of Broker for the test's broker fixture"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse what would have no effect, or wait for ever."""
    if isinstance(item, pytest.Function) and "pytest_asyncio" in sys.modules:
        _refuse_without_loop(item)
    names = getattr(item, "fixturenames", ())
    if "session_pulsar_broker" not in names or not _OF_A_TEST.isdisjoint(names):
        return
    if item.get_closest_marker(_MARKER) is not None:
        pytest.fail(
            f"@pytest.mark.{_MARKER} has no effect on session_pulsar_broker, which is one for the"
            " whole run: take pulsar_broker or async_pulsar_broker in this test, or give the"
            " options by the fixture pulsar_broker_options",
            pytrace=False,
        )


def _refuse_without_loop(item: pytest.Function) -> None:
    """Refuse a test that takes a broker in its loop, and has none.

    One that takes the broker through an asynchronous fixture of its own is let through, and one
    that runs pytest-asyncio's `event_loop` itself.
    """
    function = item.function
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", function)
    if inspect.iscoroutinefunction(inner) or "event_loop" in item.fixturenames:
        return
    if "async_pulsar_broker" in inspect.signature(function).parameters:
        pytest.fail(
            f"{item.name} is no `async def`, so no loop would run for async_pulsar_broker, and"
            " clients would wait for an answer until their time limit: make it one, or take"
            " pulsar_broker, which runs in a thread of its own",
            pytrace=False,
        )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:  # Any: pluggy's
    """Add what brokers logged to the report of a test that failed."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if not report.failed:
        return
    logs: dict[str, BrokerLog] = {}
    for stash in (item.session.stash, item.stash):
        if _LOGS in stash:
            kept = stash[_LOGS]
            logs |= kept
    for name, log in logs.items():
        if name in getattr(item, "fixturenames", ()) and (text := log.text()):
            report.sections.append((f"Log of {name}", text))


@pytest.fixture(scope="session")
def pulsar_broker_options() -> BrokerOptions:
    """Options for all brokers of the run; override it in your conftest.py."""
    return {}


@pytest.fixture
def pulsar_broker(
    request: pytest.FixtureRequest, pulsar_broker_options: BrokerOptions
) -> Iterator[BrokerThread]:
    """A fresh broker in memory, with `service_url`, `web_service_url` and `restart`."""
    options = _options_of(request, pulsar_broker_options)
    yield from _in_thread(options, request.node, "pulsar_broker")


@pytest.fixture(scope="session")
def session_pulsar_broker(
    request: pytest.FixtureRequest, pulsar_broker_options: BrokerOptions
) -> Iterator[BrokerThread]:
    """One broker for the whole run; let each test have topics of its own."""
    options = _options_of(request, pulsar_broker_options)
    yield from _in_thread(options, request.session, "session_pulsar_broker")


async def _async_pulsar_broker(
    request: pytest.FixtureRequest, pulsar_broker_options: BrokerOptions
) -> AsyncIterator[RestartableBroker]:
    """A fresh broker in memory, in the loop of the test."""
    from pulsar_py.testing.broker_log import BrokerLog  # noqa: PLC0415 - see the module
    from pulsar_py.testing.restartable_broker import RestartableBroker  # noqa: PLC0415 - as above

    options = _options_of(request, pulsar_broker_options)
    with BrokerLog() as log:
        _keep(request.node, "async_pulsar_broker", log)
        async with RestartableBroker(**options) as broker:
            log.refresh()
            yield broker


def _in_thread(
    options: BrokerOptions, node: pytest.Item | pytest.Session, name: str
) -> Iterator[BrokerThread]:
    from pulsar_py.testing.broker_log import BrokerLog  # noqa: PLC0415 - see the module
    from pulsar_py.testing.broker_thread import BrokerThread  # noqa: PLC0415 - as above

    broker = BrokerThread(**options)
    with BrokerLog(broker.thread_name) as log:
        _keep(node, name, log)
        with broker:
            log.refresh()
            yield broker


def _keep(node: pytest.Item | pytest.Session, name: str, log: BrokerLog) -> None:
    node.stash.setdefault(_LOGS, {})[name] = log


def _options_of(request: pytest.FixtureRequest, options: BrokerOptions) -> BrokerOptions:
    """Those of the run, of the markers (the nearest wins), and of the parameter."""
    given = _checked(options, "the fixture pulsar_broker_options")
    for marker in reversed(list(request.node.iter_markers(_MARKER))):
        if marker.args:
            pytest.fail(
                f"@pytest.mark.{_MARKER} takes options by name, such as config={{...}}",
                pytrace=False,
            )
        given = _over(given, _checked(marker.kwargs, f"@pytest.mark.{_MARKER}"))
    parameter = getattr(request, "param", None)
    if parameter is not None:
        given = _over(given, _checked(parameter, f"the parameter of {request.fixturename}"))
    return given


def _over(below: BrokerOptions, above: BrokerOptions) -> BrokerOptions:
    """Options with others over them; of two `config` setting by setting."""
    together: BrokerOptions = {**below, **above}
    config, nearer = below.get("config"), above.get("config")
    if isinstance(nearer, Mapping) and config is not None:
        settings = config if isinstance(config, Mapping) else vars(config)
        together["config"] = {**settings, **nearer}
    return together


def _checked(options: Any, taker: str) -> BrokerOptions:  # Any: whatever somebody gave
    from pulsar_py.testing.restartable_broker import (  # noqa: PLC0415 - see the module
        check_option_names,
        check_settings,
    )

    if not isinstance(options, dict):
        pytest.fail(f"{taker}: expected a dict of options, got {options!r:.100}", pytrace=False)
    refused = None
    try:
        check_option_names(options, taker)
        check_settings(options.get("config"), taker)
    except (TypeError, ValueError) as error:
        refused = str(error)
    if refused is not None:  # out here, so that the report has it once
        pytest.fail(refused, pytrace=False)
    checked: BrokerOptions = {**options}  # type: ignore[typeddict-item] # names were just checked
    return checked


def _without_pytest_asyncio() -> None:
    """Replaces `async_pulsar_broker` if pytest-asyncio is missing: fails with the reason."""
    pytest.fail("async_pulsar_broker needs pytest-asyncio: pip install pytest-asyncio")


try:
    import pytest_asyncio
except ImportError:
    async_pulsar_broker: Any = pytest.fixture(  # Any: one of two kinds of fixture
        _without_pytest_asyncio, name="async_pulsar_broker"
    )
else:
    async_pulsar_broker = pytest_asyncio.fixture(_async_pulsar_broker, name="async_pulsar_broker")
