"""WebSocket: producers, consumers and readers for clients without Pulsar's binary protocol.

In: handshakes below `/ws` on the HTTP ports. Out: calls of this project's own client, which is
connected with the broker within the process and has the rights of whoever shook hands. Nothing of
it is imported before the first handshake.

    paths, parameters     what a handshake asks for
    frames                JSON of messages, receipts and commands
    refusals              errors as statuses of a handshake
    connection            frames of RFC 6455 on a socket: pings, limits, closing
    producing, consuming  the dialog of a producer; of a consumer or reader
    broker_client         the client that is connected within the process
    service               handshakes, and all connections of a broker

Third-party packages it may import: wsproto.

Source: the WebSocket API of Pulsar's documentation; `pulsar-websocket` in Pulsar.
"""
