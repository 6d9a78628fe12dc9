"""Topic policies as Apache Pulsar keeps them: events in `__change_events` of each namespace.

In: changes of topics' policies from REST, news of loaded and deleted topics from the
`TopicRegistry`, and what others append to the topic. Out: durable events, and after them the copies
in the metadata store, by which topics are served. `TopicPoliciesService` has a `NamespaceEvents`
for each namespace.
"""
