"""The page of metrics: what a broker counts, in Prometheus' text format with Pulsar's names.

In comes a `BrokerService`; out goes the text, part by part. A name that Pulsar has and that is not
here stands in `absent_names.py` with the reason; nothing is shown that is not measured.
"""
