"""Apache ZooKeeper as the broker's MetadataStore.

`store` keeps the contract of `metadata.store` on a ZooKeeper cluster: `client` has one session over
one connection after the other, `connection` is one TCP connection, `messages` and `jute` are the
bytes. What comes in: a `zk:` address and calls of the contract. What goes out: requests to a
ZooKeeper server, news of watches and of the session.
"""
