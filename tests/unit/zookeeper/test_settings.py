from __future__ import annotations

from pulsar_py.zookeeper.digest_md5 import DigestMd5Credentials
from pulsar_py.zookeeper.messages import OPEN_ACL
from pulsar_py.zookeeper.settings import ZooKeeperSettings


def test_nothing_is_proven_and_everybody_allowed_unless_it_is_set() -> None:
    settings = ZooKeeperSettings()
    assert (settings.tls, settings.sasl, settings.credentials) == (None, None, ())
    assert settings.acls == OPEN_ACL
    assert settings.max_request_bytes == 1024 * 1024 - 1


def test_changes_go_together_as_those_of_apache_pulsar_do() -> None:
    settings = ZooKeeperSettings()
    assert (settings.max_batch_count, settings.max_batch_bytes) == (1000, 128 * 1024)


def test_secrets_are_not_shown() -> None:
    settings = ZooKeeperSettings(
        sasl=DigestMd5Credentials(username="u", password="secret"),
        credentials=(("digest", b"u:secret"),),
    )
    assert "secret" not in repr(settings)
