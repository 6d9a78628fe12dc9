"""What a support bundle has, and what it does not have."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
import tarfile
from pathlib import Path

import jwt
import pytest

from pulsar_py.admin_client import AdminClient, AdminSettings, topics
from pulsar_py.cli.watching.bundle_jobs import collect, write_bundle
from pulsar_py.client import AuthenticationToken, Client
from pulsar_py.server.config import BrokerConfig, ignored_settings, is_secret
from pulsar_py.standalone import Broker
from tests.unit.server.security.test_providers import Badges

SECRET = "a-secret-that-nobody-may-see"
KEY = bytes(range(32))
USERS = base64.b64encode(b"me:abNANd1rDfiNc").decode()


async def test_it_has_what_helps_and_neither_secrets_nor_payloads(tmp_path: Path) -> None:
    config = {"brokerClientAuthenticationParameters": f"token:{SECRET}"}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.log").write_bytes(b"12345")
    async with Broker(config=config) as broker, Client(broker.service_url) as client:
        await client.subscribe("orders", "billing")
        producer = await client.create_producer("orders")
        await producer.send(b"payload-that-nobody-may-see")
        admin = AdminSettings(url=broker.web_service_url)
        files = await asyncio.to_thread(lambda: dict(collect(admin, tmp_path / "data")))
    assert {"README.txt", "settings.json", "symptoms.json", "metrics.txt", "topics.json"} <= set(
        files
    )
    whole = b"\n".join(files.values())
    assert b"that-nobody-may-see" not in whole
    assert "brokerClientAuthenticationParameters" in json.loads(files["settings.json"])
    assert b"pulsar_topics_count" in files["metrics.txt"]
    assert "ledgers" in json.loads(files["internal/00.json"])
    assert files["files.txt"].split() == [b"5", b"a.log"]
    assert "policies" not in files
    assert json.loads(files["namespaces/public-default.json"])


async def test_values_that_users_gave_are_masked_and_their_names_stay() -> None:
    given = {"who": "that-nobody-may-see"}
    async with Broker() as broker, Client(broker.service_url) as client:
        admin = AdminSettings(url=broker.web_service_url)

        def make() -> None:
            with AdminClient(admin) as calls:
                calls.call(topics.create_topic("orders", given))
                calls.send(
                    "PUT", "/admin/v2/namespaces/public/default/property/who/" + given["who"]
                )

        await asyncio.to_thread(make)
        consumer = await client.subscribe(
            "orders", "billing", properties=given, subscription_properties=given
        )
        producer = await client.create_producer("orders", properties=given)
        files = await asyncio.to_thread(lambda: dict(collect(admin, None)))
        assert consumer
        assert producer
    whole = b"\n".join(files.values()).decode()
    assert "that-nobody-may-see" not in whole
    assert whole.count('"who": "********"') == 5


def planted() -> dict[str, str]:
    """A secret in each setting that may have one: known, ignored, of a user's provider, as data."""
    ignored = [name for name, each in ignored_settings().items() if not each.is_refused(SECRET)]
    names = [*BrokerConfig.declared(), *ignored]
    found = {name: f"{SECRET} of {name}" for name in names if is_secret(name)}
    return found | {
        "basicAuthConf": "data:;base64," + USERS,
        "tokenSecretKey": "data:;base64," + base64.b64encode(KEY).decode(),
        "authenticationEnabled": "true",
        "authenticationProviders": f"token,basic,{Badges.__module__}.Badges",
        "badgeServer": f"user:{SECRET}@host",
        "superUserRoles": "me",
    }


async def test_a_secret_is_in_it_wherever_it_was_planted_nowhere() -> None:
    token = jwt.encode({"sub": "me", "jti": SECRET}, KEY, "HS256")
    async with Broker(config=planted()) as broker:
        admin = AdminSettings(url=broker.web_service_url, token=token)
        far = {
            "serviceUrl": "http://far:8080",
            "brokerClientAuthenticationPlugin": "AuthenticationToken",
            "brokerClientAuthenticationParameters": f"token:{SECRET}",
            "brokerClientTlsTrustStorePassword": SECRET,
        }

        def make() -> None:
            tenant = {"adminRoles": [], "allowedClusters": ["standalone"]}
            with AdminClient(admin) as calls:
                calls.send("PUT", "/admin/v2/clusters/far", far)
                calls.send("PUT", "/admin/v2/clusters/standalone", far)
                calls.send("PUT", "/admin/v2/tenants/public", tenant)
                calls.send("PUT", "/admin/v2/namespaces/public/default")

        await asyncio.to_thread(make)
        async with Client(broker.service_url, authentication=AuthenticationToken(token)) as client:
            await client.subscribe("orders", "billing")
            producer = await client.create_producer("orders")
            await producer.send(SECRET.encode(), partition_key=SECRET, properties={SECRET: SECRET})
            files = await asyncio.to_thread(lambda: dict(collect(admin, None)))
    whole = b"\n".join(files.values()).decode()
    settings = json.loads(files["settings.json"])
    assert planted().keys() - settings.keys() <= {"superUserRoles"}
    for text in (SECRET, token, USERS, "abNANd1rDfiNc", base64.b64encode(KEY).decode(), KEY.hex()):
        assert text not in whole
    for shift in range(3):  # as it stands in the base64 of something longer
        inside = base64.b64encode(b"x" * shift + SECRET.encode())[4:-4].decode()
        assert inside not in whole


def test_a_broker_that_is_not_there_leaves_its_errors() -> None:
    files = dict(collect(AdminSettings(url="http://127.0.0.1:1", timeout_seconds=5), None))
    assert "127.0.0.1:1" in json.loads(files["settings.json"])["error"]
    assert files["metrics.txt"].startswith(b"error: ")
    assert b"python" in files["process.json"]


def test_an_archive_is_for_its_owner_and_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    assert write_bundle(path, iter([("x/y.txt", b"hello")])) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as archive:
        (entry,) = archive.getmembers()
        found = archive.extractfile(entry)
        assert entry.name == "b/x/y.txt"
        assert found is not None
        assert found.read() == b"hello"
    with pytest.raises(FileExistsError):
        write_bundle(path, iter(()))
