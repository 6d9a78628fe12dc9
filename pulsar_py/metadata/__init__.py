"""The metadata store: versioned keys with watches and sessions, and the typed objects kept in them.

In: paths, values and the versions that they replace. Out: values with versions, events of watches
and of sessions. Above the keys, `resources` has tenants, namespaces, policies and clusters as
objects; `store` is the interface, kept by SQLite and memory here and by `zookeeper`.

Third-party packages it may import: msgspec.
"""
