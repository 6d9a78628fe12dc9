"""Topics: loaded ones, persistent or not, and the registry of those that a broker could load.

In: names of topics from connections and REST, each asked of the `TopicRegistry`. Out: a loaded
`Topic`, which joins producers (`publishing`), subscriptions and a managed ledger. Partitioned
topics, topic lists and their watchers are here, too.
"""
