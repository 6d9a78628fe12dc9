"""Parses and validates names of topics and namespaces (values).

A topic's full name is `<domain>://<tenant>/<namespace>/<local name>`; `local` alone stands for
`persistent://public/default/local`, and `tenant/namespace/local` is persistent. Partition `i` of a
partitioned topic is a topic of its own whose local name ends in `-partition-<i>`. Both classes are
immutable values: equal and hashed by their full text.

What always holds: `TopicName.parse(str(name)) == name`, and `name.partition(i).base == name`.

Source: TopicName, NamespaceName and NamedEntity in Pulsar's common module, as Pulsar 4.2 behaves:
names with a cluster part (V1) are refused, white space at the end is not.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_plus, unquote_plus

from pulsar_py.common.errors import InvalidNamespaceNameError, InvalidTopicNameError

PERSISTENT: Final = "persistent"
NON_PERSISTENT: Final = "non-persistent"
DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)
PARTITION_SUFFIX: Final = "-partition-"

CHANGE_EVENTS: Final = "__change_events"
"""The local name of the topic that has the events of a namespace's policies."""

COMPACTION_SUBSCRIPTION: Final = "__compaction"
"""The subscription that stands for what a topic's compaction kept."""

_ENTITY = re.compile(r"(?!\.\.?\Z)[-=:.\w]+", re.ASCII)
_NO_PARTS = frozenset({".", ".."})
_MAX_PARTITION = 2**31 - 1

_SYSTEM_LOCAL_NAMES = frozenset(
    {
        CHANGE_EVENTS,
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_segments",
        "__transaction_buffer_snapshot_indexes",
    }
)
_SYSTEM_NAMESPACE = "pulsar/system"
_SYSTEM_NAMESPACE_LOCAL_NAMES = frozenset(
    {"transaction_coordinator_assign", "resource-usage", "healthcheck"}
)
_TRANSACTION_LOG_PREFIX = "__transaction_log_"
_PENDING_ACK_SUFFIX = "__transaction_pending_ack"


def url_form_encode(text: str) -> str:
    """`text` as HTML forms encode it, in UTF-8: a space becomes `+`, `*` stays, `~` does not.

    This is how local names and subscription names stand in metadata paths.

    Source: java.net.URLEncoder, through Pulsar's Codec.
    """
    return quote_plus(text, safe="*").replace("~", "%7E")


def url_form_decode(text: str) -> str:
    """The text that was encoded; the reverse of `url_form_encode`."""
    return unquote_plus(text)


def is_valid_entity(text: str) -> bool:
    """Whether `text` may be the name of a tenant, namespace or cluster.

    `.` and `..`, which Apache Pulsar takes and its metadata store refuses, are none.
    """
    return _ENTITY.fullmatch(text) is not None


class NamespaceName:
    """`tenant/namespace`."""

    __slots__ = ("_text", "local_name", "tenant")

    tenant: str
    local_name: str

    def __init__(self, tenant: str, local_name: str) -> None:
        """Take both parts.

        Raises:
            InvalidNamespaceNameError: A part is empty, or holds other than letters, digits and
                `_ - = : .`.
        """
        for part in (tenant, local_name):
            if not is_valid_entity(part):
                raise InvalidNamespaceNameError(
                    f"invalid namespace {tenant}/{local_name}: {part!r} is not a valid name"
                )
        self.tenant = tenant
        self.local_name = local_name
        self._text = f"{tenant}/{local_name}"

    @classmethod
    def parse(cls, text: str) -> NamespaceName:
        """Read `tenant/namespace`.

        Raises:
            InvalidNamespaceNameError: There are not two parts, or one is not valid.
        """
        parts = text.split("/", 2)
        if len(parts) != 2:  # noqa: PLR2004 - tenant and namespace
            raise InvalidNamespaceNameError(
                f"invalid namespace {text!r}: expected <tenant>/<namespace>"
            )
        return cls(parts[0], parts[1])

    def topic(self, local_name: str, *, domain: str = PERSISTENT) -> TopicName:
        """The topic of that local name in this namespace."""
        return TopicName(domain, self, local_name)

    @property
    def is_system(self) -> bool:
        """Whether this is the namespace of the brokers' own topics."""
        return self._text == _SYSTEM_NAMESPACE

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"NamespaceName({self._text!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NamespaceName):
            return self._text == other._text
        return NotImplemented

    def __lt__(self, other: NamespaceName) -> bool:
        return self._text < other._text

    def __hash__(self) -> int:
        return hash(self._text)


