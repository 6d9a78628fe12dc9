"""Connections to brokers: service URLs, lookups, CONNECT, requests and their responses.

In: frames to send, and topics to look up, from producers, consumers and topic watchers. Out:
responses to the callers; everything else goes to the handlers that registered (`handlers` has their
interfaces). `ClientContext` holds what the parts of one client share, and `ConnectionHandler`
reconnects one of them after its connection was lost.

Third-party packages it may import: none.
"""
