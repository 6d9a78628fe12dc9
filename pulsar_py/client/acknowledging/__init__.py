"""Acknowledgements on their way to the broker, and requests to deliver again.

In: which messages are done, refused, or were handed out. Out: ACK and REDELIVER commands, grouped
by time and size; the entries whose time is over.

Third-party packages it may import: none.
"""
