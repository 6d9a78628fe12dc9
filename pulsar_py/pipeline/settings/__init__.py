"""Settings that users give pipelines: cluster, topics, columns, times, sizes, secrets.

In: texts of options, and arguments of the pipelines' functions. Out: frozen settings, options of
the connector, or a `ConfigurationError` that names the text. All of it is pure.

Third-party packages it may import: none.
"""

from pulsar_py.pipeline.settings.columns import PartitionColumn
from pulsar_py.pipeline.settings.topics import Cluster, Guarantee, TopicRange, TopicTarget

__all__ = ["Cluster", "Guarantee", "PartitionColumn", "TopicRange", "TopicTarget"]
