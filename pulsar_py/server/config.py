"""`BrokerConfig`: the settings of broker.conf.

Values come from the defaults here, a properties text, environment variables in the manner of
Pulsar's Docker image, and overrides `NAME=VALUE`; each source overrides those before it. Names are
Pulsar's:

- one that has an effect here is a typed field of `BrokerConfig`, declared in the room `settings`;
- one that Pulsar or its bookie knows and this broker does not need is accepted, with a line in the
  log (`ignored_settings`); a broker of a cluster refuses those of Pulsar's clients of ZooKeeper and
  BookKeeper;
- one that Pulsar has renamed counts as the new one, which wins if both are present;
- any other is an error that proposes the most similar names.

Only `broker` and the two `standalone` modules import `BrokerConfig`; they pass plain arguments on,
with units. Resources of `admin` read single settings as `broker.config`.

Source: ServiceConfiguration and PulsarConfigurationLoader in Pulsar; apply-config-from-env.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.ignored_settings import IgnoredSetting, ignored_settings
from pulsar_py.server.properties_text import commented_names, parse_properties, property_lines
from pulsar_py.server.settings.cluster import CLUSTER_CATEGORIES, ClusterSettings
from pulsar_py.server.settings.cluster_security import ClusterSecuritySettings
from pulsar_py.server.settings.hooks import HookSettings
from pulsar_py.server.settings.load import LOAD, LoadSettings
from pulsar_py.server.settings.openid import OpenIdConnectSettings
from pulsar_py.server.settings.proxies import ProxySettings
from pulsar_py.server.settings.rates import RateSettings
from pulsar_py.server.settings.security import SecuritySettings
from pulsar_py.server.settings.server import MetricsSettings, ServerSettings
from pulsar_py.server.settings.storage import BOOKIE, StorageSettings
from pulsar_py.server.settings.topics import BrokerTopicSettings

logger = logging.getLogger(__name__)

ENVIRONMENT_PREFIX: Final = "PULSAR_PREFIX_"
_SECRET_WORDS: Final = ("password", "secret", "parameters", "basicauthconf")
_GIBIBYTE: Final = 1024**3
_EMBEDDED: Final = "Metadata and ledgers are kept by this process: it is no broker of a cluster."
_APART: Final = "Ledgers are on bookies, which have settings of their own."
_LEAST_LIKENESS: Final = 0.7  # the least similarity, from 0 to 1, of a name that is proposed
_PREFERENCE: Final = 0.1  # added to the similarity of names that have an effect


def _gigabytes_to_bytes(text: str) -> str:
    gigabytes = float(text)
    return str(int(gigabytes * _GIBIBYTE)) if gigabytes > 0 else "-1"


def _hertz_to_interval_millis(text: str) -> str:
    hertz = float(text)
    return str(max(1, int(1000 / hertz))) if hertz > 0 else ""


def _same(text: str) -> str:
    return text


RENAMED: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    "backlogQuotaDefaultLimitGB": ("backlogQuotaDefaultLimitBytes", _gigabytes_to_bytes),
    "brokerServicePurgeInactiveFrequencyInSeconds": (
        "brokerDeleteInactiveTopicsFrequencySeconds",
        _same,
    ),
    "configurationStoreServers": ("configurationMetadataStoreUrl", _same),
    "globalZookeeperServers": ("configurationMetadataStoreUrl", _same),
    "loadBalancerBandwithInResourceWeight": ("loadBalancerBandwidthInResourceWeight", _same),
    "loadBalancerBandwithOutResourceWeight": ("loadBalancerBandwidthOutResourceWeight", _same),
    "managedLedgerCacheEvictionFrequency": (
        "managedLedgerCacheEvictionIntervalMs",
        _hertz_to_interval_millis,
    ),
    "managedLedgerMaxUnackedRangesToPersistInZooKeeper": (
        "managedLedgerMaxUnackedRangesToPersistInMetadataStore",
        _same,
    ),
    "replicationTlsEnabled": ("brokerClientTlsEnabled", _same),
    "zooKeeperAllowReadOnlyOperations": ("metadataStoreAllowReadOnlyOperations", _same),
    "zooKeeperCacheExpirySeconds": ("metadataStoreCacheExpirySeconds", _same),
    "zooKeeperOperationTimeoutSeconds": ("metadataStoreOperationTimeoutSeconds", _same),
    "zooKeeperSessionTimeoutMillis": ("metadataStoreSessionTimeoutMillis", _same),
    "zookeeperServers": ("metadataStoreUrl", _same),
}
"""Pulsar's old names: the new one, and how a text of the old becomes one of the new."""

