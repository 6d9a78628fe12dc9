"""What the parts of one client share."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from pulsar_py.client.brokers.client_config import ClientConfig
from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.brokers.http_lookup import HttpLookup
from pulsar_py.client.brokers.lookup import BinaryLookup
from pulsar_py.client.brokers.service_url import ServiceUrl
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientError,
    ForkedProcessError,
    InvalidServiceUrlError,
)
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.network import run_simulated
from tests.http_server import Answer, HttpServer


def context_of(url: str = "pulsar://a", **options: Any) -> ClientContext:
    return ClientContext(
        ServiceUrl.parse(url), ClientConfig(**options), clock=VirtualClock(), chance=Random(1)
    )


def test_ids_are_never_given_twice() -> None:
    context = context_of()

    for new_id in (context.new_producer_id, context.new_consumer_id, context.new_request_id):
        assert [new_id() for _ in range(3)] == [0, 1, 2]


def test_the_scheme_says_how_topics_are_looked_up() -> None:
    assert isinstance(context_of().lookup, BinaryLookup)
    assert isinstance(context_of("http://a").lookup, HttpLookup)


def test_lookups_of_another_cluster_are_made_once() -> None:
    context = context_of()

    assert context.lookup_at("pulsar://b") is context.lookup_at("pulsar://b")
    with pytest.raises(InvalidServiceUrlError):
        context.lookup_at("nonsense")


def test_a_context_belongs_to_the_loop_of_its_first_use() -> None:
    context = context_of()

    async def use() -> None:
        context.check_usable()

    run_virtual(use())
    with pytest.raises(ClientError, match="another event loop"):
        run_virtual(use())


def test_another_cluster_s_authorities_are_trusted_there_only() -> None:
    async def work() -> None:
        context = context_of("pulsar+ssl://a", tls_trust_certs_file_path="own.pem")
        await context.update_service_url("pulsar+ssl://b", tls_trust_certs_file_path="other.pem")
        assert context.config.tls_trust_certs_file_path == "other.pem"
        await context.update_service_url("pulsar+ssl://a")
        assert context.config.tls_trust_certs_file_path == "own.pem"
        await context.close()

    run_virtual(work())


def test_a_thread_without_a_loop_is_told_so() -> None:
    with pytest.raises(ClientError, match="in thread 'MainThread', which runs no event loop"):
        context_of().check_usable()


def test_a_closed_context_is_of_no_use() -> None:
    async def work() -> None:
        context = context_of()
        context.lookup_at("pulsar://b")
        await context.close()
        await context.close()
        with pytest.raises(AlreadyClosedError):
            context.check_usable()
        assert len(asyncio.all_tasks()) == 1

    run_virtual(work())


def test_in_a_forked_child_it_says_why_it_is_of_no_use() -> None:
    context = context_of()

    assert context.detach_after_fork() == []
    with pytest.raises(ForkedProcessError, match="make a new client after the fork"):
        context.check_usable()


def test_the_parts_are_handed_out_in_the_order_they_were_made() -> None:
    class Part:
        async def close(self) -> None: ...

        def abandon(self) -> None: ...

    context = context_of()
    parts = [Part() for _ in range(3)]
    for part in parts:
        context.register_child(part)
    context.unregister_child(parts[1])
    context.unregister_child(parts[1])

    assert context.children == [parts[0], parts[2]]


def test_partitions_are_asked_for_again_where_the_cluster_changed_meanwhile() -> None:
    async def work() -> None:
        async with HttpServer(lambda _: Answer(is_silent=True)).running() as silent:
            context = context_of(silent.url)
            asked = asyncio.get_running_loop().create_task(
                context.partitions_count("persistent://public/default/t")
            )
            await asyncio.sleep(1)
            async with HttpServer(lambda _: Answer.json({"partitions": 3})).running() as other:
                await context.update_service_url(other.url)
                assert await asked == 3
                await context.close()

    run_simulated(work())
