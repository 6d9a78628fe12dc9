"""BrokerConfig: names of broker.conf, where values come from, what is refused."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import pulsar_py
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.policies import BacklogQuotaAction, TopicType
from pulsar_py.server.config import (
    RENAMED,
    BrokerConfig,
    environment_texts,
    is_secret,
    unknown_name_message,
)
from pulsar_py.server.ignored_settings import ignored_settings

PACKAGE = Path(pulsar_py.__file__).parent
RECORDINGS = Path(__file__).parents[2] / "recordings"


def test_defaults_are_those_of_a_standalone() -> None:
    config = BrokerConfig()
    assert config.clusterName == "standalone"
    assert (config.brokerServicePort, config.webServicePort) == (6650, 8080)
    assert config.maxMessageSize == 5242880
    assert config.allowAutoTopicCreationType is TopicType.NON_PARTITIONED
    assert config.backlogQuotaDefaultRetentionPolicy is BacklogQuotaAction.PRODUCER_REQUEST_HOLD
    assert config.acknowledgmentAtBatchIndexLevelEnabled
    assert config.subscriptionTypesEnabled == {"Exclusive", "Shared", "Failover", "Key_Shared"}
    assert not config.transactionCoordinatorEnabled


def test_later_sources_go_before_earlier_ones() -> None:
    config = BrokerConfig.load(
        properties_text="maxProducersPerTopic=1\nmaxConsumersPerTopic=1\nmaxTenants=1\n",
        environment={"PULSAR_PREFIX_maxConsumersPerTopic": "2", "maxTenants": "2"},
        overrides=["maxTenants=3"],
    )
    assert config.maxProducersPerTopic == 1
    assert config.maxConsumersPerTopic == 2
    assert config.maxTenants == 3


def test_a_bare_variable_counts_only_for_names_in_the_file() -> None:
    environment = {"maxMessageSize": "7", "maxTenants": "7", "clusterName": "c"}
    config = BrokerConfig.load(
        properties_text="maxMessageSize=1\n#maxTenants=0\n", environment=environment
    )
    assert (config.maxMessageSize, config.maxTenants) == (7, 7)
    assert config.clusterName == "standalone"


def test_a_variable_with_the_prefix_goes_before_a_bare_one() -> None:
    texts = environment_texts({"a": "1", "PULSAR_PREFIX_a": "2", "b": "3"}, ["a"])
    assert texts == {"a": "2"}


def test_other_variables_do_not_matter() -> None:
    assert BrokerConfig.load(environment={"PATH": "/bin", "HOME": "/"}) == BrokerConfig()


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("maxMesageSize", "maxMessageSize"),
        ("MAXMESSAGESIZE", "maxMessageSize"),
        ("brokerPort", "brokerServicePort"),
        ("managedLedgerMaxUnackedRangesToPersistInZookeper", "managedLedgerMaxUnackedRangesToPersistIn"),
        ("numIoThread", "numIOThreads"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_an_error_that_proposes_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"^unknown setting {name}; did you mean {nearest}"
    ):
        BrokerConfig.load(overrides=[f"{name}=1"])
    with pytest.raises(ConfigurationError, match=f"unknown setting {name}"):
        BrokerConfig.load(properties_text=f"{name}=1")
    with pytest.raises(ConfigurationError, match=f"unknown setting {name}"):
        BrokerConfig.load(environment={f"PULSAR_PREFIX_{name}": "1"})


@pytest.mark.parametrize("name", ["qqqqqqq", "noSuchSetting", "hello", "compression"])
def test_a_name_like_no_other_has_no_proposal(name: str) -> None:
    assert unknown_name_message(name) == f"unknown setting {name}"


@pytest.mark.parametrize("override", ["", "=1", "maxTenants", " =2"])
def test_an_override_is_a_name_and_a_value(override: str) -> None:
    with pytest.raises(ConfigurationError, match="expected NAME=VALUE"):
        BrokerConfig.load(overrides=[override])


def test_a_wrong_value_names_setting_value_and_bounds() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^keepAliveIntervalSeconds=0: must be at least 1$"
    ):
        BrokerConfig.load(overrides=["keepAliveIntervalSeconds=0"])


@pytest.mark.parametrize(
    ("old", "text", "new", "value"),
    [
        (
            "managedLedgerMaxUnackedRangesToPersistInZooKeeper", "7",
            "managedLedgerMaxUnackedRangesToPersistInMetadataStore", 7,
        ),
        ("backlogQuotaDefaultLimitGB", "10", "backlogQuotaDefaultLimitBytes", 10 * 1024**3),
        ("backlogQuotaDefaultLimitGB", "0.5", "backlogQuotaDefaultLimitBytes", 1024**3 // 2),
        ("backlogQuotaDefaultLimitGB", "-1", "backlogQuotaDefaultLimitBytes", -1),
        ("managedLedgerCacheEvictionFrequency", "100.0", "managedLedgerCacheEvictionIntervalMs", 10),
        (
            "brokerServicePurgeInactiveFrequencyInSeconds", "5",
            "brokerDeleteInactiveTopicsFrequencySeconds", 5,
        ),
    ],
)  # fmt: skip
def test_an_old_name_is_taken_as_the_new_one(
    old: str, text: str, new: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert getattr(BrokerConfig.load(overrides=[f"{old}={text}"]), new) == value


def test_the_new_name_goes_before_the_old_one() -> None:
    new = "managedLedgerMaxUnackedRangesToPersistInMetadataStore"
    old = "managedLedgerMaxUnackedRangesToPersistInZooKeeper"
    config = BrokerConfig.load(properties_text=f"{new}=3\n{old}=7")
    assert config.managedLedgerMaxUnackedRangesToPersistInMetadataStore == 3


def test_an_old_name_that_is_meant_to_be_unset_does_not_count() -> None:
    assert BrokerConfig.load(properties_text="zooKeeperSessionTimeoutMillis=-1") == BrokerConfig()
    assert BrokerConfig.load(properties_text="zookeeperServers=") == BrokerConfig()


def test_an_old_name_with_a_wrong_value_is_named() -> None:
    with pytest.raises(ConfigurationError, match="backlogQuotaDefaultLimitGB=x: expected a number"):
        BrokerConfig.load(overrides=["backlogQuotaDefaultLimitGB=x"])


def test_every_old_name_has_a_new_one_that_exists() -> None:
    known = {*BrokerConfig.declared(), *BrokerConfig.settings_without_effect()}
    assert {new for new, _ in RENAMED.values()} <= known
    assert not RENAMED.keys() & known


def test_a_setting_without_effect_is_taken_with_a_notice(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert BrokerConfig.load(overrides=["numIOThreads=32"]) == BrokerConfig()
    record = next(each for each in caplog.records if each.message == "setting without effect")
    assert record.__dict__["setting"] == "numIOThreads"
    assert record.__dict__["reason"]


@pytest.mark.parametrize("override", ["numAcceptorThreads=1", "numIOThreads="])
def test_a_default_or_blank_one_needs_no_notice(
    override: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    BrokerConfig.load(overrides=[override])
    assert not caplog.records


@pytest.mark.parametrize(
    "override",
    ["tlsEnabled=TRUE", "strictAuthMethod=true", "saslJaasBrokerSectionName=b"],
)
def test_protection_that_is_not_there_is_refused(override: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{override}: "):
        BrokerConfig.load(overrides=[override])


def test_transactions_that_are_not_there_are_refused() -> None:
    words = "^transactionCoordinatorEnabled=true: transactions are not in this version; "
    with pytest.raises(ConfigurationError, match=words):
        BrokerConfig.load(overrides=["transactionCoordinatorEnabled=true"])
    with pytest.raises(ConfigurationError, match=words):
        BrokerConfig.from_values({"transactionCoordinatorEnabled": True})
    BrokerConfig.load(overrides=["transactionCoordinatorEnabled=false"])


def test_kubernetes_is_refused_whichever_providers_there_are() -> None:
    words = "^openIDFallbackDiscoveryMode=KUBERNETES_DISCOVER_PUBLIC_KEYS: .*openIDKeySetFile"
    with pytest.raises(ConfigurationError, match=words):
        BrokerConfig.load(overrides=["openIDFallbackDiscoveryMode=KUBERNETES_DISCOVER_PUBLIC_KEYS"])


def test_values_follow_the_rules_of_texts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    config = BrokerConfig.from_values(
        {
            "maxTenants": 3,
            "maxMessageSize": "7",
            "allowAutoTopicCreation": "false",
            "allowAutoTopicCreationType": TopicType.PARTITIONED,
            "brokerServicePort": None,
            "numIOThreads": 32,
            "backlogQuotaDefaultLimitGB": 1,
            "authenticationEnabled": False,
        }
    )
    assert config == BrokerConfig(
        maxTenants=3,
        maxMessageSize=7,
        allowAutoTopicCreation=False,
        allowAutoTopicCreationType=TopicType.PARTITIONED,
        brokerServicePort=None,
        backlogQuotaDefaultLimitBytes=1024**3,
    )
    noticed = [each for each in caplog.records if each.message == "setting without effect"]
    assert [each.__dict__["setting"] for each in noticed] == ["numIOThreads"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kinitCommand": "a"}, "^kinitCommand=a: SASL and Kerberos are not offered"),
        ({"maxMesageSize": 1}, "unknown setting maxMesageSize; did you mean maxMessageSize"),
        ({"maxTenants": True}, "maxTenants=True: expected a whole number"),
        ({"maxTenants": "many"}, "maxTenants=many: expected a whole number"),
    ],
)
def test_values_are_refused_as_texts_are(values: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        BrokerConfig.from_values(values)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("hello my friend", "'hello my friend': expected NAME=VALUE"),
        ("maxMesageSize=1", r"unknown setting maxMesageSize; did you mean maxMessageSize\?"),
        (r"maxTenants=\u12", ".*four hexadecimal digits"),
    ],
)
def test_a_wrong_line_is_named_with_file_and_number(line: str, words: str) -> None:
    text = f"# comment\nmaxTenants=1,\\\n2\n  {line}\n"
    with pytest.raises(ConfigurationError, match=f"^b.conf: line 4: {words}"):
        BrokerConfig.load(properties_text=text, properties_place="b.conf")


def test_no_protection_may_be_asked_for() -> None:
    BrokerConfig.load(properties_text="authenticationEnabled=false\nbrokerServicePortTls=\n")


def test_no_setting_is_both_with_and_without_effect() -> None:
    assert not BrokerConfig.declared().keys() & BrokerConfig.settings_without_effect().keys()


def test_texts_are_read_back() -> None:
    config = BrokerConfig(
        maxTenants=3, brokerServicePort=None, subscriptionTypesEnabled=frozenset()
    )
    assert BrokerConfig.from_texts(config.texts()) == config
    assert len(config.texts()) == len(BrokerConfig.declared())


def test_a_dynamic_change_makes_a_new_config() -> None:
    config = BrokerConfig(clusterName="c")
    changed = config.with_texts({"maxTenants": "3", "preferLaterVersions": "true"})
    assert (changed.clusterName, changed.maxTenants, config.maxTenants) == ("c", 3, 0)


@pytest.mark.parametrize(
    "texts", [{"clusterName": "other"}, {"nonsense": "1"}, {"maxTenants": "many"}]
)
def test_a_change_that_can_not_be_made_is_logged_and_the_rest_counts(
    texts: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    changed = BrokerConfig().with_texts({**texts, "maxTopicsPerNamespace": "5"})
    assert changed == BrokerConfig(maxTopicsPerNamespace=5)
    assert "dynamic setting ignored" in caplog.text


def test_dynamic_names_are_pulsars() -> None:
    names = BrokerConfig.dynamic_names()
    assert names == sorted(names)
    assert {"maxTenants", "loadBalancerSheddingEnabled", "managedLedgerCacheSizeMB"} <= {*names}
    assert "clusterName" not in names


def test_secrets_are_known() -> None:
    assert is_secret("tlsKeyStorePassword")
    assert is_secret("brokerClientAuthenticationParameters")
    assert not is_secret("keySharedUnblockingIntervalMs")


def test_every_setting_with_an_effect_has_a_reader() -> None:
    """Only the broker, what starts it, and the administration read a BrokerConfig."""
    readers = [
        PACKAGE / "server" / "authentication_parts.py",
        PACKAGE / "server" / "broker.py",
        PACKAGE / "server" / "broker_settings.py",
        PACKAGE / "server" / "cluster_load.py",
        PACKAGE / "server" / "security_parts.py",
        PACKAGE / "standalone.py",
        PACKAGE / "web.py",
        PACKAGE / "cli" / "standalone.py",
        PACKAGE / "cli" / "broker.py",
        *(PACKAGE / "admin").rglob("*.py"),
    ]
    source = "".join(reader.read_text(encoding="utf-8") for reader in readers)
    read = set(re.findall(r"config\.(\w+)", source))
    read.add("tokenSettingPrefix")  # says how others are read, and is used up by that
    read.add("openIDFallbackDiscoveryMode")  # refused by the settings themselves
    assert [name for name in BrokerConfig.declared() if name not in read] == []


def test_every_declaration_says_what_it_does() -> None:
    for declaration in BrokerConfig.declared().values():
        assert declaration.doc.endswith("."), declaration.name
        assert declaration.category, declaration.name
        assert declaration.check(declaration.default) == declaration.default


def test_defaults_cost_nothing() -> None:
    assert vars(BrokerConfig()) == {}


# --- files of Apache Pulsar -------------------------------------------------------------------

FURTHER: dict[str, str] = {
    "allowLoopback": "true",
    "diskUsageWarnThreshold": "0.99",
    "gcWaitTime": "300000",
    "athenzDomainNames": "",
    "bookkeeperClientMinAvailableBookiesInIsolationGroups": "",
    "bookkeeper_tlsHostnameVerificationEnabled": "false",
    "fileSystemProfilePath": "conf/filesystem_offload_core_site.xml",
    "fileSystemURI": "",
    "gcsManagedLedgerOffloadBucket": "",
    "gcsManagedLedgerOffloadMaxBlockSizeInBytes": "67108864",
    "gcsManagedLedgerOffloadReadBufferSizeInBytes": "1048576",
    "gcsManagedLedgerOffloadRegion": "",
    "gcsManagedLedgerOffloadServiceAccountKeyFile": "",
    "managedLedgerOffloadBucket": "",
    "managedLedgerOffloadMaxBlockSizeInBytes": "",
    "managedLedgerOffloadReadBufferSizeInBytes": "",
    "managedLedgerOffloadRegion": "",
    "managedLedgerOffloadServiceEndpoint": "",
    "maxMessageSizeCheckIntervalInSeconds": "60",
    "preciseTopicPublishRateLimiterEnable": "false",
    "s3ManagedLedgerOffloadBucket": "",
    "s3ManagedLedgerOffloadCredentialId": "",
    "s3ManagedLedgerOffloadCredentialSecret": "",
    "s3ManagedLedgerOffloadMaxBlockSizeInBytes": "67108864",
    "s3ManagedLedgerOffloadReadBufferSizeInBytes": "1048576",
    "s3ManagedLedgerOffloadRegion": "",
    "s3ManagedLedgerOffloadRole": "",
    "s3ManagedLedgerOffloadRoleSessionName": "pulsar-s3-offload",
    "s3ManagedLedgerOffloadServiceEndpoint": "",
    "tokenSecretKey": "",
    "tokenPublicKey": "",
    "tokenPublicAlg": "",
    "tokenAuthClaim": "",
    "tokenAudienceClaim": "",
    "tokenAudience": "",
    "basicAuthConf": "",
    "openIDAllowedTokenIssuers": "",
    "openIDAllowedAudiences": "",
    "openIDTokenIssuerTrustCertsFilePath": "",
    "openIDRoleClaim": "sub",
    "openIDAcceptedTimeLeewaySeconds": "0",
    "openIDCacheSize": "5",
    "openIDCacheRefreshAfterWriteSeconds": "64800",
    "openIDCacheExpirationSeconds": "86400",
    "openIDHttpConnectionTimeoutMillis": "10000",
    "openIDHttpReadTimeoutMillis": "10000",
    "openIDKeyIdCacheMissRefreshSeconds": "300",
    "openIDRequireIssuersUseHttps": "true",
    "openIDFallbackDiscoveryMode": "DISABLED",
}
"""What Apache Pulsar's files have that its class has no field for, with their values there: those
of the bookie, those that drivers of offloading, and those that providers of authentication read."""


STANDALONE: dict[str, str] = {
    "bindAddress": "0.0.0.0",
    "clusterName": "standalone",
    "statusFilePath": "/usr/local/apache/htdocs",
    "topicPublisherThrottlingTickTimeMillis": "2",
    "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.NoopLoadManager",
    "loadBalancerEnabled": "false",
    "loadBalancerMemoryResourceWeight": "1.0",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "managedLedgerNumSchedulerThreads": "4",
    "managedLedgerMinimumBacklogEntriesForCaching": "100",
    "managedLedgerMaxBacklogBetweenCursorsForCaching": "10000",
    "bookkeeperClientMinNumRacksPerWriteQuorum": "1",
    "numWorkerThreadsForNonPersistentTopic": "8",
    "webSocketNumIoThreads": "8",
    "webSocketConnectionsPerBroker": "8",
    "backlogQuotaDefaultLimitGB": "10",
    "ledgerStorageClass": "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "managedLedgerDefaultMarkDeleteRateLimit": "0.1",
    "managedLedgerCacheEvictionFrequency": "100.0",
    "tlsKeyStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "athenzDomainNames": "",
    "maxMessageSizeCheckIntervalInSeconds": "60",
    "nettyMaxFrameSizeBytes": "5253120",
    "flushInterval": "60000",
    "dbStorage_writeCacheMaxSizeMb": "",
    "dbStorage_readAheadCacheBatchSize": "1000",
    "dbStorage_rocksDB_numLevels": "-1",
    "journalMaxGroupWaitMSec": "1",
    "journalSyncData": "false",
    "diskUsageThreshold": "0.99",
}
"""Values of the public standalone.conf that its class has not, those of the bookie among them."""


def reference_settings() -> dict[str, str]:
    """Every setting of Apache Pulsar 4.2.4 and its default."""
    lines = (RECORDINGS / "service_configuration.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {name: default for name, _, default in rows}


@pytest.mark.parametrize("is_of_cluster", [False, True])
def test_every_setting_of_apache_pulsar_is_known_with_its_default(*, is_of_cluster: bool) -> None:
    settings = reference_settings() | FURTHER
    assert len(settings) > 610
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    config = BrokerConfig.load(
        properties_text=text, properties_place="broker.conf", is_of_cluster=is_of_cluster
    )
    ignored = ignored_settings()
    # Its own default is never reported as having no effect.
    given = {name for name in config.without_effect if name in ignored}
    assert given - FURTHER.keys() == set()


@pytest.mark.parametrize("name", STANDALONE)
def test_values_of_the_public_standalone_conf_are_taken(name: str) -> None:
    BrokerConfig.load(
        properties_text=f"{name}={STANDALONE[name]}\n", properties_place="standalone.conf"
    )


def test_protection_is_never_dropped_silently() -> None:
    """Of the settings whose names speak of protection, each has its effect or is refused."""
    words = re.compile(
        r"tls|ssl|auth|token|sasl|openid|kinit|encrypt|keystore|truststore", re.IGNORECASE
    )
    ignored = ignored_settings()
    silent = {
        name
        for name in reference_settings()
        if words.search(name)
        and name in ignored
        and not (ignored[name].is_protection or ignored[name].is_of_cluster)
    }
    assert silent == set()


def test_secrets_stand_neither_in_errors_nor_in_texts_for_people() -> None:
    given = BrokerConfig.from_texts({"tlsKeyStorePassword": "s3cr3t", "clusterName": "c"})
    assert repr(given) == "BrokerConfig(clusterName='c', tlsKeyStorePassword=…)"
    refused = {"brokerClientTlsKeyStorePassword": "s3cr3t"}
    with pytest.raises(ConfigurationError, match="brokerClientTlsKeyStorePassword=…: ") as raised:
        BrokerConfig.from_texts(refused)
    assert "s3cr3t" not in str(raised.value)