TOKEN_SETTINGS: Final = frozenset(
    {
        "tokenAllowedClockSkewSeconds",
        "tokenRevocationFile",
        "tokenAudience",
        "tokenAudienceClaim",
        "tokenAuthClaim",
        "tokenPublicAlg",
        "tokenPublicKey",
        "tokenSecretKey",
    }
)
"""Settings of tokens, whose names `tokenSettingPrefix` may change."""

UNSET_OLD_VALUES: Final = frozenset({"", "-1"})
"""The value of an old name in Pulsar's own files that means "not set"."""


class BrokerConfig(
    ClusterSettings,
    ClusterSecuritySettings,
    SecuritySettings,
    OpenIdConnectSettings,
    ProxySettings,
    StorageSettings,
    BrokerTopicSettings,
    HookSettings,
    LoadSettings,
    MetricsSettings,
    RateSettings,
    ServerSettings,
):
    """All settings of one broker; immutable, replaced as a whole when a dynamic one changes.

    Each keyword is a setting's name; see `declared()` for defaults, bounds and what they do.
    """

    @classmethod
    def load(
        cls,
        *,
        properties_text: str = "",
        properties_place: str = "",
        environment: Mapping[str, str] | None = None,
        overrides: Iterable[str] = (),
        is_of_cluster: bool = False,
    ) -> Self:
        """The settings that a file, the environment and the command line give together.

        Args:
            properties_text: The contents of a `broker.conf` or `standalone.conf`.
            properties_place: The file's name, for errors.
            environment: Variables; `PULSAR_PREFIX_<name>` always counts, `<name>` alone only for
                names that stand in the properties, commented out or not.
            overrides: `NAME=VALUE` each.
            is_of_cluster: Whether the broker's stores are ZooKeeper and BookKeeper.

        Raises:
            ConfigurationError: A name is unknown, or a value not allowed; the message says which.
        """
        texts = _properties(properties_text, properties_place)
        places = texts.keys() | commented_names(properties_text)
        texts.update(environment_texts(environment or {}, places))
        texts.update(_split_override(override) for override in overrides)
        return cls.from_texts(texts, is_of_cluster=is_of_cluster)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str], *, is_of_cluster: bool = False) -> Self:
        """The settings that names and texts give; logs a notice for those without effect.

        Raises:
            ConfigurationError: A name is unknown, or a value not allowed.
        """
        values: dict[str, Any] = {}  # Any: each text is parsed by its setting
        without_effect = {}
        own = _OwnSettings(texts.get("authenticationProviders", ""))
        for name, text in _without_token_prefix(_renamed(texts)).items():
            if (declaration := cls._declared.get(name)) is not None:
                value = values[name] = declaration.parse(text)
                reason = _no_part_of(declaration.category, is_of_cluster=is_of_cluster)
                if reason and value != declaration.default:
                    without_effect[name] = reason
            elif (ignored := ignored_settings().get(name)) is not None:
                if ignored.is_refused(text, is_of_cluster=is_of_cluster):
                    shown = "…" if is_secret(name) else text
                    raise ConfigurationError(f"{name}={shown}: {ignored.reason}")
                if not ignored.is_default(text):
                    without_effect[name] = ignored.reason
            elif not own.take(name, text):
                raise ConfigurationError(unknown_name_message(name))
        for name, reason in sorted(without_effect.items()):
            logger.info("setting without effect", extra={"setting": name, "reason": reason})
        config = cls(**values)
        config.__dict__["_without_effect"] = without_effect
        config.__dict__["_provider_settings"] = own.given
        config.check_offered()
        return config

    @property
    def without_effect(self) -> Mapping[str, str]:
        """The settings that were given another value than the default, in vain: name and reason."""
        found: Mapping[str, str] = self.__dict__.get("_without_effect", {})
        return found

    @property
    def provider_settings(self) -> Mapping[str, str]:
        """What was given for the settings that users' own providers of authentication declare."""
        found: Mapping[str, str] = self.__dict__.get("_provider_settings", {})
        return found

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:  # Any: each is checked by its setting
        """The settings that names and values give; a value that is a text is read as in a file.

        Raises:
            ConfigurationError: A name is unknown, or a value not allowed.
        """
        typed = {
            name: value
            for name, value in values.items()
            if name in cls._declared and not isinstance(value, str)
        }
        texts = {name: _text_of(value) for name, value in values.items() if name not in typed}
        if "authenticationProviders" in typed:  # they declare names of their own
            texts["authenticationProviders"] = ",".join(typed["authenticationProviders"])
        config = cls.from_texts(texts).replace(**typed)
        config.check_offered()
        return config

    def check_offered(self) -> None:
        """Refuse settings for features that this version lacks.

        Raises:
            ConfigurationError: A setting asks for such a feature; the message names it.
        """
        if self.transactionCoordinatorEnabled:
            raise ConfigurationError(
                "transactionCoordinatorEnabled=true: transactions are not in this version; "
                "leave it out, or set it to false"
            )
        mode = self.openIDFallbackDiscoveryMode
        if mode.upper() not in {"", "DISABLED"}:
            raise ConfigurationError(
                f"openIDFallbackDiscoveryMode={mode}: discovery by Kubernetes is not offered; list "
                "the cluster's issuer in openIDAllowedTokenIssuers, or save its keys (kubectl get "
                "--raw /openid/v1/jwks) and name the file in openIDKeySetFile"
            )

    def with_texts(self, texts: Mapping[str, str]) -> Self:
        """The same settings with some of them changed, as the dynamic configuration has them.

        Names that are unknown or not dynamic, and invalid values, are logged and left out: another
        broker may have stored them, and the rest has to count.
        """
        changes: dict[str, Any] = {}  # Any: each text is parsed by its setting
        for name, text in texts.items():
            try:
                changes.update(self._dynamic_change(name, text))
            except ConfigurationError as error:
                logger.warning("dynamic setting ignored", extra={"error": str(error)})
        return self.replace(**changes)

    def _dynamic_change(self, name: str, text: str) -> Mapping[str, object]:
        declaration = self._declared.get(name)
        if declaration is None:
            if name in ignored_settings():
                return {}
            raise ConfigurationError(unknown_name_message(name))
        if not declaration.is_dynamic:
            raise ConfigurationError(
                f"{name} can't be changed while the broker runs; change it in the file and restart"
            )
        return {name: declaration.parse(text)}

    @classmethod
    def settings_without_effect(cls) -> Mapping[str, IgnoredSetting]:
        """Pulsar's settings that this broker takes and does not need, by name."""
        return ignored_settings()

    @classmethod
    def dynamic_names(cls) -> list[str]:
        """Names of the settings that may be changed while the broker runs, sorted."""
        effective = {name for name, each in cls._declared.items() if each.is_dynamic}
        ignored = {name for name, each in ignored_settings().items() if each.is_dynamic}
        return sorted(effective | ignored)

    @staticmethod
    def is_secret(name: str) -> bool:
        """Whether the value of a setting should not be shown."""
        return is_secret(name)

    def texts(self) -> dict[str, str]:
        """Every setting with an effect as text; `from_texts` reads it back."""
        return {name: each.render(getattr(self, name)) for name, each in self._declared.items()}


