"""Older names of groups of pulsar-admin: commands of `topics` and `tenants` (declarations).

Source: CmdPersistentTopics and CmdNonPersistentTopics in Pulsar's client tools.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pulsar_py.admin_client import topics
from pulsar_py.cli.admin.tenants import TENANTS
from pulsar_py.cli.admin.topics import TOPICS
from pulsar_py.cli.admin.words import NAMESPACE, Group, Word, group

_OF_TOPICS: Final = (
    "permissions grant-permission revoke-permission lookup bundle-range delete unload truncate "
    "subscriptions unsubscribe create-subscription stats stats-internal info-internal "
    "partitioned-stats partitioned-stats-internal skip expire-messages "
    "expire-messages-all-subscriptions create-partitioned-topic update-partitioned-topic "
    "get-partitioned-topic-metadata delete-partitioned-topic peek-messages get-message-by-id "
    "last-message-id reset-cursor terminate compact compaction-status"
)
_OF_BOTH: Final = (
    "create-partitioned-topic lookup stats stats-internal get-partitioned-topic-metadata"
)

# fmt: off
PERSISTENT: Final[Group] = group(
    Word("list", "List the persistent topics of a namespace", NAMESPACE, "",
         lambda a: topics.topics(a.namespace)),
    Word("list-partitioned-topics", "List the persistent partitioned topics of a namespace",
         NAMESPACE, "", lambda a: topics.partitioned_topics(a.namespace)),
    replace(TOPICS["clear-backlog"], name="skip-all"),
    *(TOPICS[name] for name in _OF_TOPICS.split()),
)

NON_PERSISTENT: Final[Group] = group(
    Word("list", "List the non-persistent topics of a namespace", NAMESPACE, "",
         lambda a: topics.topics(a.namespace, domain="non-persistent")),
    Word("list-in-bundle", "List the non-persistent topics of a bundle", NAMESPACE, "-b/--bundle!",
         lambda a: topics.topics(a.namespace, domain="non-persistent", bundle=a.bundle)),
    *(TOPICS[name] for name in _OF_BOTH.split()),
)
# fmt: on

DESTINATIONS: Final[Group] = PERSISTENT
PROPERTIES: Final[Group] = TENANTS
