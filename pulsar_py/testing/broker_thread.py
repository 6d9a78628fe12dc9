"""`BrokerThread`: a broker in a thread with its own loop, for tests that block or have no loop.

with BrokerThread() as broker:
    client = pulsar.Client(broker.service_url)
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from pulsar_py.standalone import Broker


class BrokerThread:
    """Runs a `Broker` made of the same keyword arguments from `start` to `stop`."""

    def __init__(self, **arguments: Any) -> None:  # Any: each argument of Broker has its own type
        self._arguments = arguments
        self._started: Future[tuple[str, str]] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None  # the thread's, while it runs
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="pulsar_py broker", daemon=True)
        self.service_url = ""
        self.web_service_url = ""

    def start(self) -> None:
        """Start the broker, and return when it answers; raises the error if it can't start."""
        self._thread.start()
        self.service_url, self.web_service_url = self._started.result()

    def stop(self) -> None:
        """Stop the broker, and wait until all its data is written."""
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

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

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        try:
            broker = Broker(**self._arguments)
            await broker.start()
        except BaseException as error:  # noqa: BLE001 - whatever it is, `start` raises it
            self._started.set_exception(error)
            return
        self._loop = asyncio.get_running_loop()
        self._stopping = stopping
        self._started.set_result((broker.service_url, broker.web_service_url))
        try:
            await stopping.wait()
        finally:
            await broker.stop()