class _OwnSettings:
    """Takes the settings that users' own providers declare; imports them at the first need."""

    def __init__(self, provider_names: str) -> None:
        self._names = [name.strip() for name in provider_names.split(",") if name.strip()]
        self._declared: Mapping[str, str] | None = None  # None before the first unknown name
        self.given: dict[str, str] = {}

    def take(self, name: str, text: str) -> bool:
        """Whether a setting is one of the providers' own."""
        if self._declared is None:
            from pulsar_py.server.security.providers import own_settings  # noqa: PLC0415 - at first use

            self._declared = own_settings(self._names)
        if name not in self._declared:
            return False
        self.given[name] = text.strip()
        return True


def _no_part_of(category: str, *, is_of_cluster: bool) -> str:
    """Why settings of a category have no effect in such a broker; empty if they have."""
    if is_of_cluster:
        return _APART if category == BOOKIE else ""
    return _EMBEDDED if category in CLUSTER_CATEGORIES | {LOAD} else ""


def is_secret(name: str) -> bool:
    """Whether the value of a setting should not be shown."""
    lowered = name.lower()
    return any(word in lowered for word in _SECRET_WORDS)


def environment_texts(environment: Mapping[str, str], places: Iterable[str]) -> dict[str, str]:
    """The settings that variables give: with the prefix any, without it those of `places`."""
    texts = {name: environment[name] for name in places if name in environment}
    for variable, text in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX):
            texts[variable.removeprefix(ENVIRONMENT_PREFIX)] = text
    return texts


