"""`pulsar-py perf`: loads for a broker, with live rates and histograms of latency.

In: a topic, a rate and sizes. Out: a line every few seconds, and a last one with percentiles.

Third-party packages it may import: click.
"""
