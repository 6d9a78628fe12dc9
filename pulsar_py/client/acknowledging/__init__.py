"""Sends acknowledgements and requests for redelivery, grouped by time and size.

In: ids of messages that were acknowledged, negatively acknowledged, or handed to the application.
Out: ACK and REDELIVER_UNACKNOWLEDGED_MESSAGES commands; entries whose acknowledgement timed out.

Third-party packages it may import: none.
"""
