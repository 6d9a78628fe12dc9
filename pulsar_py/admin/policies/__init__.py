"""The REST API of policies: of namespaces and topics, one by one.

In: requests for one policy. Out: its JSON, read from and written to the metadata store; the broker
learns of changes by watching it. `namespace_policy_table` and `topic_policy_table` name all of
them, the modules with `values` in their name read bodies.
"""
