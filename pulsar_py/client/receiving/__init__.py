"""Turns MESSAGE commands into messages: queue, permits, decoding, chunks, schemas.

In: entries as the broker sent them. Out: `Message`s in order, FLOW commands for more, and entries
that can't be decoded to `acknowledging`. It knows nothing of subscriptions, seeks or interceptors.

Third-party packages it may import: protobuf.
"""
