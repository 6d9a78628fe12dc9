"""Measures of topics: lags of subscriptions and queries, ages of backlogs, a page about traffic.

In: statistics of brokers, and what Spark counted. Out: `Lag`s, their text forms, and one HTML page
with plots. Only `ages` asks a broker; the rest is pure.

Third-party packages it may import: none.
"""
