"""Producers: from the application's value to SEND, and from SEND_RECEIPT to the message id.

In: values, keys and properties by `Producer.send`. Out: SEND commands on a connection of `brokers`,
one entry each; a `SendResult` brings the result to the application. In order: `producer`,
`topic_producer`, `batcher`, `batch_container`, `outbox`, `entry_encoder`.

Third-party packages it may import: none.
"""
