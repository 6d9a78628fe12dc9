"""What every room of the client uses: the users' enumerations, statistics, retries, limits.

In: plain values, clocks and awaitables. Out: the same, and `http_request`'s answers. Nothing here
knows brokers, messages or consumers.

Third-party packages it may import: none.
"""
