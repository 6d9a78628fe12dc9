"""A client of Pulsar's REST API with typed calls, for pipelines, the command line and tests.

In: `AdminSettings` (URL, credentials, trust), names of topics and namespaces. Out: values such as
`TopicStats`, and errors of `common.errors`. It stands on `common` alone.

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
