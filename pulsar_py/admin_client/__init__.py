"""Typed calls of the administration, for pipelines, the command line and tests.

    with AdminClient("http://localhost:8080") as admin:
        for topic in admin.topics("public/default"):
            print(topic, admin.stats(topic).backlog_bytes)

Third-party packages it may import: none.
"""

from pulsar_py.admin_client.client import AdminClient
from pulsar_py.admin_client.requests import AdminError, AdminSettings
from pulsar_py.admin_client.stats import InternalStats, SubscriptionStats, TopicStats

__all__ = [
    "AdminClient",
    "AdminError",
    "AdminSettings",
    "InternalStats",
    "SubscriptionStats",
    "TopicStats",
]
