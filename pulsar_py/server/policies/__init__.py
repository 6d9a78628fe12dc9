"""What a topic is tuned with: settings of brokers, namespaces and topics made one.

In: broker configuration as plain values, policies of namespaces and topics as `metadata` stores
them. Out: `TopicSettings`, one immutable value a topic, and whether a topic may be created by
being asked for. All of it is pure; the registry in `topics` reads policies and hands values on.
"""
