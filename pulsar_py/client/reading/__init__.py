"""Readers and table views: topics read without a subscription that is kept.

In: a position to begin at. Out: messages, or the newest value of each key. Both are consumers with
other options, and add nothing to the wire.

Third-party packages it may import: none.
"""
