"""`BrokerThread`: a broker in a thread with its own loop, for tests that block or have no loop.

with BrokerThread() as broker:
    client = pulsar.Client(broker.service_url)
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from itertools import count
from types import TracebackType
from typing import Final, NamedTuple, Self, Unpack

from pulsar_py.testing.restartable_broker import (
    BrokerOptions,
    RestartableBroker,
    check_option_names,
)

_NUMBERS: Final = count(1)


class _Urls(NamedTuple):
    """Where a broker answers; as they were, after it has stopped."""

    service_url: str
    service_url_tls: str | None
    web_service_url: str
    web_service_url_tls: str | None


class BrokerThread:
    """Runs a `Broker` made of the same keyword arguments from `start` to `stop`."""

    def __init__(self, **options: Unpack[BrokerOptions]) -> None:
        """Take the options of `Broker`; nothing is opened before `start`.

        Raises:
            TypeError: One is unknown.
            ConfigurationError: A setting is unknown or out of bounds.
        """
        check_option_names(options, type(self).__name__)
        self._broker = RestartableBroker(**options)
        self._started: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None  # the thread's, while it runs
        self._stopping: asyncio.Event | None = None
        # Tells the records of its log from those of others.
        self.thread_name = f"pulsar_py broker {next(_NUMBERS)}"
        self._thread = threading.Thread(target=self._run, name=self.thread_name, daemon=True)
        self._urls: _Urls | None = None  # None before it answers for the first time

    @property
    def service_url(self) -> str:
        """The URL for clients: `pulsar://host:port`, or `pulsar+ssl` without a port in clear.

        Raises:
            RuntimeError: It was not started yet; so do the other three.
        """
        return self._started_urls.service_url

    @property
    def service_url_tls(self) -> str | None:
        """The URL for clients over TLS, `pulsar+ssl://host:port`; None without such a port."""
        return self._started_urls.service_url_tls

    @property
    def web_service_url(self) -> str:
        """The URL of administration and metrics: `http://host:port`, or `https` likewise."""
        return self._started_urls.web_service_url

    @property
    def web_service_url_tls(self) -> str | None:
        """The URL of administration over TLS, `https://host:port`; None without such a port."""
        return self._started_urls.web_service_url_tls

    def start(self) -> None:
        """Start the broker, and return when it answers; raises the error if it can't start."""
        self._thread.start()
        self._started.result()
        self._take_urls()

    def restart(self) -> None:
        """Stop it and start it again, on the same ports and with its data.

        Clients lose their connections, as with a broker that is rolled. What was confirmed is there
        again, also without a `data_dir`.

        Raises:
            RuntimeError: It does not run.
            OSError: Somebody else has taken a port meanwhile.
        """
        if self._loop is None or not self._thread.is_alive():
            raise RuntimeError("the broker is not running: call start(), or use `with`")
        asyncio.run_coroutine_threadsafe(self._broker.restart(), self._loop).result()
        self._take_urls()

    def stop(self) -> None:
        """Stop the broker, and wait until all its data is written."""
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def __repr__(self) -> str:
        state = "running" if self._thread.is_alive() else "not running"
        url = self._urls.service_url if self._urls else "no address yet"
        return f"{type(self).__name__}({url}, {state})"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def _started_urls(self) -> _Urls:
        if self._urls is None:
            raise RuntimeError("the broker is not started: call start(), or use `with`")
        return self._urls

    def _take_urls(self) -> None:
        broker = self._broker
        self._urls = _Urls(
            broker.service_url,
            broker.service_url_tls,
            broker.web_service_url,
            broker.web_service_url_tls,
        )

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        try:
            await self._broker.start()
        except BaseException as error:  # noqa: BLE001 - whatever it is, `start` raises it
            self._started.set_exception(error)
            return
        self._loop = asyncio.get_running_loop()
        self._stopping = stopping
        self._started.set_result(None)
        try:
            await stopping.wait()
        finally:
            await self._broker.stop()