class TopicName:
    """One topic's name, that of a partition included."""

    __slots__ = ("_text", "domain", "local_name", "namespace_name", "partition_index")

    domain: str
    """`persistent` or `non-persistent`."""
    namespace_name: NamespaceName
    local_name: str
    """The last part, `-partition-<i>` included."""
    partition_index: int
    """The index of the partition; -1 for a topic that is not a partition."""

    def __init__(self, domain: str, namespace_name: NamespaceName, local_name: str) -> None:
        """Take the parts.

        Raises:
            InvalidTopicNameError: The domain is unknown, or the local name blank, `.`, `..` or with
                a `/`.
        """
        text = f"{domain}://{namespace_name}/{local_name}"
        if domain not in DOMAINS:
            raise InvalidTopicNameError(
                f"invalid topic name {text!r}: unknown domain {domain!r}, "
                f"expected {PERSISTENT} or {NON_PERSISTENT}"
            )
        if not local_name or local_name.isspace():
            raise InvalidTopicNameError(f"invalid topic name {text!r}: the local name is blank")
        if local_name in _NO_PARTS:
            raise InvalidTopicNameError(f"invalid topic name {text!r}: . and .. are no names")
        if "/" in local_name:
            raise InvalidTopicNameError(
                f"invalid topic name {text!r}: names with a cluster part (V1) are not supported, "
                f"expected <domain>://<tenant>/<namespace>/<topic>"
            )
        self.domain = domain
        self.namespace_name = namespace_name
        self.local_name = local_name
        self.partition_index = _partition_index(local_name)
        self._text = text

    @classmethod
    def parse(cls, text: str) -> TopicName:
        """Read a full or a short name.

        Raises:
            InvalidTopicNameError: The text is not a topic name; the message says why.
        """
        domain, separator, rest = text.partition("://")
        if not separator:
            domain, rest = PERSISTENT, _expand_short(text)
        parts = rest.split("/", 2)
        if len(parts) != 3:  # noqa: PLR2004 - tenant, namespace, local name
            raise InvalidTopicNameError(
                f"invalid topic name {text!r}: expected <domain>://<tenant>/<namespace>/<topic>"
            )
        try:
            namespace_name = NamespaceName(parts[0], parts[1])
        except InvalidNamespaceNameError as error:
            raise InvalidTopicNameError(f"invalid topic name {text!r}: {error}") from None
        return cls(domain, namespace_name, parts[2])

    @classmethod
    def from_managed_ledger_name(cls, name: str) -> TopicName:
        """The topic whose entries are in that managed ledger.

        Raises:
            InvalidTopicNameError: No topic's managed ledger has such a name.
        """
        parts = name.split("/")
        if len(parts) != 4:  # noqa: PLR2004 - tenant, namespace, domain, local name
            raise InvalidTopicNameError(f"{name!r} is not the managed ledger of a topic")
        tenant, namespace, domain, local_name = parts
        return cls.parse(f"{domain}://{tenant}/{namespace}/{url_form_decode(local_name)}")

    @property
    def tenant(self) -> str:
        """The first part of the namespace."""
        return self.namespace_name.tenant

    @property
    def is_persistent(self) -> bool:
        """Whether messages are stored."""
        return self.domain == PERSISTENT

    @property
    def is_partition(self) -> bool:
        """Whether the name is that of one partition."""
        return self.partition_index >= 0

    @property
    def base(self) -> TopicName:
        """The partitioned topic that this is a partition of; itself if it is not a partition."""
        if self.partition_index < 0:
            return self
        local_name = self.local_name[: self.local_name.rindex(PARTITION_SUFFIX)]
        return TopicName(self.domain, self.namespace_name, local_name)

    def partition(self, index: int) -> TopicName:
        """Partition `index` (from 0) of this topic, which must not be a partition itself."""
        assert index >= 0, f"{self}: partition {index}"
        assert self.partition_index < 0, f"{self} is a partition already"
        return TopicName(
            self.domain, self.namespace_name, f"{self.local_name}{PARTITION_SUFFIX}{index}"
        )

    @property
    def encoded_local_name(self) -> str:
        """The local name as it stands in metadata paths."""
        return url_form_encode(self.local_name)

    @property
    def managed_ledger_name(self) -> str:
        """`tenant/namespace/domain/<encoded local name>`."""
        return f"{self.namespace_name}/{self.domain}/{url_form_encode(self.local_name)}"

    @property
    def schema_id(self) -> str:
        """`tenant/namespace/<base local name>`: partitions and both domains share their schema."""
        return f"{self.namespace_name}/{self.base.local_name}"

    @property
    def is_system(self) -> bool:
        """Whether the brokers keep their own state in it; left out of lists of topics.

        Source: SystemTopicNames in Pulsar's broker.
        """
        local_name = self.base.local_name
        if self.namespace_name.is_system and (
            local_name in _SYSTEM_NAMESPACE_LOCAL_NAMES
            or local_name.startswith(_TRANSACTION_LOG_PREFIX)
        ):
            return True
        return local_name in _SYSTEM_LOCAL_NAMES or local_name.endswith(_PENDING_ACK_SUFFIX)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"TopicName({self._text!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TopicName):
            return self._text == other._text
        return NotImplemented

    def __lt__(self, other: TopicName) -> bool:
        return self._text < other._text

    def __hash__(self) -> int:
        return hash(self._text)


def _expand_short(text: str) -> str:
    parts = text.split("/", 3)
    if len(parts) == 1:
        return f"public/default/{text}"
    if len(parts) == 3:  # noqa: PLR2004 - tenant, namespace, local name
        return text
    raise InvalidTopicNameError(
        f"invalid short topic name {text!r}: expected <topic> or <tenant>/<namespace>/<topic>"
    )


def _partition_index(local_name: str) -> int:
    base, separator, digits = local_name.rpartition(PARTITION_SUFFIX)
    if not separator or not base or base.isspace():
        return -1
    if not (digits.isascii() and digits.isdigit()) or (digits[0] == "0" and digits != "0"):
        return -1
    index = int(digits) if len(digits) <= 10 else _MAX_PARTITION + 1  # noqa: PLR2004 - of 2**31
    return index if index <= _MAX_PARTITION else -1
