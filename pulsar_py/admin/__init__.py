"""Pulsar's admin REST API: an HTTP server, a router, and resources.

In: HTTP requests on a socket. Out: calls of the broker's services and writes to the metadata store;
answers as JSON with Pulsar's field names. `http_server` has the sockets, `app` finds routes and
answers errors, `policies` and `resources` serve them; `all_routes` lists what they do.

Third-party packages it may import: h11, msgspec.
"""
