"""The resources of the REST API, one module for each kind; JSON has Pulsar's field names.

In: a `Request` with decoded path parameters, and the services of the broker. Out: a `Response`, or
an error that `app` turns into one.
"""
