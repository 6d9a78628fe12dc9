"""Connections to brokers: service URLs, lookups, CONNECT, requests and their responses.

In: frames to send, and topics to look up, from producers, consumers and topic watchers. Out:
responses to who asked; what else comes goes to the handlers that registered (`handlers` has their
interfaces). `ClientContext` is what one client's parts share, and `ConnectionHandler` brings one of
them back after its connection was lost.

Third-party packages it may import: none.
"""
