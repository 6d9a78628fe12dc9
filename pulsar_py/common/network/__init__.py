"""HTTP requests, TLS contexts, host names and proxy headers, for all our clients and servers.

Comes in: options and requests. Goes out: whole answers, contexts, and errors that name the address.
"""
