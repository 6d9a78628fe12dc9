"""Each program of the client's guide does the same against Apache Pulsar's own broker."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.integration.client.test_client_examples import SAYS, run_example

pytestmark = [pytest.mark.slow, pytest.mark.interop]


@pytest.fixture(scope="module")
def apache(
    bookkeeper: BookKeeperCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheBroker]:
    directory = tmp_path_factory.mktemp("apache")
    with ApacheBroker.with_deduplication(directory, bookkeeper.zookeeper.url) as broker:
        yield broker


@pytest.mark.parametrize("name", SAYS)
async def test_a_program_does_what_it_says(
    apache: ApacheBroker, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_example(name, apache.service_url)
    assert re.search(SAYS[name], capsys.readouterr().out)