def unknown_name_message(name: str) -> str:
    """The text of the error for an unknown setting, with the most similar names."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - needed for errors only

    matcher = SequenceMatcher(b=name.lower())
    best_likeness, nearest = 0.0, ""
    for known in (*BrokerConfig.declared(), *RENAMED, *ignored_settings()):
        matcher.set_seq1(known.lower())
        likeness = matcher.ratio()
        if likeness < _LEAST_LIKENESS:
            continue
        likeness += _PREFERENCE if known in BrokerConfig.declared() else 0
        if likeness > best_likeness:
            best_likeness, nearest = likeness, known
    hint = f"; did you mean {nearest}?" if nearest else ""
    return f"unknown setting {name}{hint}"


def _is_known(name: str) -> bool:
    return name in BrokerConfig.declared() or name in RENAMED or name in ignored_settings()


def _properties(text: str, place: str) -> dict[str, str]:
    """The file's settings; a line without a setting is an error with file and line number."""
    prefix = f"{place}: " if place else ""
    try:
        properties = parse_properties(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{prefix}{error}") from None
    prefixed = {token_settings_prefix(properties) + name for name in TOKEN_SETTINGS}
    if all(_is_known(name) or name in prefixed for name in properties):
        return properties
    for line in property_lines(text):
        if not _is_known(line.name) and line.name not in prefixed:
            problem = (
                unknown_name_message(line.name)
                if line.has_separator
                else f"{line.text!r}: expected NAME=VALUE"
            )
            raise ConfigurationError(f"{prefix}line {line.number}: {problem}")
    return properties


def _text_of(value: object) -> str:
    """A value as a file has it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _split_override(override: str) -> tuple[str, str]:
    name, separator, text = override.partition("=")
    if not separator or not name.strip():
        raise ConfigurationError(f"{override!r}: expected NAME=VALUE")
    return name.strip(), text


def token_settings_prefix(texts: Mapping[str, str]) -> str:
    """The prefix of the names of settings of tokens, empty without one."""
    return texts.get("tokenSettingPrefix", "").strip()


def _without_token_prefix(texts: dict[str, str]) -> dict[str, str]:
    """`texts` with the prefixed settings of tokens in place of the plain ones."""
    prefix = token_settings_prefix(texts)
    if not prefix:
        return texts
    plain = {name: text for name, text in texts.items() if name not in TOKEN_SETTINGS}
    for name in TOKEN_SETTINGS:
        if (text := plain.pop(prefix + name, None)) is not None:
            plain[name] = text
    return plain


def _renamed(texts: Mapping[str, str]) -> dict[str, str]:
    """`texts` with old names replaced; old ones whose value means "not set" are left out."""
    result = {name: text for name, text in texts.items() if name not in RENAMED}
    for name in texts.keys() & RENAMED.keys():
        new_name, convert = RENAMED[name]
        text = texts[name].strip()
        if new_name in result or text in UNSET_OLD_VALUES:
            continue
        try:
            result[new_name] = convert(text)
        except ValueError:
            raise ConfigurationError(f"{name}={text}: expected a number") from None
        logger.info("setting has a new name", extra={"setting": name, "new_name": new_name})
    return result
