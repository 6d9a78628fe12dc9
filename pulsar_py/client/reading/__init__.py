"""Readers and table views: read topics without a durable subscription.

In: a position to start at. Out: messages, or the newest value of each key. Both use consumers, and
add nothing to the protocol.

Third-party packages it may import: none.
"""
