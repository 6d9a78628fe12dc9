"""The whole REST API: the list of all resources, above the rooms that have them.

In: a `BrokerService`, and the routes that resources declare. Out: all routes for the router, and
the OpenAPI document that describes them.
"""
