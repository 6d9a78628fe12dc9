"""The broker: listeners, connections, topics, subscriptions, dispatch.

Third-party packages it may import: protobuf, msgspec, pyroaring, sortedcontainers,
google-re2, cryptography.
"""
