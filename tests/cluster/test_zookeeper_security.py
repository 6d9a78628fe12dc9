"""TLS, SASL and ACLs between the ZooKeeper store and a real server that insists on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pulsar_py.common.errors import (
    InvalidConfigurationError,
    MetadataError,
    MetadataUnavailableError,
)
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.store import MUST_NOT_EXIST
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.messages import CREATOR_ALL_ACL, Acl
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.secure_servers import BROKER, OTHER, SecureServer
from tests.cluster.zookeeper_process import ZooKeeperProcess

pytestmark = pytest.mark.slow  # a server of its own; `make test-cluster` runs them


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServer]:
    made = SecureServer(tmp_path_factory.mktemp("secure"))
    try:
        made.process.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.process.kill()


async def test_what_one_user_makes_is_closed_to_another(server: SecureServer) -> None:
    store = await server.open(server.settings)
    # Certificates name users, too: "auth" in an ACL stands for all proofs of who made a node.
    settings = replace(server.settings, sasl=OTHER, tls=server.tls(server.other))
    other = await server.open(settings)
    await store.put("/own/key", b"1")
    session = await store.open_session()
    await store.put("/own/mine", b"", expected_version=MUST_NOT_EXIST, session=session)
    with pytest.raises(MetadataError, match="/own/key: this client is not allowed"):
        await other.get("/own/key")
    with pytest.raises(MetadataError, match="/own/key: this client is not allowed"):
        await other.put("/own/key", b"2")
    found = await store.get("/own/key")
    assert found is not None
    assert (found.value, found.version) == (b"1", 0)
    await store.delete_recursive("/own")
    await store.close()
    await other.close()


async def test_the_session_goes_on_with_another_proof_of_the_same_user(
    server: SecureServer,
) -> None:
    store = await server.open(server.settings)
    session = await store.open_session()
    session_id = session.session_id
    await store.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=session)
    connection = store._client._connection
    assert connection is not None
    connection.lose("on purpose")
    found = await store.get("/mine")
    assert found is not None
    assert found.owner == session_id == session.session_id
    assert store.statistics().connections_count == 2
    await store.close()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sasl": replace(BROKER, password="wrong")}, "refused 'broker' by SASL"),
        ({"sasl": None}, "not allowed to do that .SESSION_CLOSED_REQUIRE_SASL_AUTH"),
        ({"tls": None}, "localhost"),
    ],
)
async def test_who_is_not_known_gets_no_session(
    server: SecureServer, changed: dict[str, object], reason: str
) -> None:
    await (await server.open(server.settings)).close()  # it is warm
    settings = replace(server.settings, operation_timeout_seconds=4.0, **changed)  # type: ignore[arg-type]  # any of its fields
    with pytest.raises(MetadataError, match=reason):
        await server.open(settings)


async def test_a_server_that_is_not_trusted_is_told_nothing(server: SecureServer) -> None:
    settings = replace(server.settings, operation_timeout_seconds=4.0)
    assert settings.tls is not None
    tls = replace(settings.tls, tls_trust_certs_file_path=server.broker.certificate_path)
    with pytest.raises(MetadataUnavailableError, match="certificate verify failed"):
        await server.open(replace(settings, tls=tls))
    with pytest.raises(MetadataUnavailableError, match="certificate is not valid for"):
        await server.open(settings, host="127.0.0.1")
    missing = replace(settings.tls, tls_trust_certs_file_path="/missing.pem")
    with pytest.raises(InvalidConfigurationError, match="tls_trust_certs_file_path"):
        await server.open(replace(settings, tls=missing))


async def test_a_digest_names_a_user_without_sasl(zookeeper: ZooKeeperProcess) -> None:
    address = ZooKeeperAddress.parse(f"{zookeeper.url}/digest")
    settings = ZooKeeperSettings(credentials=(("digest", b"broker:secret"),), acls=CREATOR_ALL_ACL)
    store = await ZooKeeperMetadataStore.open(address, SystemClock(), settings=settings)
    other = await ZooKeeperMetadataStore.open(address, SystemClock())
    await store.put("/key", b"1")
    with pytest.raises(MetadataError, match="not allowed"):
        await other.get("/key")
    await store.close()
    await other.close()


def test_an_acl_may_name_several() -> None:
    settings = ZooKeeperSettings(acls=(*CREATOR_ALL_ACL, Acl(1, "sasl", "reader")))
    assert len(settings.acls) == 2
