"""The broker: listeners, connections, topics, subscriptions, dispatch.

In: sockets of clients, the two stores, and a `BrokerConfig`. Out: frames to clients, entries to
managed ledgers, keys to the metadata store. The modules here put the rooms together: `broker`
builds and ends them all, `broker_settings` hands them their settings, which the room `settings`
declares.

Third-party packages it may import: protobuf, msgspec, pyroaring, sortedcontainers,
google-re2, cryptography.
"""
