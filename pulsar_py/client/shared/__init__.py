"""Parts that every room of the client uses: public enumerations, statistics, retries, limits.

In and out: plain values, clocks and awaitables. Nothing here knows brokers, messages or consumers.

Third-party packages it may import: none;
typing_extensions is what type checkers read, and is never loaded.
"""
